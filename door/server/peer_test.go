package server

import (
	"errors"
	"os/user"
	"testing"
	"testing/synctest"
	"time"
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

// A uid without a user, or with another user than before, is noticed; a directory of users that does not answer
// changes nothing.
func TestNamesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var u *user.User
		var err error
		n := names{lookUp: func(string) (*user.User, error) { return u, err }}
		for i, step := range []struct {
			u    *user.User
			err  error
			want string
		}{
			{&user.User{Username: "ada"}, nil, "ada"},
			{nil, errors.New("not now"), "ada"},
			{&user.User{Username: "eve"}, nil, "eve"},
			{nil, user.UnknownUserIdError(7), ""},
			{nil, errors.New("not now"), ""},
			{&user.User{Username: "bob"}, nil, "bob"},
		} {
			u, err = step.u, step.err
			time.Sleep(nameLasts) // of the bubble
			if got := n.name(7); got != step.want {
				t.Errorf("step %d: name %q, want %q", i, got, step.want)
			}
		}
	})
}
