// Package durable is the only way in which the daemon and its supervisors change files that must survive: a reader sees
// the old content or the new content, never a part of it, whatever process dies in between. SQLite writes its own
// files; its commits are reported to this package, so that tests see them too.
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

// The changes that Watch is called with.
const (
	OpMake     Op = "make"     // make a folder, or an empty file
	OpWrite    Op = "write"    // write into a file
	OpTruncate Op = "truncate" // truncate a file
	OpSync     Op = "sync"     // write a file or a folder through to the disk
	OpRename   Op = "rename"
	OpRemove   Op = "remove" // remove a file or a tree
	OpCommit   Op = "commit" // commit a transaction of SQLite
)

// Watch is for tests only. Unless it is nil, it is called before each change, by any goroutine. It must be set before
// the first change.
var Watch func(op Op, path string)

// Before calls Watch before a change that is made outside of this package.
func Before(op Op, path string) {
	if Watch != nil {
		Watch(op, path)
	}
}

// Write replaces the content of the file at path, entirely or not at all, and returns once a loss of power cannot undo
// the change. The folder must exist. Only one goroutine at a time may write a path.
func Write(path string, text []byte) error {
	if err := replace(path, text, true); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace is Write for content that need not survive a loss of power: afterwards the file may have its old content or
// be empty, which readers must expect. It does not wait for the disk.
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
		err = Move(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // On a full disk it would take the little space that is left.
	}
	return err
}

// Rename renames a file or a folder, replaces what had the new name, and returns once a loss of power cannot undo the
// change.
func Rename(from, to string) error {
	if err := Move(from, to); err != nil {
		return err
	}
	err := SyncDir(filepath.Dir(to))
	if filepath.Dir(from) != filepath.Dir(to) {
		err = errors.Join(err, SyncDir(filepath.Dir(from)))
	}
	return err
}

// Move is Rename without waiting for the disk: after a loss of power the file or folder may have its former name.
func Move(from, to string) error {
	Before(OpRename, to)
	return os.Rename(from, to)
}

// MakeDir makes a folder, and its missing parents, that only the owner may access, unless it exists. SyncDir of its
// parent makes it durable.
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

// File is an open file that is written in place.
type File struct{ file *os.File }

// Create makes an empty file that only the owner may access, in place of any file of that name, which must be no
// symbolic link.
func Create(path string) (*File, error) {
	Before(OpMake, path)
	return open(path, os.O_CREATE|os.O_TRUNC)
}

// Open opens a file for writing and makes it if it is missing.
func Open(path string) (*File, error) { return open(path, os.O_CREATE) }

func open(path string, flags int) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// WriteAt writes text at an offset in bytes. If the process dies meanwhile, only a part may have been written.
func (f *File) WriteAt(text []byte, offset int64) (int, error) {
	Before(OpWrite, f.file.Name())
	return f.file.WriteAt(text, offset)
}

// Truncate sets the length of the file to size bytes.
func (f *File) Truncate(size int64) error {
	Before(OpTruncate, f.file.Name())
	return f.file.Truncate(size)
}

// Allocate sets the length of the file to size bytes, all of them allocated on the disk, or fails with ENOSPC.
func (f *File) Allocate(size int64) error {
	Before(OpWrite, f.file.Name())
	err := unix.Fallocate(int(f.file.Fd()), 0, 0, size)
	if err != nil {
		return &fs.PathError{Op: "fallocate", Path: f.file.Name(), Err: err}
	}
	return nil
}

// Sync returns once all writes are on the disk.
func (f *File) Sync() error {
	Before(OpSync, f.file.Name())
	return f.file.Sync()
}

// Close closes the file without syncing it.
func (f *File) Close() error { return f.file.Close() }
