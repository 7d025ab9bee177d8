package server

import (
	"errors"
	"os/user"
	"testing"
)

// TestNames looks each name up once, and looks a name up again if it was not found.
func TestNames(t *testing.T) {
	asked := 0
	n := names{lookUp: func(uid string) (*user.User, error) {
		if asked++; uid != "7" || asked == 1 {
			return nil, errors.New("not now")
		}
		return &user.User{Username: "seven"}, nil
	}}
	for i, want := range []string{"", "seven", "seven", "seven"} {
		if got := n.name(7); got != want {
			t.Errorf("%d: name %q, want %q", i, got, want)
		}
	}
	if asked != 2 {
		t.Errorf("looked up %d times", asked)
	}
}
