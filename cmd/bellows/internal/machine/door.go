package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/bellows-rm/bellows/door/cli/flags"
	"github.com/bellows-rm/bellows/live/api"
)

// modeFlag is a flag for the permissions of a socket, in octal digits.
func modeFlag(to *fs.FileMode) pflag.Value {
	return flags.Parsed(to, "mode", func(text string) (fs.FileMode, error) {
		const least, most = 0o600, 0o666
		mode, err := strconv.ParseUint(text, 8, 32)
		if err != nil || mode&least != least || mode&^most != 0 {
			return 0, errors.New("must be octal digits from 0600 to 0666 that let the daemon's user, its group or all " +
				"others read and write, such as 0660")
		}
		return fs.FileMode(mode), nil
	}, func(mode fs.FileMode) string {
		if mode == 0 {
			return ""
		}
		return fmt.Sprintf("%#04o", mode)
	})
}

// groupFlag is a flag for a group of users, by name or number. The group is looked up once, when the flag is read.
func groupFlag(to **api.Group) pflag.Value {
	return flags.Parsed(to, "group", findGroup, func(g *api.Group) string {
		if g == nil {
			return ""
		}
		return g.Name
	})
}

func findGroup(text string) (*api.Group, error) {
	number := text
	found, err := user.LookupGroup(text)
	if _, unknown := errors.AsType[user.UnknownGroupError](err); err != nil && !unknown {
		return nil, fmt.Errorf("cannot be looked up: %w", err)
	} else if err == nil {
		number = found.Gid
	}
	gid, err := strconv.ParseUint(number, 10, 32)
	if err != nil {
		return nil, errors.New("this system has no group of that name")
	}
	return &api.Group{Name: text, GID: uint32(gid)}, nil
}
