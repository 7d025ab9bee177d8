// Package commandtest has the script commands for tests of commands, in addition to testscript's own. Only tests
// import it.
package commandtest

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bellows-rm/bellows/door/terminal"
)

// Commands are the script commands by their names.
var Commands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": Exits,
	"wide":  Wide,
}

// Exits is "exits CODE COMMAND...": the command must end with that code.
func Exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// Wide is "wide FILE": no line of the file may be longer than a terminal; "! wide" is not supported.
func Wide(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: wide FILE")
	}
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		if n := len([]rune(line)); n > terminal.Width {
			ts.Fatalf("line %d is %d characters long, more than %d: %s", i+1, n, terminal.Width, line)
		}
	}
}
