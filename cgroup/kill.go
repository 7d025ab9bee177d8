package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Kill kills every process in the group and in all groups below it, and returns once there is none left, or with ErrBusy
// when ctx ends. Frozen processes die too. The CPU quota is lifted, because dying takes CPU time: at a hundredth of a core
// it would take a hundred times as long.
func (g *Group) Kill(ctx context.Context) error {
	if len(members(g.tree())) > 0 {
		_ = g.Apply(ctx, Limits{CPUMillicores: Unlimited()}) // Without it they die as well, only later.
	}
	pause := newPause(500*time.Microsecond, 20*time.Millisecond)
	for {
		left := g.killOnce()
		if left == 0 {
			return nil
		}
		if err := pause.wait(ctx); err != nil {
			return fmt.Errorf("kill group %s: %d processes left: %w: %w", g.name, left, ErrBusy, err)
		}
	}
}

// killOnce sends SIGKILL once to everything there is and returns how many processes that was. Standing still while
// signals go out keeps version 1 processes from forking ahead of them; they die on thawing.
func (g *Group) killOnce() int {
	dirs := g.tree()
	if len(members(dirs)) == 0 {
		return 0
	}
	if g.unified != "" {
		_ = writeFile(filepath.Join(g.unified, "cgroup.kill"), "1") // Linux 5.14 and later; signals do the same.
	}
	legacy := g.version[Freezer] == V1
	if legacy {
		_ = g.setFrozen(frozen)
	}
	pids := members(dirs)
	signal(pids, func() []int { return members(dirs) }, unix.SIGKILL)
	if legacy {
		for _, dir := range dirs {
			if isFreezerDir(dir) {
				_ = writeFile(filepath.Join(dir, "freezer.state"), "THAWED")
			}
		}
	}
	return max(1, len(pids)) // None now: the caller looks once more.
}

// Signal sends a signal to every process that is in the group, not in those below it. One that has ended meanwhile gets none, and
// neither does another that has its number since.
func (g *Group) Signal(sig unix.Signal) {
	list := func() []int { return members(g.each()) }
	signal(list(), list, sig)
}

// signal sends a signal to those of pids that are members. Between a look at the members and a signal a process may end, and another
// get its number: so each is held on to first, and signalled if it is a member still. Kernels before Linux 5.3 cannot hold on.
func signal(pids []int, members func() []int, sig unix.Signal) {
	const together = 64 // open files
	for some := range slices.Chunk(pids, together) {
		held := map[int]int{}
		for _, pid := range some {
			switch fd, err := unix.PidfdOpen(pid, 0); {
			case err == nil:
				held[pid] = fd
			case !errors.Is(err, unix.ESRCH):
				_ = unix.Kill(pid, sig)
			}
		}
		if len(held) == 0 {
			continue
		}
		for _, pid := range members() {
			if fd, ok := held[pid]; ok && unix.PidfdSendSignal(fd, sig, nil, 0) == unix.ENOSYS {
				_ = unix.Kill(pid, sig)
			}
		}
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}
}

// members returns the processes in any of dirs.
func members(dirs []string) []int {
	var pids []int
	for _, dir := range dirs {
		pids = append(pids, parseProcs(slurp(dir, "cgroup.procs"))...)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

func isFreezerDir(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "freezer.state"))
	return err == nil
}

// tree returns the directories of the group and of all groups below it in every hierarchy, children before parents.
func (g *Group) tree() []string {
	var out []string
	for _, top := range g.each() {
		var dirs []string
		_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // Removed meanwhile: there is nothing in it.
			}
			if entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs)
		out = append(out, dirs...)
	}
	return out
}

// Remove kills what is left inside and removes the group and all groups below it. A group that is gone already is no
// error. It returns ErrBusy if that took longer than ctx allows.
func (g *Group) Remove(ctx context.Context) error {
	if err := g.exists(); errors.Is(err, ErrGone) {
		if _, statErr := os.Stat(g.dir()); statErr == nil {
			return nil // Another group has the path now, and is not ours to kill.
		}
	}
	return g.purge(ctx)
}

// Discard is Remove for whatever there is of the group called name below the root, even if it was made, or removed, in some
// hierarchies only, because whoever was at it was killed meanwhile.
func (r *Root) Discard(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return r.child(name, r.children).purge(ctx)
}

// purge kills and removes until nothing is left.
func (g *Group) purge(ctx context.Context) error {
	pause := newPause(500*time.Microsecond, 20*time.Millisecond)
	for {
		if err := g.Kill(ctx); err != nil {
			return fmt.Errorf("remove group %s: %w", g.name, err)
		}
		err := g.removeDirs()
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
			return fmt.Errorf("remove group %s: %w", g.name, err)
		}
		if waitErr := pause.wait(ctx); waitErr != nil {
			return fmt.Errorf("remove group %s: %w: %w", g.name, ErrBusy, err)
		}
	}
}

// removeDirs removes every directory of the group; its files vanish with it.
func (g *Group) removeDirs() error {
	for _, dir := range g.tree() {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	return nil
}
