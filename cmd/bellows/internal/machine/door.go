package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"

	"github.com/bellows-rm/bellows/live/api"
)

// modeFlag is a flag for the permissions of a socket, in octal digits.
type modeFlag struct{ to *fs.FileMode }

// String implements pflag.Value.
func (v modeFlag) String() string {
	if v.to == nil || *v.to == 0 {
		return ""
	}
	return fmt.Sprintf("%#04o", *v.to)
}

// Type implements pflag.Value.
func (v modeFlag) Type() string { return "mode" }

// Set implements pflag.Value.
func (v modeFlag) Set(text string) error {
	const least, most = 0o600, 0o666
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode&least != least || mode&^most != 0 {
		return errors.New("must be octal digits from 0600 to 0666 that let the daemon's user, its group or all others " +
			"read and write, such as 0660")
	}
	*v.to = fs.FileMode(mode)
	return nil
}

// groupFlag is a flag for a group of users, by name or number. The group is looked up once, when the flag is read.
type groupFlag struct{ to **api.Group }

// String implements pflag.Value.
func (v groupFlag) String() string {
	if v.to == nil || *v.to == nil {
		return ""
	}
	return (*v.to).Name
}

// Type implements pflag.Value.
func (v groupFlag) Type() string { return "group" }

// Set implements pflag.Value.
func (v groupFlag) Set(text string) error {
	number := text
	found, err := user.LookupGroup(text)
	if _, unknown := errors.AsType[user.UnknownGroupError](err); err != nil && !unknown {
		return fmt.Errorf("cannot be looked up: %w", err)
	} else if err == nil {
		number = found.Gid
	}
	gid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return errors.New("this system has no group of that name")
	}
	*v.to = &api.Group{Name: text, GID: uint32(gid)}
	return nil
}
