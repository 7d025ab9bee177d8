package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// When a container is sampled.
const (
	// sampling is the interval between samples. The counters and the charge are cheap; memory.stat, which is not, is read
	// each time while the container is young, and then when detailed has passed or memory may have moved: see due.
	sampling = time.Second
	young    = 10 * time.Minute
	detailed = 5 * time.Second
	// writing is the time between writes of a container's samples: what a kill of the daemon loses.
	writing = 5 * time.Second
)

// firstSamples are the times of samples of a container that has just begun, so that short programs have some.
var firstSamples = []time.Duration{100 * time.Millisecond, 400 * time.Millisecond}

// usageFile is the file with a container's samples, in its folder.
const usageFile = "usage"

// monitor samples what every container uses. It reads on a goroutine of its own, so that a kernel that hangs delays
// only samples. Errors lose samples, and never affect a container.
type monitor struct {
	agent *Agent
	clock func() time.Duration // neither jumps nor counts while the machine sleeps
	// openMost is the largest number of containers whose kernel files stay open. The files of further containers are
	// opened for each sample, so that the daemon can open the files that it needs for other purposes.
	openMost int
	cores    *cores
	// pressed says whether the disk of the state directory was pressed at the last reading.
	pressed atomic.Bool

	mu   sync.Mutex
	all  map[cluster.ContainerID]*monitored
	open int
	full bool // the last write failed
}

// monitored is a container that is sampled, or has ended and was not forgotten.
type monitored struct {
	monitor   *monitor
	id        cluster.ContainerID
	dir       folder
	group     *cgroup.Group
	kept      *keeper.Container
	before    time.Duration // for which it had stood still before this agent found it
	tolerance usage.Tolerance

	mu        sync.Mutex
	ended     bool
	transfers *transfers
	meters    *meters       // nil if they are opened for each sample, and after the end
	origin    time.Duration // when the program began, by the clock
	log       *usage.Log
	torn      int64 // damaged bytes that were dropped from the file
	held      cgroup.Held
	charged   cgroup.Charged
	disk      diskUse
	pressed   time.Duration // for which the disk was pressed while the container used it
	idle      idleness
	curbed    curbed
	full      time.Duration // when held was read, by the clock; 0 if never
	written   time.Duration // when the file was written
}

func newMonitor(a *Agent) *monitor {
	const part = 24 // of the files that may be open; a container has up to thirteen
	var files unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &files)
	return &monitor{agent: a, clock: monotonic, openMost: int(min(files.Cur/part, 10_000)),
		cores: newCores(a.capacity[resource.CPU]), all: map[cluster.ContainerID]*monitored{}}
}

// monotonic returns the time since some moment before the machine's start, the same for all its processes.
func monotonic() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // It always succeeds with this clock.
	return time.Duration(t.Nano())
}

// run samples until the agent is closed.
func (m *monitor) run() {
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.sample()
			m.agent.lookAtDisk()
			m.agent.lookAtRemains()
		case <-m.agent.closed.Done():
			for _, w := range m.each() {
				w.close()
			}
			return
		}
	}
}

func (m *monitor) each() []*monitored {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*monitored, 0, len(m.all))
	for _, w := range m.all {
		out = append(out, w)
	}
	return out
}

// sample samples every container, and writes the samples that have waited long enough.
func (m *monitor) sample() {
	all := m.each()
	round := newRound(len(all))
	for _, w := range all {
		w.mu.Lock()
		w.sample(m.clock())
		if m.clock()-w.written >= writing {
			w.write()
		}
		w.mu.Unlock()
		round.next()
	}
	m.cores.look(m.clock())
}

// reading reads the group of a container, by the files that are open for samples if there are some.
func (m *monitor) reading(id cluster.ContainerID, g *cgroup.Group) (cgroup.Reading, error) {
	m.mu.Lock()
	w := m.all[id]
	m.mu.Unlock()
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.meters != nil {
			return w.meters.Reading()
		}
	}
	return g.Read()
}

// begin samples a container whose program has just begun.
func (m *monitor) begin(c *container, begun timeline.Time) {
	w := m.add(c, usage.NewLog(m.ago(begun), usage.ToleranceFor(c.spec.Grant)))
	for _, at := range firstSamples {
		time.AfterFunc(at, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if m.agent.closed.Err() == nil {
				w.sample(m.clock())
			}
		})
	}
}

// found samples a container that an earlier agent started; begun is a time of the calendar. Without samples of that
// agent, all of the time before is a gap.
func (m *monitor) found(c *container, begun timeline.Time) *monitored {
	tolerance := usage.ToleranceFor(c.spec.Grant)
	p, err := c.dir.usage()
	if err != nil {
		return m.add(c, usage.NewLog(m.origin(c, begun), tolerance))
	}
	w := m.add(c, p.Continue(tolerance))
	w.torn = p.Torn
	return w
}

// calendarOff is how far the calendar may be off since a container began before it is reported.
const calendarOff = 2 * time.Second

// origin returns when a container that began at a time of the calendar did so by the clock. The calendar may have
// been set since then: the record of the begin also has the clock's time; a full disk may have lost it.
func (m *monitor) origin(c *container, begun timeline.Time) time.Duration {
	clock, age := m.clock(), time.Duration(now()-begun)
	var s started
	if c.dir.get("started.json", &s) == nil && s.Clock > 0 && s.Clock <= clock {
		if off := age - (clock - s.Clock); off.Abs() > calendarOff {
			m.agent.log.Info("the calendar was set since a container began, or the machine slept: its samples count from "+
				"its begin by the clock", "container", c.id, "off", off)
		}
		return s.Clock
	}
	if age < 0 || age > clock {
		m.agent.log.Warn("the calendar was set since a container began: the length of what it used without samples is "+
			"unknown", "container", c.id, "age", age)
	}
	return m.ago(begun)
}

// add begins to sample a container.
func (m *monitor) add(c *container, log *usage.Log) *monitored {
	w := &monitored{monitor: m, id: c.id, dir: c.dir, group: c.group, kept: c.kept,
		tolerance: usage.ToleranceFor(c.spec.Grant), origin: log.Origin(), log: log, before: log.Suspended(),
		pressed: log.Pressed(), curbed: curbedOf(log)}
	w.idle.add(log.Idle())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[c.id] = w
	if m.open < m.openMost {
		if w.meters, _ = m.agent.openMeters(c.group, c.takeCounter()); w.meters != nil {
			m.open++
		}
	}
	w.transfers = newTransfers(c.group, m.agent.groups.counted != "", w.meters != nil)
	return w
}

// ago returns the clock's time for a time of the calendar, which must not have been set since then. It is between 0
// and now.
func (m *monitor) ago(at timeline.Time) time.Duration {
	clock := m.clock()
	return min(clock, max(0, clock-time.Duration(now()-at)))
}

// end takes the last sample of a container, whose group is about to be removed, and writes it. Without a record of the
// end, it ended now, and what its processes have transferred is unknown.
func (m *monitor) end(c *container, record *ending) {
	m.mu.Lock()
	w := m.all[c.id]
	m.mu.Unlock()
	e := ending{}
	if record != nil {
		e = *record
	}
	if w == nil && c.group != nil && c.dir.exists(usageFile) {
		w = m.found(c, e.Started)
	}
	if w == nil {
		return
	}
	at := m.clock()
	if e.Ended != 0 {
		at = m.ago(e.Ended)
	}
	w.takeLast(at, &e)
	if record != nil {
		record.Used = w.used(record)
	}
}

// takeLast takes the last sample of a container that ended at a time, by the clock.
func (w *monitored) takeLast(at time.Duration, e *ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.measure(func(g *meters) {
		s := w.counters(g, max(at, w.origin+w.log.Last()+time.Millisecond)) // its memory is free by now
		w.transfers.put(g.Gauge, e.Transferred, &s)
		w.log.Add(s)
	})
	w.finish()
}

// used returns the most memory that a container held which has ended, 0 if that is unknown: by samples, or by what its
// supervisor has found at its end, since memory can grow and shrink between two samples.
func (w *monitored) used(e *ending) resource.Amount {
	u, _ := w.usage() // if a part is missing, the rest counts
	return max(u.MostHeld(), e.Held, e.Used)
}

// forget drops a container.
func (m *monitor) forget(id cluster.ContainerID) {
	m.mu.Lock()
	w := m.all[id]
	delete(m.all, id)
	m.mu.Unlock()
	if w != nil {
		w.close()
	}
}

// close writes what is not written and ends the samples.
func (w *monitored) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finish()
}

// finish ends the sampling.
func (w *monitored) finish() {
	if w.ended {
		return
	}
	w.ended = true
	w.write()
	w.transfers.close()
	if w.meters != nil {
		w.meters.Close()
		w.meters = nil
		w.monitor.mu.Lock()
		w.monitor.open--
		w.monitor.mu.Unlock()
	}
}

// measure calls do with the meters of the container, unless the container has ended.
func (w *monitored) measure(do func(*meters)) {
	switch {
	case w.ended:
	case w.meters != nil:
		do(w.meters)
	default:
		meters, err := w.monitor.agent.openMeters(w.group, nil)
		if err != nil {
			return // it is about to end
		}
		defer meters.Close()
		do(meters)
	}
}

// sample adds a sample of every kind; now is the clock's time.
func (w *monitored) sample(now time.Duration) {
	w.measure(func(g *meters) {
		charged, err := g.Charged()
		if err != nil {
			return // it is about to end
		}
		if w.due(now, charged) {
			held, err := g.Read()
			if err != nil {
				return
			}
			w.held, w.charged, w.full = held, charged, now
		}
		s := w.counters(g, now)
		w.transfers.read(g.Gauge, &s)
		moved, counted := true, s.Known.Has(usage.Read) && s.Known.Has(usage.Written) // as far as is known
		if counted {
			moved = w.disk.take(s.Value[usage.Read] + s.Value[usage.Written])
		}
		if passed := s.At - w.log.Last(); passed > 0 && passed <= longestGap {
			if moved && w.monitor.pressed.Load() {
				w.pressed += passed
			}
			if !(moved && counted) && w.idle.quiet(&s, passed, &w.tolerance) && w.idle.sleeps(now, w.group) {
				w.idle.add(passed)
			}
		}
		w.idle.sampled(&s)
		s.Pressed, s.Idle = w.pressed, w.idle.length()
		s.Value[usage.Memory], s.Value[usage.Swap] = w.held.InMemory(), w.held.SwapBytes
		s.Known |= usage.SetOf(usage.Memory, usage.Swap)
		w.log.Add(s)
	})
}

// due reports whether memory.stat is to be read: while the container is young, at least every detailed, and as soon
// as memory can have grown by a tenth of the grant. The charge shows that, unless page cache shrank meanwhile, as it
// does in a container at its limit: so a container with much page cache is read each time.
func (w *monitored) due(now time.Duration, charged cgroup.Charged) bool {
	moved := max(charged.Bytes-w.charged.Bytes, w.charged.Bytes-charged.Bytes) +
		max(charged.SwapBytes-w.charged.SwapBytes, w.charged.SwapBytes-charged.SwapBytes)
	step := w.tolerance[usage.Memory] / 2
	return w.full == 0 || now-w.origin < young || now-w.full >= detailed-sampling/2 || moved > step || w.held.FileBytes+
		moved > 4*step
}

// counters returns a sample of all counters except those of disks; now is the clock's time.
func (w *monitored) counters(g *meters, now time.Duration) usage.Sample {
	still, bound := w.kept.SuspendedFor()
	s := usage.Sample{At: now - w.origin, Suspended: w.before + still, Pressed: w.pressed, Idle: w.idle.length(),
		Bound: bound}
	used, throttled := g.CPUTimes()
	if used, ok := used.Get(); ok {
		s.Value[usage.CPU] = used.Milliseconds()
		s.Known |= usage.SetOf(usage.CPU)
	}
	s.Curbed = w.curbs(throttled, &s)
	if n, ok := g.Network(); ok {
		s.Value[usage.Received], s.Value[usage.Sent] = n.Received, n.Sent
		s.Known |= usage.SetOf(usage.Received, usage.Sent)
	}
	return s
}

// write writes what is not in the file yet. A failure is logged once, until writing succeeds again.
func (w *monitored) write() {
	w.written = w.monitor.clock()
	text, offset := w.log.Unwritten()
	if w.log.Full() && w.shrink(text, offset) {
		w.monitor.report(nil)
		return
	}
	file, err := durable.Open(w.dir.path(usageFile))
	if err == nil {
		_, err = file.WriteAt(text, offset)
		err = errors.Join(err, file.Close())
	}
	if err == nil {
		w.log.Written()
	} else {
		w.log.Lost()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return // It was forgotten a moment ago.
	}
	w.monitor.report(err)
}

// shrink replaces the file, which is full, by a smaller one with what is not written yet. A failure is logged; the
// file then stays as it is, and grows.
func (w *monitored) shrink(text []byte, offset int64) (done bool) {
	path := w.dir.path(usageFile)
	before, err := readStart(path, offset)
	if err == nil {
		smaller, lost := w.log.Thinned(before, text)
		if err = durable.Replace(path, smaller); err == nil {
			w.log.Replaced(smaller, text)
			w.torn += lost
			return true
		}
	}
	w.log.NotReplaced()
	if !errors.Is(err, fs.ErrNotExist) {
		w.monitor.agent.log.Warn("cannot shrink the file with the samples of a container; the file grows", "container",
			w.id, "error", err)
	}
	return false
}

// readStart reads the first bytes of a file.
func readStart(path string, size int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := make([]byte, size)
	_, err = io.ReadFull(file, text)
	return text, err
}

// report logs when samples begin to be lost, and when they are written again.
func (m *monitor) report(err error) {
	m.mu.Lock()
	was := m.full
	m.full = err != nil
	m.mu.Unlock()
	switch {
	case err != nil && !was:
		m.agent.log.Warn("cannot write the samples of containers; details will be lost", "error", err)
	case err == nil && was:
		m.agent.log.Info("the samples of containers are written again")
	}
}

// usage reads a container's file.
func (f folder) usage() (usage.Parsed, error) {
	text, err := os.ReadFile(f.path(usageFile))
	if err != nil {
		return usage.Parsed{}, err
	}
	return usage.Parse(text)
}

// Usage implements live.Backend.
func (a *Agent) Usage(id cluster.ContainerID) (usage.Usage, error) {
	m := a.monitor
	m.mu.Lock()
	w := m.all[id]
	m.mu.Unlock()
	if w != nil {
		return w.usage()
	}
	p, err := a.folder(id).usage()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usage.Usage{}, errors.New("it was not measured: the disk was full")
	case err != nil:
		return usage.Usage{}, fmt.Errorf("its samples cannot be read: %w", err)
	}
	return p.Usage, missing(p.Torn)
}

// missing says that the end of a file was dropped; nil if nothing was.
func missing(torn int64) error {
	if torn == 0 {
		return nil
	}
	return fmt.Errorf("the last %d bytes of its samples were damaged and are dropped", torn)
}

// usage returns all samples of a container, including samples that could not be written.
func (w *monitored) usage() (usage.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text, offset := w.log.Unwritten()
	if offset > 0 {
		before, err := readStart(w.dir.path(usageFile), offset)
		if err != nil {
			return usage.Usage{}, fmt.Errorf("its samples cannot be read: %w", err)
		}
		text = append(before, text...)
	}
	p, err := usage.Parse(text)
	if err != nil {
		return usage.Usage{}, fmt.Errorf("its samples cannot be read: %w", err)
	}
	return p.Usage, missing(w.torn + p.Torn)
}
