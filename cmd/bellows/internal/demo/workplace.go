package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/resource"
)

// A workplace is the directory in which a demonstration works. It is locked for as long as its process lives, so that the
// next demonstration can tell what one that was killed has left behind.
type workplace struct {
	dir  string
	lock *os.File
}

// workPrefix begins the names of working directories; until one is locked its name begins with a dot.
const workPrefix = "bellows-demo-"

// workParent is where working directories are made: where somebody wants it, or where temporary files go, or, if those lie
// in memory, where large ones go: what is spilled into memory would count as the memory of the task.
func workParent(wanted string) string {
	if wanted != "" {
		return wanted
	}
	if parent := os.TempDir(); !inMemory(parent) {
		return parent
	}
	return "/var/tmp"
}

// noRoomError says that there is not enough disk.
type noRoomError string

func (e noRoomError) Error() string { return string(e) }

// makeWork makes a working directory below parent, where so much must be free: else the error is a noRoomError.
func makeWork(parent string, need resource.Amount) (*workplace, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(parent, &fs); err != nil {
		return nil, fmt.Errorf("directory %s: %w", parent, err)
	}
	if free := resource.Amount(fs.Bavail) * resource.Amount(fs.Bsize); free < need {
		return nil, noRoomError(fmt.Sprintf("directory %s has %s free: must be at least %s; --dir names another", parent, resource.FormatMemory(free), resource.FormatMemory(need)))
	}
	hidden, err := os.MkdirTemp(parent, "."+workPrefix)
	if err != nil {
		return nil, fmt.Errorf("make the working directory: %w", err)
	}
	w := &workplace{dir: filepath.Join(parent, strings.TrimPrefix(filepath.Base(hidden), "."))}
	if w.lock, err = os.OpenFile(filepath.Join(hidden, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err == nil {
		err = errors.Join(unix.Flock(int(w.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), os.Mkdir(filepath.Join(hidden, inputDir), 0o700), os.Rename(hidden, w.dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the working directory: %w", err), os.RemoveAll(hidden))
	}
	return w, nil
}

// remove takes the directory away, and the swap in it first, whatever has become of ctx. Where that cannot go, because
// others have no memory for what they keep in it, all stays for the next demonstration.
func (w *workplace) remove(ctx context.Context) error {
	defer w.lock.Close()
	if err := removeSwap(context.WithoutCancel(ctx), w.dir); err != nil {
		return fmt.Errorf("%w; the next demonstration tries again", err)
	}
	return os.RemoveAll(w.dir)
}

// sweep ends and removes what demonstrations of this user that were killed have left below parent: containers, swap, and
// directories. It returns how many there were.
func sweep(ctx context.Context, parent string) (swept int, err error) {
	left, err := filepath.Glob(filepath.Join(parent, workPrefix+"*"))
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
			return swept, fmt.Errorf("remove what is left of an earlier demonstration in %s: %w", dir, errors.Join(err, w.lock.Close()))
		}
	}
	return swept, nil
}

// abandoned locks a working directory of this user that nobody works in; nil if it is none.
func abandoned(dir string) *workplace {
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
	return &workplace{dir, lock}
}

// clear removes what was made in w: containers first, because their memory may lie in the swap.
func (w *workplace) clear(ctx context.Context) error {
	states, err := filepath.Glob(filepath.Join(w.dir, "state-*"))
	if err != nil {
		return err
	}
	whole, err := agent.Capacity(0, 0)
	if err != nil {
		return err
	}
	for _, state := range states {
		m, err := reopenMachine(state, &flexPolicy, whole)
		if err != nil {
			return err
		}
		if err := m.close(ctx); err != nil {
			return err
		}
	}
	return w.remove(ctx)
}
