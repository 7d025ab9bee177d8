package command

import (
	"runtime/debug"
	"testing"
)

// What a program says of its version, for every way to build it.
func TestBuildOf(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	vcs := func(version, modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: "2026-11-29T21:39:01Z"},
			{Key: "vcs.modified", Value: modified}}}
	}
	for _, c := range []struct {
		how       string
		set       build
		recorded  *debug.BuildInfo
		line, one string
	}{
		{"make build", build{Version: "0.1.0", Commit: commit, Date: "2026-11-29T22:39:01+01:00"},
			vcs("v0.0.0-20261129213901-0123456789ab", "true"), "0.1.0 (commit 0123456789ab, 2026-11-29T22:39:01+01:00, go)",
			"0.1.0+0123456789ab"},
		{"make build, in a changed tree", build{Version: "0.1.0", Commit: commit + "-dirty", Date: "2026-11-29T21:39:01Z"},
			&debug.BuildInfo{}, "0.1.0 (commit 0123456789ab-dirty, 2026-11-29T21:39:01Z, go)", "0.1.0+0123456789ab-dirty"},
		{"make build, not in a clone", build{Version: "0.1.0"}, &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}},
			"0.1.0 (go)", "0.1.0"},
		{"go install of a release", build{}, &debug.BuildInfo{Main: debug.Module{Version: "v0.1.0"}}, "0.1.0 (go)", "0.1.0"},
		{"go build in a clone", build{}, vcs("v0.0.0-20261129213901-0123456789ab+dirty", "true"),
			"0.0.0-20261129213901-0123456789ab+dirty (commit 0123456789ab-dirty, 2026-11-29T21:39:01Z, go)",
			"0.0.0-20261129213901-0123456789ab+dirty"},
		{"go build in a clone, of another module", build{}, vcs("(devel)", "false"),
			"devel (commit 0123456789ab, 2026-11-29T21:39:01Z, go)", "devel+0123456789ab"},
		{"go build without a record", build{}, &debug.BuildInfo{}, "devel (go)", "devel"},
	} {
		c.set.Go = "go"
		b := buildOf(c.set, c.recorded)
		if b.String() != c.line || b.one() != c.one {
			t.Errorf("%s: %s, in one word %s; want %s, %s", c.how, b, b.one(), c.line, c.one)
		}
	}
}
