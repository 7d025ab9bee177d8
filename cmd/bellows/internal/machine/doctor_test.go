package machine

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bellows-rm/bellows/door/doctor"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/internal/testfile"
)

// The findings fit a terminal, each with its remedy below it.
func TestDoctor(t *testing.T) {
	var b bytes.Buffer
	all := count([]doctor.Finding{
		{Check: "kernel", Found: "Linux 6.1.0-18-amd64 on amd64"},
		{Check: "control groups", Level: doctor.Problem,
			Found:  "the group /user.slice/user-1000.slice/session-2.scope was not delegated to this user: permission denied",
			Remedy: "run it as root, or as `systemd-run --user --scope -p Delegate=yes COMMAND`"},
		{Check: "swap", Level: doctor.Warning,
			Found:  "none: where FLEX containers lack memory, the youngest are requeued instead of swapped out",
			Remedy: "run `bellows swap create --size 4GiB`"},
		{Check: "state directory", Found: "/home/ada/.local/state/bellows does not exist; `bellows up` makes it"},
	})
	if err := all.print(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > terminal.Width {
			t.Errorf("%d columns, more than %d: %s", n, terminal.Width, line)
		}
	}
	testfile.Golden(t, "views/doctor.txt", b.Bytes())
}
