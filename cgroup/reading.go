package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Reading is one sample of a group and everything below it. Each file was read once, one after the other, so values of
// different files are not of exactly the same moment.
type Reading struct {
	// MemoryBytes is anonymous memory, page cache and kernel memory; AnonBytes and FileBytes are its two large parts. What only
	// swap can take is in AnonBytes, as in Held.InMemory: memory that processes share, too, and on version 1 what waits in memory
	// beside its copy in swap, although the kernel counts both among page cache.
	MemoryBytes Maybe[int64]
	AnonBytes   Maybe[int64]
	FileBytes   Maybe[int64]
	SwapBytes   Maybe[int64]
	// MemoryLimitBytes and SwapLimitBytes are the bounds; NoLimit if there is none. In version 1 the swap bound is what
	// the bound of the sum leaves beside the memory bound.
	MemoryLimitBytes Maybe[int64]
	SwapLimitBytes   Maybe[int64]
	// LimitHits counts how often usage ran against the memory bound (memory.failcnt; max in memory.events), HighHits the
	// same for memory.high. Version 1 does not count hits against the bound of memory and swap together, which comes first
	// when swap is bounded to nothing.
	LimitHits Maybe[int64]
	HighHits  Maybe[int64]
	// OOMKills counts processes that the kernel killed for memory. In version 1 it counts this group only, not those below;
	// with Limits.OOMGroup the kernel counts the process it began with twice.
	OOMKills Maybe[int64]
	// MajorFaults and AnonRefaults count faults that read from disk, and pages that came back from swap soon after.
	MajorFaults  Maybe[int64]
	AnonRefaults Maybe[int64]

	// CPUTime is what was used, ThrottledTime how long the quota held the group back; both totals.
	CPUTime       Maybe[time.Duration]
	ThrottledTime Maybe[time.Duration]

	// ReadBytes and WrittenBytes are totals over all devices, Transfers the devices. Version 1 does not count before some
	// group has had a throttle rule on the device (AccountIO makes one); until then they are missing.
	ReadBytes    Maybe[int64]
	WrittenBytes Maybe[int64]
	Transfers    []Transfer

	// Procs counts the processes in the group itself.
	Procs Maybe[int64]
	// Frozen is true once every process stands still.
	Frozen Maybe[bool]
}

// Read takes a sample. It fails, with ErrGone, only if the group no longer exists; what cannot be read is missing.
func (g *Group) Read() (Reading, error) {
	if err := g.exists(); err != nil {
		return Reading{}, err
	}
	var r Reading
	g.readMemory(&r)
	g.readCPU(&r)
	g.readIO(&r)
	if text, err := os.ReadFile(filepath.Join(g.dir(), "cgroup.procs")); err == nil {
		r.Procs = Known(int64(strings.Count(string(text), "\n")))
	}
	if state, err := g.frozen(); err == nil {
		r.Frozen = Known(state == frozen)
	}
	return r, nil
}

// MemoryLimit returns the limit in force, bytes or NoLimit, at a fraction of what Read costs.
func (g *Group) MemoryLimit() Maybe[int64] {
	if g.version[Memory] == V2 {
		return parseBound(slurp(g.dirs[Memory], "memory.max"))
	}
	return parseBound(slurp(g.dirs[Memory], memoryV1))
}

func (g *Group) readMemory(r *Reading) {
	dir := g.dirs[Memory]
	switch g.version[Memory] {
	case V1:
		stat := parseKeyed(slurp(dir, "memory.stat"))
		r.MemoryBytes = parseCount(slurp(dir, "memory.usage_in_bytes"))
		r.AnonBytes, r.FileBytes = stat.parts(stat.first("total_rss", "rss"), stat.first("total_cache", "cache"), "total_shmem",
			"total_inactive_anon", "total_active_anon")
		r.SwapBytes = stat.first("total_swap", "swap")
		r.MajorFaults = stat.first("total_pgmajfault", "pgmajfault")
		r.AnonRefaults = stat.first("total_workingset_refault_anon", "workingset_refault_anon")
		r.MemoryLimitBytes = g.MemoryLimit()
		sum := parseBound(slurp(dir, memsw))
		r.SwapLimitBytes = swapPart(r.MemoryLimitBytes, sum)
		r.LimitHits = parseCount(slurp(dir, "memory.failcnt"))
		r.OOMKills = parseKeyed(slurp(dir, "memory.oom_control")).first("oom_kill")
	case V2:
		stat := parseKeyed(slurp(dir, "memory.stat"))
		events := parseKeyed(slurp(dir, "memory.events"))
		r.MemoryBytes = parseCount(slurp(dir, "memory.current"))
		r.AnonBytes, r.FileBytes = stat.parts(stat.first("anon"), stat.first("file"), "shmem")
		r.SwapBytes = parseCount(slurp(dir, "memory.swap.current"))
		r.MajorFaults = stat.first("pgmajfault")
		r.AnonRefaults = stat.first("workingset_refault_anon")
		r.MemoryLimitBytes = g.MemoryLimit()
		r.SwapLimitBytes = parseBound(slurp(dir, "memory.swap.max"))
		r.LimitHits = events.first("max")
		r.HighHits = events.first("high")
		r.OOMKills = events.first("oom_kill")
	}
}

// parts moves what only swap can take from page cache to anonymous memory: what is shared, and what is on the lists of such pages
// and mapped by nobody.
func (k keyed) parts(anon, file Maybe[int64], shared string, lists ...string) (anonymous, files Maybe[int64]) {
	held, ok := anon.Get()
	if !ok {
		return anon, file
	}
	more, listed := k[shared], int64(0)
	for _, list := range lists {
		listed += k[list]
	}
	more += max(0, listed-held-more)
	if cache, ok := file.Get(); ok {
		file = Known(max(0, cache-more))
	}
	return Known(held + more), file
}

// swapPart is the swap that a bound on memory and swap together leaves beside a bound on memory.
func swapPart(memory, sum Maybe[int64]) Maybe[int64] {
	m, ok1 := memory.Get()
	s, ok2 := sum.Get()
	switch {
	case !ok1 || !ok2:
		return Maybe[int64]{}
	case s == NoLimit || m == NoLimit:
		return Known(NoLimit)
	}
	return Known(max(s-m, 0))
}

func (g *Group) readCPU(r *Reading) {
	if g.version[CPUAcct] == V1 {
		r.CPUTime = duration(parseCount(slurp(g.dirs[CPUAcct], "cpuacct.usage")), time.Nanosecond)
	}
	if g.version[CPU] == V1 {
		r.ThrottledTime = duration(parseKeyed(slurp(g.dirs[CPU], "cpu.stat")).first("throttled_time"), time.Nanosecond)
	}
	if g.unified == "" {
		return
	}
	stat := parseKeyed(slurp(g.unified, "cpu.stat"))
	if !r.CPUTime.ok {
		r.CPUTime = duration(stat.first("usage_usec"), time.Microsecond)
	}
	if !r.ThrottledTime.ok {
		r.ThrottledTime = duration(stat.first("throttled_usec"), time.Microsecond)
	}
}

func (g *Group) readIO(r *Reading) {
	dir := g.dirs[IO]
	switch g.version[IO] {
	case V1:
		for _, file := range []string{"blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"} {
			if r.Transfers = parseServiceBytes(slurp(dir, file)); len(r.Transfers) > 0 {
				break
			}
		}
		if len(r.Transfers) == 0 {
			return // Nothing done and nothing counted look the same.
		}
	case V2:
		text, err := os.ReadFile(filepath.Join(dir, "io.stat"))
		if err != nil {
			return
		}
		r.Transfers = parseIOStat(string(text))
	default:
		return
	}
	var read, written int64
	for _, t := range r.Transfers {
		read += t.ReadBytes
		written += t.WriteBytes
	}
	r.ReadBytes, r.WrittenBytes = Known(read), Known(written)
}

// State reads what Plan needs to know.
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

// exists fails with ErrGone if the group is not there, or is another group of the same path.
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

// slurp returns the text of a file, or nothing: every parser finds a missing value in nothing.
func slurp(dir, file string) string {
	if dir == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return string(text)
}
