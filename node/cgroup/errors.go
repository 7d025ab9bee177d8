package cgroup

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Errors to test for with errors.Is.
var (
	// ErrBusy is returned by Apply and Reclaim when the kernel could not bring usage below the wanted bound, most often
	// because the processes keep writing. The old bound stays in force, and a later attempt may succeed. Remove returns
	// ErrBusy when processes are left at the deadline, Root when other processes are in the way.
	ErrBusy = errors.New("busy")
	// ErrUnsupported is returned when this machine, or the subtree delegated to us, lacks what the call needs.
	ErrUnsupported = errors.New("not supported here")
	// ErrGone is returned when the group no longer exists.
	ErrGone = errors.New("the group is gone")
)

// NeedError is returned by Root and Site where a subtree cannot be had. Its text is one sentence.
type NeedError struct {
	Missing string // what is missing
	Err     error
	Remedy  string // how to get it
}

func (e *NeedError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Missing, e.Err, e.Remedy) }

// Unwrap returns the reason.
func (e *NeedError) Unwrap() error { return e.Err }

// WriteError reports which write to which file failed. It matches ErrBusy, ErrGone or ErrUnsupported if that is the
// reason.
type WriteError struct {
	Path    string
	Content string
	Err     error
}

func (e *WriteError) Error() string {
	return fmt.Sprintf("write %q to %s: %v", e.Content, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *WriteError) Unwrap() error { return e.Err }

// Is reports whether the kernel's error means target: ErrBusy or ErrGone. ErrUnsupported is found by Unwrap.
func (e *WriteError) Is(target error) bool {
	switch target {
	case ErrBusy:
		return errors.Is(e.Err, unix.EBUSY) || errors.Is(e.Err, unix.EAGAIN)
	case ErrGone:
		return errors.Is(e.Err, unix.ENODEV) || errors.Is(e.Err, fs.ErrNotExist)
	}
	return false
}

func unsupported(c Controller, what string) error {
	return fmt.Errorf("controller %s: %s: %w", c, what, ErrUnsupported)
}
