package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/statedir"
)

// ErrLocked is returned by TakeLock when another daemon uses the state directory.
var ErrLocked = errors.New("another bellows uses it")

// Lock reserves a state directory for one daemon. The kernel releases it when the process ends, however it ends.
type Lock struct{ file *os.File }

// TakeLock locks a state directory, which it makes if it is missing. The error is ErrLocked if another daemon has the
// lock, and a *statedir.UnsafeError if other users could change the directory.
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
		holder, _ := os.ReadFile(path)
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("state directory %s: %w (process %s): end that process, or choose another directory with --state", dir, ErrLocked, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("lock the state directory %s: %w", dir, err)
	}
	// The text is for people only; failing on a full disk does no harm.
	_ = f.Truncate(0)
	_, _ = f.WriteAt(fmt.Appendf(nil, "%d\n", os.Getpid()), 0)
	return &Lock{f}, nil
}

// flock locks a file. If the last daemon was killed while it started a process, that process has the lock for a few
// moments more, so flock tries for a second.
func flock(f *os.File) error {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

// Release releases the lock.
func (l *Lock) Release() error { return l.file.Close() }
