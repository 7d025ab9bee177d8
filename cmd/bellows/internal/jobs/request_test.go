package jobs

import (
	"io"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/internal/testrequest"
)

// The flags of run are refused for what every front door refuses, before a daemon or the program is needed.
func TestRunRefusesWhatNoJobMayRequest(t *testing.T) {
	t.Setenv("BELLOWS_STATE", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	for _, c := range testrequest.Cases {
		if strings.HasPrefix(strings.Join(c.Fields, " "), "runtime: ") {
			continue // files of jobs and the API have it, and run has no flag for it
		}
		t.Run(c.Name, func(t *testing.T) {
			cmd := runCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(c.Flags())
			cmd.SetOut(io.Discard)
			err := cmd.Execute()
			want := c.Flag()
			switch {
			case c.Wrong == "":
				want = `command "java": not found in any folder of PATH`
			case c.Notation && err != nil && strings.Contains(err.Error(), "--"+strings.Fields(want)[0]+`"`):
				return
			}
			if err == nil || err.Error() != want || command.ExitCode(err) != command.WrongUsage {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}
