package agent

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// shortages are what the kernel says when it lacks something that it may have again: descriptors, memory, processes, room on
// a disk, or a disk that works.
var shortages = []unix.Errno{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EROFS, unix.ENOBUFS}

// isShortage tells whether something failed because the machine was short of something of its own, whatever was to be started.
// It may work later, for anybody.
func isShortage(err error) bool {
	var said *shortage
	return errors.As(err, &said) || slices.ContainsFunc(shortages, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// shortage is one that another process has told us of in words.
type shortage struct{ text string }

func (s *shortage) Error() string { return s.text }

// fault is why nothing ran, as an error.
func (e ending) fault() error {
	if e.Short {
		return &shortage{e.Detail}
	}
	return errors.New(e.Detail)
}
