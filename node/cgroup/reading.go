package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Reading is one sample of a group and everything below it. Each file was read once, one after the other, so values
// from different files are not of exactly the same moment.
type Reading struct {
	// MemoryBytes is anonymous memory, page cache and kernel memory; AnonBytes and FileBytes are its two large parts.
	// AnonBytes contains all memory that only swap can free, as Held.InMemory does: also memory that processes share,
	// and on version 1 memory that waits there although it has a copy in swap. The kernel counts both as page cache.
	MemoryBytes Maybe[int64]
	AnonBytes   Maybe[int64]
	FileBytes   Maybe[int64]
	SwapBytes   Maybe[int64]
	// PeakBytes is the largest MemoryBytes since the group was made.
	PeakBytes Maybe[int64]
	// MemoryLimitBytes bounds MemoryBytes; NoLimit if there is no bound.
	MemoryLimitBytes Maybe[int64]
	// OOMKills counts processes that the kernel killed for memory. In version 1 it counts this group only, without the
	// groups below it, other than its inner group.
	OOMKills Maybe[int64]

	// CPUTime is the CPU time used since the group was made.
	CPUTime Maybe[time.Duration]

	// ReadBytes and WrittenBytes are totals over all devices since the group was made. Version 1 does not count them
	// before some group has had a throttle rule on the device (AccountIO makes one); until then they are missing.
	ReadBytes    Maybe[int64]
	WrittenBytes Maybe[int64]

	// Procs counts the processes that Group.Procs lists. Refused counts how often the kernel refused the group a process
	// or thread at its bound.
	Procs   Maybe[int64]
	Refused Maybe[int64]
}

// Read takes a sample. The only error is ErrGone, if the group no longer exists; a value that cannot be read is
// missing.
func (g *Group) Read() (Reading, error) {
	if err := g.exists(); err != nil {
		return Reading{}, err
	}
	var r Reading
	g.readMemory(&r)
	r.CPUTime = g.cpuTime()
	g.readIO(&r)
	if text, err := readFile(filepath.Join(g.home(g.dir()), "cgroup.procs")); err == nil {
		r.Procs = Known(int64(bytes.Count(text, []byte{'\n'})))
	}
	if events, ok := g.File(PIDs, "pids.events"); ok {
		r.Refused = parseKeyed(slurp(filepath.Split(events))).first("max")
	}
	return r, nil
}

// MemoryLimit returns the limit in force, bytes or NoLimit, at a fraction of the cost of Read.
func (g *Group) MemoryLimit() Maybe[int64] {
	if files := memoryOf[g.version[Memory]]; files != nil {
		return parseBound(slurp(g.dirs[Memory], files.limit))
	}
	return Maybe[int64]{}
}

// oomKills is Reading.OOMKills. Version 1 counts a kill in the group of the process, version 2 in all above it, too.
func (g *Group) oomKills() (sum Maybe[int64]) {
	files := memoryOf[g.version[Memory]]
	if files == nil {
		return sum
	}
	dirs := []string{g.dirs[Memory]}
	if g.inner != "" && g.version[Memory] == V1 {
		dirs = append(dirs, g.inner)
	}
	for _, dir := range dirs {
		if n, ok := parseKeyed(slurp(dir, files.kills)).first("oom_kill").Get(); ok {
			sum = Known(sum.Or(0) + n)
		}
	}
	return sum
}

// OwnAnonBytes is Reading.AnonBytes of the group that this process was in when Discover ran.
func (h *Host) OwnAnonBytes() Maybe[int64] {
	var r Reading
	h.ownMemory().readMemory(&r)
	return r.AnonBytes
}

// OwnOOMKills is Reading.OOMKills of the group that this process was in when Discover ran.
func (h *Host) OwnOOMKills() Maybe[int64] { return h.ownMemory().oomKills() }

// ownMemory returns the group that this process was in, with the controller of memory alone, to be read.
func (h *Host) ownMemory() *Group {
	own := h.serves[Memory]
	return &Group{dirs: map[Controller]string{Memory: own.Own}, version: map[Controller]Version{Memory: own.Version}}
}

func (g *Group) readMemory(r *Reading) {
	dir, files := g.dirs[Memory], memoryOf[g.version[Memory]]
	if files == nil {
		return
	}
	r.MemoryBytes, r.PeakBytes = parseCount(slurp(dir, files.usage)), parseCount(slurp(dir, files.peak))
	r.MemoryLimitBytes = g.MemoryLimit()
	r.OOMKills = g.oomKills()
	stat := slurp(g.home(dir), "memory.stat")
	if files.swap != "" {
		r.SwapBytes = parseCount(slurp(dir, files.swap))
	} else {
		r.SwapBytes = parseKeyed(stat).first(files.stat.swap)
	}
	if stat == "" {
		return
	}
	held := files.stat.held([]byte(stat), r.SwapBytes.Or(0))
	r.AnonBytes, r.FileBytes = Known(held.InMemory()), Known(held.FileBytes)
	if r.SwapBytes.ok {
		r.SwapBytes = Known(held.SwapBytes)
	}
}

// cpuTime is Reading.CPUTime.
func (g *Group) cpuTime() (used Maybe[time.Duration]) {
	if g.version[CPUAcct] == V1 {
		used = duration(parseCount(slurp(g.dirs[CPUAcct], "cpuacct.usage")), time.Nanosecond)
	}
	if !used.ok && g.unified != "" {
		used = duration(parseKeyed(slurp(g.unified, "cpu.stat")).first("usage_usec"), time.Microsecond)
	}
	return used
}

// transfersV1 are the files of version 1 with the bytes read and written, the better one first.
var transfersV1 = []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"}

func (g *Group) readIO(r *Reading) {
	dir := g.dirs[IO]
	switch g.version[IO] {
	case V1:
		for _, file := range transfersV1 {
			if read, written, counted := parseServiceBytes(slurp(dir, file)); counted {
				r.ReadBytes, r.WrittenBytes = Known(read), Known(written)
				return
			}
		}
		// No transfers and an uncounted device look the same.
	case V2:
		if text, err := readFile(filepath.Join(dir, "io.stat")); err == nil {
			read, written := parseIOStat(string(text))
			r.ReadBytes, r.WrittenBytes = Known(read), Known(written)
		}
	}
}

// State reads the state that Plan needs.
func (g *Group) State() State {
	s := State{Version: g.version}
	if g.version[Memory] == V1 {
		s.MemoryBytes = parseBound(slurp(g.dirs[Memory], memoryV1))
		s.MemoryAndSwapBytes = parseBound(slurp(g.dirs[Memory], memsw))
	}
	if g.version[CPU] == V1 {
		s.PeriodMicros = parseCount(slurp(g.dirs[CPU], "cpu.cfs_period_us"))
	}
	return s
}

// exists returns ErrGone if the group does not exist, or if another group has its path.
func (g *Group) exists() error {
	id, err := identify(g.dir(), g.host.boot)
	if errors.Is(err, fs.ErrNotExist) || err == nil && id != g.id {
		return fmt.Errorf("group %s: %w", g.dir(), ErrGone)
	}
	if err != nil {
		return fmt.Errorf("group %s: %w", g.dir(), err)
	}
	return nil
}

// slurp returns the text of a file, or an empty text: every parser reports missing values for an empty text.
func slurp(dir, file string) string {
	if dir == "" {
		return ""
	}
	text, err := readFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return string(text)
}

// readFile is os.ReadFile for files of the kernel, in half of its time: it neither asks for their size, which is
// unknown, nor waits for them as for a connection.
func readFile(path string) ([]byte, error) {
	file, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(file)
	var buffer [4096]byte
	text := buffer[:0]
	for {
		text = slices.Grow(text, 1024)
		n, err := again(func() (int, error) { return unix.Read(file, text[len(text):cap(text)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			return bytes.Clone(text), nil
		}
		text = text[:len(text)+n]
	}
}

// again repeats a system call that a signal has interrupted.
func again(do func() (int, error)) (n int, err error) {
	for {
		if n, err = do(); err != unix.EINTR {
			return n, err
		}
	}
}
