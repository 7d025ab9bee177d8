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
	group      *Group
	stat, swap int    // swap is -1 where memory.stat contains it
	charged    [2]int // files of Charged; -1 is unknown
	work       int    // file with the CPU time; -1 is unknown
	throttled  int    // file with the time for which a quota held it: work, if that has it; -1 is unknown
	transfers  int    // file with the bytes read and written; -1 is unknown
	countsAll  bool   // transfers counts every device: version 2
	words      *statWords
	buffer     [8192]byte
}

// Gauge opens a gauge. The open gauge does not depend on the group's name any more.
func (g *Group) Gauge() (*Gauge, error) {
	open := func(dir, name string) (int, error) {
		return unix.Open(filepath.Join(dir, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	orNone := func(fd int, err error) int {
		if err != nil {
			return -1
		}
		return fd
	}
	dir, files := g.dirs[Memory], memoryOf[g.version[Memory]]
	stat, err := open(g.home(dir), "memory.stat")
	if err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.name, err)
	}
	out := &Gauge{group: g, stat: stat, swap: -1, work: -1, throttled: -1, transfers: -1, words: &files.stat,
		charged: [2]int{orNone(open(dir, files.usage)), orNone(open(dir, files.charged))}}
	if files.swap != "" { // without swap in the kernel there is no such file, and nothing swapped
		out.swap = out.charged[1]
	}
	if g.version[CPUAcct] == V1 {
		out.work = orNone(open(g.dirs[CPUAcct], "cpuacct.usage"))
	} else if g.unified != "" {
		out.work = orNone(open(g.unified, "cpu.stat"))
	}
	quota, bounded := g.File(CPU, "cpu.stat")
	switch {
	case bounded && g.version[CPUAcct] != V1 && quota == filepath.Join(g.unified, "cpu.stat"):
		out.throttled = out.work
	case bounded:
		out.throttled = orNone(open(filepath.Split(quota)))
	}
	switch g.version[IO] {
	case V1:
		for _, file := range transfersV1 {
			if out.transfers < 0 {
				out.transfers = orNone(open(g.dirs[IO], file))
			}
		}
	case V2:
		out.transfers = orNone(open(g.dirs[IO], "io.stat"))
		out.countsAll = true
	}
	return out, nil
}

// Transfers returns the bytes read from and written to disks. ok is false where the kernel does not report them, and on
// version 1 before the first transfer on a device that it counts; see AccountIO.
func (g *Gauge) Transfers() (read, written int64, ok bool) {
	if g.transfers < 0 {
		return 0, 0, false
	}
	text, err := g.text(g.transfers)
	if err != nil {
		return 0, 0, false
	}
	if g.countsAll {
		read, written = parseIOStat(string(text))
		return read, written, true
	}
	return parseServiceBytes(string(text))
}

// CPUTime returns the CPU time used; ok is false where the kernel does not report it.
func (g *Gauge) CPUTime() (used time.Duration, ok bool) {
	return parseCPUTime(g.optional(g.work)).Get()
}

// CPUTimes returns the CPU time used, and for how long the quota of CPU time has kept the programs from running, summed
// over the CPUs; each is missing where the kernel does not report it.
func (g *Gauge) CPUTimes() (used, throttled Maybe[time.Duration]) {
	text := g.optional(g.work)
	used = parseCPUTime(text)
	if g.throttled != g.work {
		text = g.optional(g.throttled)
	}
	return used, parseThrottled(text)
}

// parseCPUTime finds the CPU time in the file that has it.
func parseCPUTime(text []byte) Maybe[time.Duration] {
	if ns, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil {
		return Known(time.Duration(ns))
	}
	if us := field(text, "usage_usec"); us > 0 {
		return Known(time.Duration(us) * time.Microsecond)
	}
	return Maybe[time.Duration]{}
}

// parseThrottled finds in cpu.stat for how long a quota has held the programs.
func parseThrottled(text []byte) Maybe[time.Duration] {
	if ns, ok := counted(text, "throttled_time"); ok { // version 1
		return Known(time.Duration(ns))
	}
	if us, ok := counted(text, "throttled_usec"); ok {
		return Known(time.Duration(us) * time.Microsecond)
	}
	return Maybe[time.Duration]{}
}

// Read returns the current values. The error is ErrGone after the group was removed.
func (g *Gauge) Read() (Held, error) {
	h, _, err := g.held()
	return h, err
}

// held is Read. counted says that the kernel counts swapped memory.
func (g *Gauge) held() (h Held, swapCounted bool, err error) {
	swapped := int64(0)
	if g.swap >= 0 {
		if swapped, err = g.count(g.swap); err != nil {
			return h, false, err
		}
	}
	text, err := g.text(g.stat)
	if err != nil {
		return h, false, err
	}
	_, word := counted(text, g.words.swap)
	return g.words.held(text, swapped), g.swap >= 0 || word, nil
}

// Reading takes the sample that Group.Read takes, without OOMKills, at a fraction of its cost. The error is ErrGone
// after the group was removed.
func (g *Gauge) Reading() (Reading, error) {
	var r Reading
	h, swapCounted, err := g.held()
	if err != nil {
		return r, err
	}
	r.AnonBytes, r.FileBytes = Known(h.InMemory()), Known(h.FileBytes)
	if swapCounted {
		r.SwapBytes = Known(h.SwapBytes)
	}
	if g.charged[0] >= 0 {
		bytes, err := g.count(g.charged[0])
		if err != nil {
			return r, err
		}
		r.MemoryBytes = Known(bytes)
	}
	dir, files := g.group.dirs[Memory], memoryOf[g.group.version[Memory]]
	r.PeakBytes, r.MemoryLimitBytes = parseCount(slurp(dir, files.peak)), parseBound(slurp(dir, files.limit))
	if used, ok := g.CPUTime(); ok {
		r.CPUTime = Known(used)
	}
	if read, written, ok := g.Transfers(); ok {
		r.ReadBytes, r.WrittenBytes = Known(read), Known(written)
	}
	if text, err := readFile(filepath.Join(g.group.home(g.group.dir()), "cgroup.procs")); err == nil {
		r.Procs = Known(int64(bytes.Count(text, []byte{'\n'})))
	}
	return r, nil
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
		return 0, fmt.Errorf("measure group %s: %w", g.group.name, err)
	}
	return n, nil
}

// optional is text, and nothing if the file is unknown, or cannot be read.
func (g *Gauge) optional(fd int) []byte {
	if fd < 0 {
		return nil
	}
	text, _ := g.text(fd)
	return text
}

func (g *Gauge) text(fd int) ([]byte, error) {
	n, err := unix.Pread(fd, g.buffer[:], 0)
	if errors.Is(err, unix.ENODEV) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("measure group %s: %w", g.group.name, err)
	}
	return g.buffer[:n], nil
}

// Close closes the files.
func (g *Gauge) Close() {
	unix.Close(g.stat)
	if g.throttled == g.work {
		g.throttled = -1
	}
	for _, fd := range append(g.charged[:], g.work, g.throttled, g.transfers) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// field returns the number after a word at the beginning of a line, 0 if no line begins with the word.
func field(text []byte, key string) int64 {
	n, _ := counted(text, key)
	return n
}

// counted returns the number after a word at the beginning of a line; ok is false if no line begins with the word, or
// what follows is no number of at least 0.
func counted(text []byte, key string) (n int64, ok bool) {
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
				return 0, false
			}
			return n, true
		}
	}
	return 0, false
}
