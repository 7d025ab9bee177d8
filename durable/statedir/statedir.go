// Package statedir makes the directory in which a daemon keeps its state, and refuses a directory that other users
// could change: a user who can write there can run programs with the rights of the daemon.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// UnsafeError says what other users could change, why, and how to fix it.
type UnsafeError struct {
	Dir  string // the state directory
	Path string // what is unsafe: Dir, a directory above it, or something in it
	Why  string // the rest of a sentence that begins with Path
	Mend string // a command, or what to do
}

func (e *UnsafeError) Error() string {
	return fmt.Sprintf("state directory %s: %s %s: %s", e.Dir, e.Path, e.Why, e.Mend)
}

// mostLinks is the largest number of symbolic links in a path, as in the kernel.
const mostLinks = 40

// Make makes a state directory for this user alone, with the directories above it, unless it exists. The error is an
// *UnsafeError unless all of this is true:
//
//   - An existing state directory is a directory, no symbolic link, belongs to this user, and only its owner can
//     write to it.
//   - Everything in it belongs to root or this user.
//   - The directories above it, and the symbolic links among them, belong to root or this user, and only their
//     owners can
//     write to them unless they are sticky, as /tmp is.
//
// Afterwards no other user can replace any part of the path.
func Make(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("make the state directory: %w", err)
	}
	w := walk{dir: dir, uid: uint32(os.Geteuid())}
	return w.all()
}

// errMissing is returned by a walk that only looks, for a directory that Make would make.
var errMissing = errors.New("missing")

// Check returns the error that Make would return, and makes nothing. exists is false if the state directory is
// missing, and Make would make it.
func Check(dir string) (exists bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return false, fmt.Errorf("check the state directory: %w", err)
	}
	w := walk{dir: dir, uid: uint32(os.Geteuid()), looks: true}
	err = w.all()
	if errors.Is(err, errMissing) {
		return false, nil
	}
	return err == nil, err
}

// Open opens a file in a state directory for reading and writing, with additional flags of os.OpenFile, and makes it if
// it is missing. An existing file must belong to this user, and be neither a hard link of another file nor a symbolic
// link; otherwise the error is an *UnsafeError.
func Open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|flags, 0o600)
	unsafe := &UnsafeError{Dir: filepath.Dir(path), Path: path, Mend: "rm -r " + path}
	switch {
	case errors.Is(err, unix.ELOOP):
		unsafe.Why = "is a symbolic link"
		return nil, unsafe
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO):
		unsafe.Why = "is not a file"
		return nil, unsafe
	case err != nil:
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		unsafe.Why = "is not a file"
	case st.Uid != uint32(os.Geteuid()):
		unsafe.Why = fmt.Sprintf("belongs to user %d", st.Uid)
	case st.Nlink > 1:
		unsafe.Why = "has another name elsewhere"
	default:
		return f, nil
	}
	f.Close()
	return nil, unsafe
}

// parts are the names in a path, from the root down.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == filepath.Separator })
}

// walk goes down to the state directory, one name at a time, and checks every symbolic link before it follows it.
type walk struct {
	dir   string
	uid   uint32
	at    int    // open directory
	path  string // of at
	links int
	looks bool // it makes nothing
}

// all goes to the state directory and checks what is in it.
func (w *walk) all() error {
	defer w.leave()
	if err := w.to(parts(w.dir)); err != nil {
		if e, ok := errors.AsType[*UnsafeError](err); ok {
			return e
		}
		return fmt.Errorf("make the state directory %s: %w", w.dir, err)
	}
	return w.contents()
}

func (w *walk) leave() {
	if w.at > 0 {
		unix.Close(w.at)
	}
}

// enter goes on to a directory below the present one, or to a directory with an absolute name.
func (w *walk) enter(name string) (st unix.Stat_t, err error) {
	fd, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return st, &fs.PathError{Op: "open", Path: filepath.Join(w.path, name), Err: err}
	}
	w.leave()
	w.at = fd
	if filepath.IsAbs(name) {
		w.path = name
	} else {
		w.path = filepath.Join(w.path, name)
	}
	if err := unix.Fstat(fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: w.path, Err: err}
	}
	return st, nil
}

// to goes to the state directory along names from the root.
func (w *walk) to(names []string) error {
	st, err := w.enter("/")
	if err != nil {
		return err
	}
	for len(names) > 0 {
		if err := w.above(&st); err != nil {
			return err
		}
		name, last := names[0], len(names) == 1
		target, err := w.link(name, last)
		if err != nil {
			return err
		}
		if target != "" {
			names = append(parts(target), names[1:]...)
			if !filepath.IsAbs(target) {
				continue
			}
			name = "/"
		} else {
			names = names[1:]
		}
		if st, err = w.enter(name); err != nil {
			return err
		}
	}
	return w.own(&st)
}

// link returns the target of a symbolic link, and "" for a directory, which it makes if nothing of that name exists.
// A walk that only looks returns errMissing instead, if it could make it.
func (w *walk) link(name string, last bool) (target string, err error) {
	path := filepath.Join(w.path, name)
	var st unix.Stat_t
	err = unix.Fstatat(w.at, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) && w.looks {
		if err := unix.Access(w.path, unix.W_OK|unix.X_OK); err != nil {
			return "", &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		return "", errMissing
	}
	if errors.Is(err, unix.ENOENT) {
		durable.Before(durable.OpMake, path)
		if err := unix.Mkdirat(w.at, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return "", &fs.PathError{Op: "mkdir", Path: path, Err: err}
		}
		return "", durable.SyncDir(w.path)
	}
	switch {
	case err != nil:
		return "", &fs.PathError{Op: "stat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return "", nil
	case st.Mode&unix.S_IFMT != unix.S_IFLNK:
		return "", w.unsafe(path, "is not a directory", "choose another one with --state")
	case last:
		return "", w.unsafe(path, "is a symbolic link", "name the directory itself with --state")
	case st.Uid != 0 && st.Uid != w.uid:
		return "", w.unsafe(path, fmt.Sprintf("is a symbolic link of user %d, who could point it elsewhere", st.Uid),
			"choose another directory with --state")
	}
	if w.links++; w.links > mostLinks {
		return "", &fs.PathError{Op: "open", Path: path, Err: unix.ELOOP}
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(w.at, name, text)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	return string(text[:n]), nil
}

func (w *walk) unsafe(path, why, mend string) error {
	return &UnsafeError{Dir: w.dir, Path: path, Why: why, Mend: mend}
}

// above checks a directory above the state directory. In a sticky directory other users can add names, but not change
// ours.
func (w *walk) above(st *unix.Stat_t) error {
	if st.Uid != 0 && st.Uid != w.uid {
		return w.unsafe(w.path, fmt.Sprintf("belongs to user %d, who could replace what is in it", st.Uid),
			"choose another directory with --state")
	}
	if st.Mode&unix.S_ISVTX != 0 {
		return nil
	}
	return w.writable(st)
}

// own checks the state directory itself.
func (w *walk) own(st *unix.Stat_t) error {
	if st.Uid != w.uid {
		return w.unsafe(w.path, fmt.Sprintf("belongs to user %d, who could change the state", st.Uid),
			"choose another directory with --state")
	}
	return w.writable(st)
}

// writable returns an error if users other than its owner can write to a directory.
func (w *walk) writable(st *unix.Stat_t) error {
	who, whom := "", ""
	if st.Mode&unix.S_IWGRP != 0 {
		who, whom = "g", "its group"
	}
	if st.Mode&unix.S_IWOTH != 0 {
		who, whom = who+"o", "everybody"
	}
	if who == "" {
		return nil
	}
	return w.unsafe(w.path, fmt.Sprintf("is writable by %s (mode %04o)", whom, st.Mode&0o7777),
		fmt.Sprintf("chmod %s-w %s", who, w.path))
}

// contents checks the content of the state directory: other users may have added to it while they could write to it.
func (w *walk) contents() error {
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		return fmt.Errorf("make the state directory %s: %w", w.dir, err)
	}
	for _, entry := range entries {
		path := filepath.Join(w.dir, entry.Name())
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); errors.Is(err, unix.ENOENT) {
			continue // it has been removed meanwhile
		} else if err != nil {
			return fmt.Errorf("make the state directory %s: %w", w.dir, &fs.PathError{Op: "stat", Path: path, Err: err})
		}
		if st.Uid != 0 && st.Uid != w.uid {
			return w.unsafe(path, fmt.Sprintf("belongs to user %d", st.Uid), fmt.Sprintf("remove it, or chown -h %d %s", w.uid,
				path))
		}
	}
	return nil
}
