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

// Kill kills every process in the group and in all groups below it. It returns when no process is left, or with ErrBusy
// when ctx ends. Frozen processes die, too. Kill lifts the CPU quota first, because dying takes CPU time: at a
// hundredth of a core it would take a hundred times as long.
func (g *Group) Kill(ctx context.Context) error {
	if len(members(g.tree())) == 0 {
		return nil
	}
	_ = g.Apply(ctx, Limits{CPUMillicores: Unlimited()}) // If this fails they die as well, only later.
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

// killOnce sends SIGKILL once to every process and returns the number of processes. It freezes them while it sends the
// signals, so that version 1 processes cannot fork ahead of the signals; they die when they are thawed.
func (g *Group) killOnce() int {
	dirs := g.tree()
	if len(members(dirs)) == 0 {
		return 0
	}
	if g.unified != "" {
		_ = writeFile(filepath.Join(g.unified, "cgroup.kill"), "1") // Linux 5.14 and later; signals have the same effect.
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
	return max(1, len(pids)) // There is none now: the caller looks once more.
}

// Terminate asks every process that Procs lists to end, but not the processes of groups below. It sends SIGTERM, and
// then SIGCONT, because a process that a signal has stopped handles SIGTERM only when it continues. A process that
// ended meanwhile gets no signal, and neither does another process that has the same number since then. Frozen
// processes handle both signals when they are thawed.
func (g *Group) Terminate() {
	list := func() []int { return members(g.homes()) }
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		signal(list(), list, sig)
	}
}

// signal sends a signal to the processes of pids that are members. Between the listing of the members and the signal a
// process may end and another one may get its number. Therefore signal opens a descriptor of each process first, and
// signals it if it is still a member. Kernels before Linux 5.3 have no descriptors of processes.
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
		out = append(out, below(top)...)
	}
	return out
}

// below returns a directory of a group and those of all groups below it, children before parents.
func below(top string) (dirs []string) {
	if isLeaf(top) {
		return []string{top}
	}
	if inner := filepath.Join(top, innerName); links(top) == 3 && isLeaf(inner) { // quicker than to list the files
		return []string{inner, top}
	}
	_ = filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // Removed meanwhile: it contains nothing.
		}
		if entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	slices.Reverse(dirs)
	return dirs
}

// isLeaf reports whether there is no directory in a directory; false if that is unknown.
func isLeaf(dir string) bool { return links(dir) == 2 }

// links returns how many links a directory has, its name and ".", and ".." of each directory in it; 0 if that is
// unknown.
func links(dir string) uint64 {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0
	}
	return uint64(st.Nlink)
}

// Remove kills the processes that are left and removes the group and all groups below it. It returns no error if the
// group is gone already, and ErrBusy if the removal took longer than ctx allows.
func (g *Group) Remove(ctx context.Context) error {
	if err := g.exists(); errors.Is(err, ErrGone) {
		if _, statErr := os.Stat(g.dir()); statErr == nil {
			return nil // Another group has the path now; it is not ours to kill.
		}
	}
	return g.purge(ctx)
}

// Discard does what Remove does, for whatever exists of the group called name below the root. The group may exist in
// some hierarchies only, because the process that made or removed it was killed meanwhile.
func (r *Root) Discard(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return r.child(name, r.children).purge(ctx)
}

// purge kills and removes until nothing is left. Most groups are empty, with no groups below them, and are removed at
// once: the kernel refuses to remove others.
func (g *Group) purge(ctx context.Context) error {
	dirs := g.each()
	if dir, ok := g.dirs[Memory]; ok {
		dirs = slices.Insert(dirs, 0, filepath.Join(dir, innerName)) // there or not
	}
	if removeAll(dirs) == nil {
		return nil
	}
	pause := newPause(500*time.Microsecond, 20*time.Millisecond)
	for {
		if err := g.Kill(ctx); err != nil {
			return fmt.Errorf("remove group %s: %w", g.name, err)
		}
		err := removeAll(g.tree())
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

// removeAll removes directories; the files of a group go with its directory.
func removeAll(dirs []string) error {
	for _, dir := range dirs {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
		}
	}
	return nil
}
