package agent

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// When a container gets less CPU than it would use. What both versions of control groups show decides: the time for
// which a quota held it, and, since a grant is a weight, what it used of its grant while no CPU was free.
const (
	// fullFrom is the share of the CPUs in use, from which on none is free.
	fullFrom = 0.95
	// allFrom is the share of its grant that a container uses which would use more. Its weight gives it all of its grant
	// when it wants it: what used less wanted no more.
	allFrom = 0.9
	// othersFrom is the share of the CPUs from which on programs outside of containers keep containers from what their
	// weights would give them, their grants.
	othersFrom = 0.1
)

// cores says whether the CPUs that this process may use are all in use, and whether by others than containers.
type cores struct {
	stat     string // a file as /proc/stat
	allowed  unix.CPUSet
	capacity resource.Amount // that containers may use together, millicores

	mu     sync.Mutex
	looked time.Duration // when the counters were read, by the clock of samples; 0 if never
	busy   int64         // ticks of all allowed CPUs
	ticks  int64
	used   int64 // CPU time of containers since then, milliseconds
	full   bool
	others bool
}

func newCores(capacity resource.Amount) *cores {
	c := &cores{stat: "/proc/stat", capacity: capacity}
	_ = unix.SchedGetaffinity(0, &c.allowed) // Without it no CPU is seen, and what containers use decides.
	return c
}

// add takes in CPU time that a container has used, in milliseconds.
func (c *cores) add(used int64) {
	c.mu.Lock()
	c.used += used
	c.mu.Unlock()
}

// now reports whether no CPU was free at the last look, and whether others than containers used many.
func (c *cores) now() (full, others bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full, c.others
}

// look reads the counters of the machine; now is the clock's time.
func (c *cores) look(now time.Duration) {
	text, _ := os.ReadFile(c.stat)
	busy, ticks, cpus := parseCPUs(string(text), &c.allowed)
	c.mu.Lock()
	defer c.mu.Unlock()
	passed, first := now-c.looked, c.looked == 0
	moreBusy, moreTicks, used := busy-c.busy, ticks-c.ticks, c.used
	c.looked, c.busy, c.ticks, c.used, c.full, c.others = now, busy, ticks, 0, false, false
	if first || passed <= 0 || passed > longestGap {
		return
	}
	ours := float64(used) / float64(passed.Milliseconds()) // cores
	c.full = c.capacity > 0 && ours >= fullFrom*float64(c.capacity)/float64(resource.Core)
	if moreTicks > 0 && moreBusy >= 0 {
		share := float64(moreBusy) / float64(moreTicks)
		c.full = c.full || share >= fullFrom
		c.others = share-ours/float64(cpus) >= othersFrom
	}
}

// parseCPUs returns for how many ticks the allowed CPUs were busy, of how many, and their number. Time that a
// hypervisor took is busy.
func parseCPUs(text string, allowed *unix.CPUSet) (busy, ticks int64, cpus int) {
	const idle, waits, guest = 3, 4, 8 // what guests used is in the time of users, too
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		number, is := strings.CutPrefix(name, "cpu")
		n, err := strconv.Atoi(number)
		if !is || err != nil || !allowed.IsSet(n) {
			continue
		}
		cpus++
		for i, field := range strings.Fields(rest) {
			v, err := strconv.ParseInt(field, 10, 64)
			if err != nil || i >= guest {
				break
			}
			ticks += v
			if i != idle && i != waits {
				busy += v
			}
		}
	}
	return busy, ticks, cpus
}

// curbed adds up for how long a container got less CPU than it would have used. The mutex of its monitored guards it.
type curbed struct {
	total     time.Duration
	at        time.Duration // of the last sample, since the program began
	cpu       int64         // CPU time at the last sample, milliseconds
	throttled time.Duration // by its quota, at the last sample
	sampled   bool          // there was a sample, or the program has just begun
}

// curbs takes in a sample, with the time for which the quota has held the programs, and returns for how long the
// container has got less CPU than it would have used.
func (w *monitored) curbs(throttled cgroup.Maybe[time.Duration], s *usage.Sample) time.Duration {
	passed, used, held := w.curbed.since(s, throttled)
	if passed <= 0 || passed > longestGap {
		return w.curbed.add(0)
	}
	w.monitor.cores.add(used)
	full, others := w.monitor.cores.now()
	share := w.kept.CPU()
	if _, weighs := w.group.Has(cgroup.CPU); !weighs {
		share = 0
	}
	if full && s.Known.Has(usage.CPU) && wantsMore(used, passed, share, others, w.tolerance[usage.CPU]) {
		held = passed
	}
	return w.curbed.add(held)
}

// curbedOf continues what the samples of a container say.
func curbedOf(log *usage.Log) curbed {
	return curbed{total: log.Curbed(), at: log.Last(), sampled: log.Last() == 0}
}

// add adds a time in which the container was curbed, and returns for how long it was in all.
func (c *curbed) add(held time.Duration) time.Duration {
	c.total += held
	return c.total
}

// since returns what has happened since the last sample: how much time has passed, 0 if it is not known, the CPU time
// that was used, in milliseconds, and for how much of the time the quota held the programs.
func (c *curbed) since(s *usage.Sample, counted cgroup.Maybe[time.Duration]) (passed time.Duration, used int64,
	held time.Duration) {
	throttled := counted.Or(c.throttled)
	passed, used, held = s.At-c.at, max(0, s.Value[usage.CPU]-c.cpu), max(0, throttled-c.throttled)
	if !c.sampled {
		passed = 0
	}
	c.at, c.cpu, c.throttled, c.sampled = s.At, s.Value[usage.CPU], throttled, true
	return passed, used, min(held, passed)
}

// wantsMore reports whether a container that used some CPU time, in milliseconds, while no CPU was free would have used
// more: it used all of its share (millicores), or others keep it from that, unless it used less than little, in
// millicores.
func wantsMore(used int64, passed time.Duration, share resource.Amount, others bool, little int64) bool {
	rate := float64(used) / passed.Seconds()
	return rate > float64(little) && (others || rate >= allFrom*float64(share))
}
