package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable/statedir"
)

// ErrLocked is returned by TakeLock when another daemon uses the state directory.
var ErrLocked = errors.New("another bellows uses it")

// Lock reserves a state directory for one daemon. The kernel releases it when the process ends, however it ends.
type Lock struct{ file *os.File }

// How long TakeLock waits for a lock. If the last daemon was killed while it started a process, that process has the
// lock for a few moments more. A daemon that is closing has it until its work is recorded.
const (
	lockWait    = time.Second
	ClosingWait = 10 * time.Second
)

// closing stands in the file of a lock below the holder's process, once the holder is closing.
const closing = "closing"

// TakeLock locks a state directory, which it makes if it is missing. It waits for up to ClosingWait while the holder of
// the lock is closing. The error is ErrLocked if another daemon has the lock, and a *statedir.UnsafeError if other
// users could change the directory.
func TakeLock(dir string) (*Lock, error) {
	if err := statedir.Make(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "lock")
	f, err := statedir.Open(path, 0)
	if err != nil {
		return nil, (&Store{path: path}).explain("lock", err)
	}
	if err := flock(f); err != nil {
		process, _ := holder(f)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf(
				"state directory %s: %w (process %s): end that process, or choose another directory with --state", dir, ErrLocked,
				process)
		}
		return nil, fmt.Errorf("lock the state directory %s: %w", dir, err)
	}
	l := &Lock{f}
	l.write("")
	return l, nil
}

// write writes the text of the lock, for people and for waiting processes. On a full disk the text is missing: then
// no process waits for longer than lockWait.
func (l *Lock) write(state string) {
	_ = l.file.Truncate(0)
	_, _ = l.file.WriteAt(fmt.Appendf(nil, "%d\n%s", os.Getpid(), state), 0)
}

// flock locks a file.
func flock(f *os.File) error {
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		waited := time.Since(begun)
		if !errors.Is(err, unix.EWOULDBLOCK) || waited > ClosingWait {
			return err
		}
		if _, closes := holder(f); !closes && waited > lockWait {
			return err
		}
	}
}

// holder returns the process that the file of a lock names, and whether that process said that it is closing.
func holder(f *os.File) (process string, closes bool) {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 100))
	process, state, _ := strings.Cut(string(text), "\n")
	return process, state == closing
}

// LockHolder returns the process that has the lock of a state directory, and whether that process is closing; held is
// false if no process has it, or if that is unknown.
func LockHolder(dir string) (process string, held, closes bool) {
	f, err := os.Open(filepath.Join(dir, "lock"))
	if err != nil {
		return "", false, false
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return "", false, false // no process has the lock, whatever the text says
	}
	process, closes = holder(f)
	return process, true, closes
}

// Closing notifies processes that wait for the lock that it will be released soon.
func (l *Lock) Closing() { l.write(closing) }

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }
