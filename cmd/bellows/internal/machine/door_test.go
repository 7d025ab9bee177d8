package machine

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/live/api"
)

// The permissions of a socket are octal digits, and the daemon's user can always connect.
func TestModeFlag(t *testing.T) {
	for text, want := range map[string]fs.FileMode{"0600": 0o600, "600": 0o600, "0660": 0o660, "0666": 0o666,
		"0620": 0o620} {
		var mode fs.FileMode
		v := modeFlag(&mode)
		if err := v.Set(text); err != nil || mode != want {
			t.Errorf("%s is read as %#o, %v", text, mode, err)
		}
		var again fs.FileMode
		if err := modeFlag(&again).Set(v.String()); err != nil || again != want {
			t.Errorf("%s is written as %q, which is read as %#o, %v", text, v.String(), again, err)
		}
	}
	for _, text := range []string{"", "0", "0060", "0777", "0670", "0680", "rw-rw----", "-1", "01660", "0o660"} {
		var mode fs.FileMode
		if err := modeFlag(&mode).Set(text); err == nil ||
			!strings.HasPrefix(err.Error(), "must be octal digits from 0600 to 0666") {
			t.Errorf("%q is read as %#o, %v", text, mode, err)
		}
	}
}

// A group is given by name or number; a name that the system does not know is a mistake.
func TestGroupFlag(t *testing.T) {
	for text, want := range map[string]uint32{"root": 0, "0": 0, "54400": 54400} {
		var g *api.Group
		v := groupFlag(&g)
		if err := v.Set(text); err != nil || g == nil || g.GID != want || v.String() != text {
			t.Errorf("%s is read as %+v, %v", text, g, err)
		}
	}
	for _, text := range []string{"", "no such group", "-1", "4294967296"} {
		var g *api.Group
		if err := groupFlag(&g).Set(text); err == nil || g != nil ||
			err.Error() != "this system has no group of that name" {
			t.Errorf("%q is read as %+v, %v", text, g, err)
		}
	}
}
