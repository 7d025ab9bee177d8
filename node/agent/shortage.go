package agent

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// shortages are the kernel's errors for what a machine lacks but may have again: descriptors, memory, processes, space
// on a disk, or a disk that works.
var shortages = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.ENOSPC, unix.EDQUOT, unix.EIO,
	unix.EROFS, unix.ENOBUFS}

// isShortage reports whether an action failed because the machine was short of something of its own, independent of the
// program. The same action may succeed later.
func isShortage(err error) bool {
	var said *shortage
	return errors.As(err, &said) || slices.ContainsFunc(shortages, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// shortage is a shortage that another process has reported in words.
type shortage struct{ text string }

func (s *shortage) Error() string { return s.text }

// fault returns why nothing ran, as an error.
func (e ending) fault() error {
	if e.Short {
		return &shortage{e.Detail}
	}
	return errors.New(e.Detail)
}
