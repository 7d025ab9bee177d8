// Package durable is the one way in which the daemon and its supervisors change files that must survive: a reader finds
// what was there before or what is there now, never half of it, whatever dies in between. What SQLite writes, it writes
// itself; its commits pass by here, so that tests see them too.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Op is a kind of change.
type Op string

// The changes that Watch is told of.
const (
	OpMake     Op = "make"     // a folder, or an empty file
	OpWrite    Op = "write"    // into a file
	OpTruncate Op = "truncate" // a file
	OpSync     Op = "sync"     // a file or a folder reaches the disk
	OpRename   Op = "rename"
	OpRemove   Op = "remove" // a file or a tree
	OpCommit   Op = "commit" // a transaction of SQLite
)

// Watch is for tests alone: unless it is nil it is called before each change, by any goroutine. It is set before the first.
var Watch func(op Op, path string)

// Before tells Watch of a change that somebody else carries out next.
func Before(op Op, path string) {
	if Watch != nil {
		Watch(op, path)
	}
}

// Write puts text in the place of the file at path, whole or not at all, and returns once not even a loss of power takes it
// back. The folder must exist. One goroutine at a time writes a path.
func Write(path string, text []byte) error {
	if err := replace(path, text, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace is Write for what need not survive a loss of power: afterwards the file may be as before, or empty, so whoever
// reads it must cope with that. It does not wait for the disk.
func Replace(path string, text []byte) error { return replace(path, text, false) }

func replace(path string, text []byte, sync bool) error {
	temporary := path + ".tmp"
	f, err := Create(temporary)
	if err != nil {
		return err
	}
	if len(text) > 0 {
		_, err = f.WriteAt(text, 0)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // On a full disk it would take what little there is.
	}
	return err
}

// Rename gives a file or a folder another name, in place of what had it, and returns once not even a loss of power takes it
// back.
func Rename(from, to string) error {
	if err := rename(from, to); err != nil {
		return err
	}
	err := SyncDir(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, SyncDir(filepath.Dir(from)))
	}
	return err
}

func rename(from, to string) error {
	Before(OpRename, to)
	return os.Rename(from, to)
}

// MakeDir makes a folder for its owner alone, with those above it, unless it is there. SyncDir of its parent makes it last.
func MakeDir(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		Before(OpMake, path)
	}
	return os.MkdirAll(path, 0o700)
}

// SyncDir returns once the names in a folder are on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	Before(OpSync, dir)
	return errors.Join(d.Sync(), d.Close())
}

// RemoveAll removes a file, or a folder with all that is in it; it need not exist. After a loss of power it may be there
// again, in part.
func RemoveAll(path string) error {
	Before(OpRemove, path)
	return os.RemoveAll(path)
}

// File is an open file that is written in place.
type File struct{ file *os.File }

// Create makes an empty file for its owner alone in place of what had the name, which must be no symbolic link.
func Create(path string) (*File, error) {
	Before(OpMake, path)
	return open(path, os.O_CREATE|os.O_TRUNC)
}

// Open opens a file to write into it and makes it if there is none.
func Open(path string) (*File, error) { return open(path, os.O_CREATE) }

func open(path string, flags int) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// WriteAt writes text at an offset, bytes. A process that dies meanwhile may leave a part of it.
func (f *File) WriteAt(text []byte, offset int64) (int, error) {
	Before(OpWrite, f.file.Name())
	return f.file.WriteAt(text, offset)
}

// Truncate makes the file so many bytes long.
func (f *File) Truncate(size int64) error {
	Before(OpTruncate, f.file.Name())
	return f.file.Truncate(size)
}

// Allocate makes the file so many bytes long, all of them on the disk, or fails with ENOSPC.
func (f *File) Allocate(size int64) error {
	Before(OpWrite, f.file.Name())
	err := unix.Fallocate(int(f.file.Fd()), 0, 0, size)
	if err != nil {
		return &fs.PathError{Op: "fallocate", Path: f.file.Name(), Err: err}
	}
	return nil
}

// Sync returns once what was written is on the disk.
func (f *File) Sync() error {
	Before(OpSync, f.file.Name())
	return f.file.Sync()
}

// Close closes the file. It is not synced.
func (f *File) Close() error { return f.file.Close() }
