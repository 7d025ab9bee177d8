package machine

import (
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/door/daemon"
)

// A file that is read again says what applies at once and what waits. What has been applied is no change the next
// time, what waits is one until the daemon is started again, and flags keep their precedence.
func TestReread(t *testing.T) {
	path := write(t, "bellows_config: 1\nmemory: 64MiB\npolicy: fair\nset: {fair.reservations: false}\n")
	o, err := withArguments(t, "--config", path, "--keep-jobs", "5")
	if err != nil {
		t.Fatal(err)
	}
	reread := o.rereads()
	change := func(setting, from, to string) daemon.Change {
		return daemon.Change{Setting: setting, From: from, To: to}
	}
	for _, c := range []struct {
		text             string
		mistake          string
		applied, waiting []daemon.Change
		keep             time.Duration
		level            slog.Level
	}{
		{"memory: 64MiB\npolicy: fair\nset: {fair.reservations: false}\n", "", nil, nil, 720 * time.Hour, slog.LevelInfo},
		{"memory: 65536KiB\nkeep_for: 1h\nkeep_jobs: 9\nverbose: true\npolicy: fair\nset: {fair.reservations: false}\n", "",
			[]daemon.Change{change("keep_for", "720h0m0s", "1h0m0s"), change("verbose", "false", "true")}, nil, time.Hour,
			slog.LevelDebug},
		{"memory: 32MiB\nkeep_for: 1h\nverbose: true\npolicy: fair\nset: {fair.gaps: nope}\n", "setting fair.gaps", nil,
			nil, 0, 0},
		{"memory: 32MiB\nset: {fair.reservations: false}\n", "must be a setting of a policy that is used: bellows", nil,
			nil, 0, 0},
		{"memory: 32MiB\nkeep_for: 1h\nverbose: true\npolicy: drf\n", "", nil,
			[]daemon.Change{change("memory", "64MiB", "32MiB"), change("policy", "fair", "drf"),
				change("set fair.reservations", "false", "")}, time.Hour, slog.LevelDebug},
		{"keep_for: 2h\npolicy: fair\nset: {fair.reservations: true}\n", "",
			[]daemon.Change{change("keep_for", "1h0m0s", "2h0m0s"), change("verbose", "true", "false")},
			[]daemon.Change{change("memory", "64MiB", ""), change("set fair.reservations", "false", "true")}, 2 * time.Hour,
			slog.LevelInfo},
	} {
		if err := os.WriteFile(path, []byte("bellows_config: 1\n"+c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := reread()
		if c.mistake != "" {
			if err == nil || !strings.Contains(err.Error(), c.mistake) {
				t.Errorf("%q: %v, want %s", c.text, err, c.mistake)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(r.Applied, c.applied) || !reflect.DeepEqual(r.Waiting, c.waiting) {
			t.Errorf("%q:\napplied %v, want %v\nwaiting %v, want %v\n%v", c.text, r.Applied, c.applied, r.Waiting, c.waiting,
				err)
		}
		if r.File != path || r.Keep.For != c.keep || r.Keep.Jobs != 5 || r.Level != c.level {
			t.Errorf("%q: read %+v", c.text, r)
		}
	}
	// Quotas apply at once, also those that are gone.
	for _, c := range []struct {
		text    string
		applied []daemon.Change
		most    int64
	}{
		{"user_quota: {running: 5, ada.running: 6}\n", []daemon.Change{change("user_quota ada.running", "", "6"),
			change("user_quota running", "", "5")}, 6},
		{"user_quota: {running: 5}\n", []daemon.Change{change("user_quota ada.running", "6", "")}, 5},
		{"user_quota: {running: 5}\n", nil, 5},
		{"user_quota: {ada.running: 7}\n", []daemon.Change{change("user_quota ada.running", "", "7"),
			change("user_quota running", "5", "")}, 7},
	} {
		if err := os.WriteFile(path,
			[]byte("bellows_config: 1\nmemory: 64MiB\nkeep_for: 2h\npolicy: fair\nset: {fair.reservations: false}\n"+c.text),
			0o600); err != nil {
			t.Fatal(err)
		}
		r, err := reread()
		if err != nil || !reflect.DeepEqual(r.Applied, c.applied) || len(r.Waiting) > 0 {
			t.Errorf("%q: applied %v, want %v; waiting %v; %v", c.text, r.Applied, c.applied, r.Waiting, err)
			continue
		}
		if got := r.Quotas.Of(cluster.Party{Name: "ada"}, cluster.QuotaRunning).Most; got != c.most {
			t.Errorf("%q: %d jobs", c.text, got)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := reread(); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the file is gone: %v", err)
	}
}
