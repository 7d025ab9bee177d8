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

// Held is the memory of a group that the kernel can free only by swapping, and its page cache.
type Held struct {
	// AnonBytes is anonymous memory and memory shared between processes, which the kernel counts as page cache.
	AnonBytes, SwapBytes int64
	// UnmappedBytes is memory that no program has mapped: read back from swap ahead of need, or written to swap and not
	// freed yet. Version 1 counts it neither as anonymous nor as swapped. Version 2 counts it as swapped; here it is 0
	// then.
	UnmappedBytes int64
	// AnonRefaults counts pages that came back soon after they were swapped out; 0 where the kernel does not report it.
	AnonRefaults int64
	// LockedBytes is memory that programs locked, so that it cannot be swapped.
	LockedBytes int64
	// FileBytes is page cache without memory shared between processes. MappedBytes is the part of it that programs have
	// mapped. FileRefaults counts pages of files that came back soon after they were evicted; 0 where the kernel does
	// not report it.
	FileBytes, MappedBytes, FileRefaults int64
	// MajorFaults counts page faults that read from a disk, swap included.
	MajorFaults int64
}

// InMemory is the anonymous and shared memory, bytes, that is in memory, whether or not a program has mapped it.
func (h *Held) InMemory() int64 { return h.AnonBytes + h.UnmappedBytes }

// Charged is what the kernel charges to a group, for pages of every kind. It is cheap to read. While it is unchanged
// and below the limit, Held is unchanged, too.
type Charged struct {
	Bytes int64
	// SwapBytes is the swapped memory; 0 where the kernel does not count it. On version 1 it is the sum with Bytes.
	SwapBytes int64
}

// Gauge reads Held repeatedly, at a fraction of the cost of Read: it keeps the files open. Only one goroutine at a time
// may use it. The caller closes it.
type Gauge struct {
	name       string
	stat, swap int    // swap is -1 where memory.stat contains it
	charged    [2]int // files of Charged; -1 is unknown
	work       int    // file with the CPU time; -1 is unknown
	keys       heldKeys
	listed     []string // lists of every page that only swap can free, except locked pages; set where UnmappedBytes needs them
	buffer     [8192]byte
}

// heldKeys are the words of memory.stat for Held. Version 2 reports swap in another file.
type heldKeys struct{ anon, shared, swap, locked, files, mapped, anonRefaults, fileRefaults, majorFaults string }

var heldV1 = heldKeys{"total_rss", "total_shmem", "total_swap", "total_unevictable", "total_cache", "total_mapped_file", "total_workingset_refault_anon",
	"total_workingset_refault_file", "total_pgmajfault"}

var heldV2 = heldKeys{"anon", "shmem", "", "unevictable", "file", "file_mapped", "workingset_refault_anon", "workingset_refault_file", "pgmajfault"}

// Gauge opens a gauge. The open gauge does not depend on the group's name any more.
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

// CPUTime returns the CPU time used; ok is false where the kernel does not report it.
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

// Read returns the current values. The error is ErrGone after the group was removed.
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

// Charged returns the current charge. The error is ErrGone after the group was removed.
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

// field returns the number after a word at the beginning of a line, 0 if no line begins with the word.
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
