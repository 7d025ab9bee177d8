package durable

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// batch is how many names of a folder are read at a time.
const batch = 1000

// RemoveAll is Remove without an end.
func RemoveAll(path string) error { return Remove(context.Background(), path) }

// Remove removes a file, or a folder with all its content; it need not exist. After a loss of power parts of it may
// be back. A program may have made the content as it pleased, to any depth, and may still change it: Remove takes two
// descriptors, follows no symbolic link, and leaves what is mounted there. After an error all else is removed; the
// error names the first file that is left. Remove stops with the error of ctx, and another Remove can go on.
func Remove(ctx context.Context, path string) error {
	Before(OpRemove, path)
	err := unlink(unix.AT_FDCWD, path)
	if !errors.Is(err, unix.ENOTEMPTY) {
		return named(err, path)
	}
	top, err := openDir(unix.AT_FDCWD, path)
	if err != nil {
		return named(err, path)
	}
	defer top.Close()
	t := tree{ctx, int(top.Fd())}
	if err := t.empty(top, path); err != nil {
		return err
	}
	return named(unlink(unix.AT_FDCWD, path), path)
}

// tree is a folder that is being removed.
type tree struct {
	ctx context.Context
	top int // its descriptor
}

// unlink removes a file or an empty folder. The error is ENOTEMPTY if it is another folder, and nothing is mounted
// there.
func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // POSIX says EPERM of a folder.
		if folder := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); !errors.Is(folder, unix.ENOTDIR) {
			err = folder
		}
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

func openDir(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// empty removes what is in a folder, which is the top of the tree or directly in it. A folder below the top that is
// not empty becomes one directly in the top: so nothing is deeper than that, and no program that has the folder open
// can take it out of the tree again. empty goes over the folder until nothing is left, or until a round removes
// nothing.
func (t *tree) empty(dir *os.File, path string) error {
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return named(err, path)
		}
		progress, left := false, error(nil)
		for {
			names, err := dir.Readdirnames(batch)
			if err != nil && err != io.EOF {
				return named(err, path)
			}
			for _, name := range names {
				if err := t.ctx.Err(); err != nil {
					return err
				}
				err := t.clear(int(dir.Fd()), name)
				if err == nil {
					progress = true
				} else if left == nil {
					left = named(err, name)
				}
			}
			if len(names) == 0 {
				break
			}
		}
		if !progress {
			return left
		}
	}
}

// clear removes a file or a folder from a folder.
func (t *tree) clear(dir int, name string) error {
	err := unlink(dir, name)
	if !errors.Is(err, unix.ENOTEMPTY) {
		return err
	}
	if dir != t.top {
		return unix.Renameat(dir, name, t.top, rand.Text())
	}
	sub, err := openDir(dir, name)
	if err != nil {
		return err
	}
	err = t.empty(sub, name)
	sub.Close()
	if err != nil {
		return err
	}
	return unlink(dir, name)
}

// named returns the error of an attempt to remove a file; nil means none.
func named(err error, path string) error {
	if err == nil || errors.As(err, new(*fs.PathError)) {
		return err
	}
	return &fs.PathError{Op: "remove", Path: path, Err: err}
}
