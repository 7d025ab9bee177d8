package command

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/door/terminal"
)

// The build sets these, as the Makefile does: the version, and the commit with its date, RFC 3339. Empty ones are
// taken from what the go command recorded.
var version, commit, date string

// build is what a program knows of its own making; what is unknown is empty.
type build struct {
	Version string `json:"version" doc:"of the program"`
	Commit  string `json:"commit,omitempty" doc:"that it was built from; omitted if unknown"`
	Date    string `json:"date,omitempty" doc:"of the commit; omitted if unknown"`
	Go      string `json:"go" doc:"version of Go"`
}

// thisBuild returns what is known of this program.
func thisBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(build{Version: version, Commit: commit, Date: date, Go: runtime.Version()}, info)
}

// buildOf completes what was set from what the go command recorded: the version of the module, which is that of a tag
// or one that the go command makes of the commit, and the commit. Without a version it is a build of a developer,
// devel.
func buildOf(b build, recorded *debug.BuildInfo) build {
	b.Version = cmp.Or(b.Version, strings.TrimPrefix(strings.Trim(recorded.Main.Version, "()"), "v"), "devel")
	if b.Commit != "" {
		return b
	}
	set := map[string]string{}
	for _, s := range recorded.Settings {
		set[s.Key] = s.Value
	}
	if b.Commit = set["vcs.revision"]; set["vcs.modified"] == "true" {
		b.Commit += dirty
	}
	b.Date = set["vcs.time"]
	return b
}

// dirty ends a commit of which the tree differed.
const dirty = "-dirty"

// short returns the first twelve digits of the commit, and that the tree differed.
func (b build) short() string {
	digits, differed := strings.CutSuffix(b.Commit, dirty)
	digits = digits[:min(len(digits), 12)]
	if differed {
		digits += dirty
	}
	return digits
}

// String is the line that people read, without the name of the program.
func (b build) String() string {
	about := b.Go
	if b.Commit != "" {
		about = fmt.Sprintf("commit %s, %s, %s", b.short(), b.Date, b.Go)
	}
	return fmt.Sprintf("%s (%s)", b.Version, about)
}

// one returns the version in one word, which differs between programs of different commits.
func (b build) one() string {
	if b.Commit == "" || strings.Contains(b.Version, strings.TrimSuffix(b.short(), dirty)) {
		return b.Version
	}
	return b.Version + "+" + b.short()
}

// VersionText returns the version in one word, which differs between programs of different commits.
func VersionText() string { return thisBuild().one() }

// versionLine returns what a program of that name says of its version.
func versionLine(name string) string { return fmt.Sprintf("%s %s\n", name, thisBuild()) }

// NewVersionCommand returns the command `version` of a tree.
func NewVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, commit and its date",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return terminal.WriteJSON(cmd.OutOrStdout(), thisBuild())
			}
			_, err := io.WriteString(cmd.OutOrStdout(), versionLine(cmd.Root().Name()))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
