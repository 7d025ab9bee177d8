package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/agent"
)

// A Place is a directory in which a demonstration or a study works. It is locked while its process lives, so that the
// next demonstration can recognise what a killed one has left behind.
type Place struct {
	Dir  string
	lock *os.File
}

// InputDir is where programs find their input, below the directory.
const InputDir = "input"

// prefix begins the names of working directories; before a directory is locked, its name begins with a dot.
const prefix = "bellows-demo-"

// Parent returns where working directories are made: in the given directory, else where temporary files go. If
// temporary files are in memory, Parent returns where large temporary files go, because data spilled into memory
// would count as memory of the task.
func Parent(wanted string) string {
	if wanted != "" {
		return wanted
	}
	if parent := os.TempDir(); !InMemory(parent) {
		return parent
	}
	return "/var/tmp"
}

// NoRoomError says that the disk has not enough space.
type NoRoomError string

func (e NoRoomError) Error() string { return string(e) }

// Make makes a working directory below parent. The error is a NoRoomError if less than the given space is free there.
func Make(parent string, need resource.Amount) (*Place, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(parent, &fs); err != nil {
		return nil, fmt.Errorf("directory %s: %w", parent, err)
	}
	if free := resource.Amount(fs.Bavail) * resource.Amount(fs.Bsize); free < need {
		return nil, NoRoomError(fmt.Sprintf("directory %s has %s free: must be at least %s; --dir names another", parent,
			resource.FormatMemory(free), resource.FormatMemory(need)))
	}
	hidden, err := os.MkdirTemp(parent, "."+prefix)
	if err != nil {
		return nil, fmt.Errorf("make the working directory: %w", err)
	}
	w := &Place{Dir: filepath.Join(parent, strings.TrimPrefix(filepath.Base(hidden), "."))}
	if w.lock, err = os.OpenFile(filepath.Join(hidden, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = errors.Join(unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB),
			os.Mkdir(filepath.Join(hidden, InputDir), 0o700), os.Rename(hidden, w.Dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the working directory: %w", err), os.RemoveAll(hidden))
	}
	return w, nil
}

// Remove removes the directory, and before that the swap in it, even if ctx has ended. If swap cannot be turned off,
// because other programs have no memory for its content, everything stays for the next demonstration.
func (w *Place) Remove(ctx context.Context) error {
	defer w.lock.Close()
	if err := removeSwap(context.WithoutCancel(ctx), w.Dir); err != nil {
		return fmt.Errorf("%w; the next demonstration tries again", err)
	}
	return os.RemoveAll(w.Dir)
}

// Sweep ends and removes what killed demonstrations of this user have left below parent: containers, swap, and
// directories. It returns the number of directories.
func Sweep(ctx context.Context, parent string) (swept int, err error) {
	left, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return 0, err
	}
	for _, dir := range left {
		w := abandoned(dir)
		if w == nil {
			continue
		}
		swept++
		if err := w.clear(ctx); err != nil {
			return swept, fmt.Errorf("remove what is left of an earlier demonstration in %s: %w", dir,
				errors.Join(err, w.lock.Close()))
		}
	}
	return swept, nil
}

// abandoned locks a working directory of this user that no process uses, and returns it; nil if a process does.
func abandoned(dir string) *Place {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		lock.Close()
		return nil
	}
	return &Place{dir, lock}
}

// clear removes what was made in w: containers first, because their memory may be in the swap.
func (w *Place) clear(ctx context.Context) error {
	states, err := filepath.Glob(filepath.Join(w.Dir, "state-*"))
	if err != nil {
		return err
	}
	whole, err := agent.Capacity(0, 0)
	if err != nil {
		return err
	}
	for _, state := range states {
		m, err := reopen(state, "fair", nil, whole)
		if err != nil {
			return err
		}
		if err := m.End(ctx); err != nil {
			return err
		}
	}
	return w.Remove(ctx)
}

// InMemory reports whether files in dir lie in memory.
func InMemory(dir string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return false
	}
	return fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.RAMFS_MAGIC
}
