package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Held is what a group holds that only swap can take.
type Held struct {
	// AnonBytes is anonymous memory and memory shared between processes, which the kernel counts among page cache.
	AnonBytes, SwapBytes int64
	// UnmappedBytes is memory that was read back from swap ahead of need, or written to swap and not given up yet: no program has
	// it mapped. Version 1 counts it neither as anonymous nor as swapped; version 2 as swapped, and here it is 0.
	UnmappedBytes int64
	// AnonRefaults counts pages that came back from swap soon after they went; 0 where the kernel does not tell.
	AnonRefaults int64
	// LockedBytes cannot be swapped, for programs locked it.
	LockedBytes int64
	// FileBytes is page cache, without what processes share; MappedBytes is what programs have mapped of it, and FileRefaults counts pages of files that came back soon after they were
	// taken away; 0 where the kernel does not tell.
	FileBytes, MappedBytes, FileRefaults int64
	// MajorFaults counts faults of programs that read from a disk, swap too.
	MajorFaults int64
}

// InMemory is what is in memory, bytes, mapped by a program or not.
func (h *Held) InMemory() int64 { return h.AnonBytes + h.UnmappedBytes }

// Charged is what the kernel charges a group for, pages of every kind: cheap to read, and while it stays the same below the
// limit, Held does.
type Charged struct {
	Bytes int64
	// SwapBytes is what is swapped, on version 1 with Bytes in it; 0 where the kernel does not count it.
	SwapBytes int64
}

// Gauge reads Held again and again, at a fraction of what Read costs: it keeps the files open. It is not for several
// goroutines at once. Close it.
type Gauge struct {
	name       string
	stat, swap int    // swap is -1 where memory.stat tells it
	charged    [2]int // of Charged; -1 is unknown
	work       int    // tells the CPU time, -1 is unknown
	keys       heldKeys
	listed     []string // lists that hold every page that only swap can take, but for locked ones; where UnmappedBytes needs them
	buffer     [8192]byte
}

// heldKeys are the words of memory.stat for Held. Of version 2 swap stands elsewhere.
type heldKeys struct{ anon, shared, swap, locked, files, mapped, anonRefaults, fileRefaults, majorFaults string }

var heldV1 = heldKeys{"total_rss", "total_shmem", "total_swap", "total_unevictable", "total_cache", "total_mapped_file", "total_workingset_refault_anon",
	"total_workingset_refault_file", "total_pgmajfault"}

var heldV2 = heldKeys{"anon", "shmem", "", "unevictable", "file", "file_mapped", "workingset_refault_anon", "workingset_refault_file", "pgmajfault"}

// Gauge opens a gauge; nothing in it depends on the group's name later on.
func (g *Group) Gauge() (*Gauge, error) {
	dir := g.dirs[Memory]
	openIn := func(dir, name string) (int, error) {
		return unix.Open(filepath.Join(dir, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	open := func(name string) (int, error) { return openIn(dir, name) }
	orNone := func(fd int, err error) int {
		if err != nil {
			return -1
		}
		return fd
	}
	out := &Gauge{name: g.name, swap: -1, work: -1, keys: heldV1,
		listed: []string{"total_inactive_anon", "total_active_anon"}}
	var err error
	if out.stat, err = open("memory.stat"); err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	if g.version[Memory] == V2 {
		out.keys, out.listed = heldV2, nil
		// Without swap in the kernel there is no such file, and nothing swapped.
		out.swap = orNone(open("memory.swap.current"))
		out.charged = [2]int{orNone(open("memory.current")), out.swap}
	} else {
		out.charged = [2]int{orNone(open("memory.usage_in_bytes")), orNone(open("memory.memsw.usage_in_bytes"))}
	}
	if g.version[CPUAcct] == V1 {
		out.work = orNone(openIn(g.dirs[CPUAcct], "cpuacct.usage"))
	} else if g.unified != "" {
		out.work = orNone(openIn(g.unified, "cpu.stat"))
	}
	return out, nil
}

// CPUTime returns what was used of processors; ok is false where the kernel does not tell.
func (g *Gauge) CPUTime() (used time.Duration, ok bool) {
	if g.work < 0 {
		return 0, false
	}
	text, err := g.text(g.work)
	if err != nil {
		return 0, false
	}
	if ns, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil {
		return time.Duration(ns), true
	}
	used = time.Duration(field(text, "usage_usec")) * time.Microsecond
	return used, used > 0
}

// Read returns what is held now. The error is ErrGone once the group is removed.
func (g *Gauge) Read() (Held, error) {
	text, err := g.text(g.stat)
	if err != nil {
		return Held{}, err
	}
	shared := field(text, g.keys.shared)
	h := Held{AnonBytes: field(text, g.keys.anon) + shared, AnonRefaults: field(text, g.keys.anonRefaults),
		LockedBytes: field(text, g.keys.locked), FileRefaults: field(text, g.keys.fileRefaults),
		MajorFaults: field(text, g.keys.majorFaults)}
	h.FileBytes = max(0, field(text, g.keys.files)-shared)
	h.MappedBytes = max(0, field(text, g.keys.mapped)-shared) // shared memory counts as a mapped file
	listed := int64(0)
	for _, key := range g.listed {
		listed += field(text, key)
	}
	h.UnmappedBytes = max(0, listed-h.AnonBytes)
	if g.keys.swap != "" {
		h.SwapBytes = field(text, g.keys.swap)
	} else if g.swap >= 0 {
		if h.SwapBytes, err = g.count(g.swap); err != nil {
			return Held{}, err
		}
	}
	return h, nil
}

// Charged returns what is charged now. The error is ErrGone once the group is removed.
func (g *Gauge) Charged() (c Charged, err error) {
	if c.Bytes, err = g.count(g.charged[0]); err == nil && g.charged[1] >= 0 {
		c.SwapBytes, err = g.count(g.charged[1])
	}
	return c, err
}

func (g *Gauge) count(fd int) (int64, error) {
	text, err := g.text(fd)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	return n, nil
}

func (g *Gauge) text(fd int) ([]byte, error) {
	n, err := unix.Pread(fd, g.buffer[:], 0)
	if errors.Is(err, unix.ENODEV) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	return g.buffer[:n], nil
}

// Close closes the files.
func (g *Gauge) Close() {
	unix.Close(g.stat)
	for _, fd := range append(g.charged[:], g.work) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// field returns the number behind a word at the beginning of a line, 0 if there is none.
func field(text []byte, key string) int64 {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(key) && line[len(key)] == ' ' && string(line[:len(key)]) == key {
			n, err := strconv.ParseInt(string(line[len(key)+1:]), 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return n
		}
	}
	return 0
}
