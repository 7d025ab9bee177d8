package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Tally adds up the bytes that the processes of a group read from disks and write to them, as the kernel counts them for
// each process: a buffered write counts at once, when it makes a page of the cache dirty, whereas the counters of groups
// have it late (version 2) or never (version 1). What a process transfers between the last reading of the tally and its
// own end is missing. One goroutine at a time may use it.
type Tally struct {
	group *Group
	last  map[int]int64 // by process
	total int64
}

// Tally begins to count. The error is ErrUnsupported if the kernel does not count transfers of processes, ErrGone if the
// group does not exist, and fs.ErrPermission if this process may not see what the group's processes transfer.
func (g *Group) Tally() (*Tally, error) {
	t := &Tally{group: g, last: map[int]int64{}}
	pids, err := g.Procs()
	if err != nil {
		return nil, err
	}
	for _, pid := range append(pids, os.Getpid()) {
		n, err := transfers(pid)
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnsupported) {
			return nil, fmt.Errorf("see what process %d transfers: %w", pid, err)
		}
		if err == nil {
			t.last[pid] = n
		}
	}
	return t, nil
}

// Read returns the bytes since the tally began. The only error is ErrGone.
func (t *Tally) Read() (bytes int64, err error) {
	pids, err := t.group.Procs()
	if err != nil {
		return t.total, err
	}
	now := make(map[int]int64, len(pids))
	for _, pid := range pids {
		n, err := transfers(pid)
		if err != nil {
			continue // It has ended.
		}
		now[pid] = n
		before := t.last[pid]
		if n < before { // another process has its id
			before = 0
		}
		t.total += n - before
	}
	t.last = now
	return t.total, nil
}

// transfers returns what a process has read and written, bytes.
func transfers(pid int) (int64, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	text, err := os.ReadFile(filepath.Join(dir, "io"))
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Stat(dir); gone == nil {
			return 0, ErrUnsupported
		}
	}
	if err != nil {
		return 0, err
	}
	return parseProcessIO(string(text))
}
