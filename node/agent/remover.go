package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
)

// remover removes what is left of containers that have ended: their folders, and their private temporary folders. In
// the latter a program made what it pleased, so that their removal may take any time, or fail. No loop waits for it:
// a folder is renamed into that of the remover, which is one step, and removed from there by a goroutine, now or
// after the next start.
type remover struct {
	dir  string // with the folders of containers that are to be removed
	log  *slog.Logger
	more chan struct{} // has an element when there are new folders
}

// take has the folder of a container removed, which need not exist.
func (r *remover) take(f folder) error {
	if _, err := os.Lstat(string(f)); os.IsNotExist(err) {
		return nil
	}
	if err := durable.Move(string(f), r.place(f)); err != nil {
		return err
	}
	r.wake()
	return nil
}

// takeTmp has the private temporary folder of a container removed, if it has one, but not the folder of the container.
// The record that names it comes to the remover in a folder of its own, in one step: the remover would take an empty
// folder for one that is removed already.
func (r *remover) takeTmp(f folder) error {
	own := folder(f.path("remains"))
	if f.exists(tmpRecord) {
		if err := durable.MakeDir(string(own)); err != nil {
			return err
		}
		if err := durable.Move(f.path(tmpRecord), own.path(tmpRecord)); err != nil {
			return err
		}
	} else if !f.exists("remains") { // It is there if this was interrupted.
		return nil
	}
	if err := durable.Move(string(own), r.place(f)); err != nil {
		return err
	}
	r.wake()
	return nil
}

// place returns where the folder of a container is renamed to. A loss of power may undo that, so its name may come
// again.
func (r *remover) place(f folder) string {
	return filepath.Join(r.dir, fmt.Sprintf("%s-%d", filepath.Base(string(f)), time.Now().UnixNano()))
}

func (r *remover) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// run removes folders until ctx ends.
func (r *remover) run(ctx context.Context) {
	giveWay()
	failed := map[string]bool{}
	for {
		r.all(ctx, failed)
		select {
		case <-r.more:
		case <-ctx.Done():
			return
		}
	}
}

// turn is how long the remover stays with one folder while others wait: a program that still runs elsewhere could
// make files in it for ever.
const turn = 10 * time.Second

// all removes all folders but those that failed, to which it adds those that cannot be removed.
func (r *remover) all(ctx context.Context, failed map[string]bool) {
	for again := true; again; {
		again = false
		entries, err := os.ReadDir(r.dir)
		if err != nil {
			r.log.Warn("cannot remove what is left of containers", "error", err)
			return
		}
		for _, e := range entries {
			if failed[e.Name()] {
				continue
			}
			now, end := context.WithTimeout(ctx, turn)
			err := remove(now, folder(filepath.Join(r.dir, e.Name())))
			late := now.Err() != nil
			end()
			switch {
			case ctx.Err() != nil:
				return
			case err == nil:
			case late:
				again = true
			default:
				failed[e.Name()] = true
				r.log.Warn("cannot remove what is left of a container, trying again at the next start", "folder", e.Name(),
					"error", err)
			}
		}
	}
}

// remove removes the folder of a container, and before that its private temporary folder.
func remove(ctx context.Context, f folder) error {
	var path string
	if f.get(tmpRecord, &path) == nil {
		if err := durable.Remove(ctx, path); err != nil {
			return err
		}
	}
	return durable.Remove(ctx, string(f))
}

// giveWay gives the calling goroutine a thread of its own that runs when the other threads of the daemon have no work.
func giveWay() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) // It is allowed to everybody.
}
