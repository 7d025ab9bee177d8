package commandtest

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
)

// Help fails the test for each command of a program that says more than is read at a glance: its help has at most 12
// lines above "Usage:", as wide as a terminal at most. What is longer belongs into docs.
func Help(t *testing.T, tree *command.Tree) {
	t.Helper()
	const most = 12
	for _, cmd := range tree.Commands() {
		lines := strings.Split(strings.TrimSpace(cmd.Long), "\n")
		if len(lines) > most {
			t.Errorf("the help of %s has %d lines above its usage, want at most %d", cmd.CommandPath(), len(lines), most)
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > terminal.Width {
				t.Errorf("the help of %s has a line of %d characters: %s", cmd.CommandPath(), n, line)
			}
		}
	}
}
