package live

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Patience is how long one piece of the engine's work may take before it counts as a hang; 0 is the default. A step
// takes microseconds, and with ten thousand jobs some milliseconds.
type Patience struct {
	// Hangs is when the log says where the engine is, and callers stop waiting for it. The default is DefaultHangs.
	Hangs time.Duration
	// Dead is when the Driver gives itself up: see Driver.Dead. The default is DefaultDead.
	Dead time.Duration
}

// The defaults of Patience.
const (
	DefaultHangs = 5 * time.Second
	DefaultDead  = 60 * time.Second
)

// watchdog observes whether the loop makes progress. Its clock is its own ticks. While the whole machine is suspended,
// as a laptop that sleeps, there are no ticks, so that a suspension does not count as a hang. Work on the disk does not
// count either, because a slow disk is not the engine's fault.
type watchdog struct {
	beat  atomic.Int64 // odd while the loop works, even while it waits for work or for the disk
	begun atomic.Int64 // when it began that work, ns since the Driver began
	loop  string       // the goroutine, as stacks name it
	dead  chan struct{}

	mu   sync.Mutex
	hung chan struct{} // closed while the loop hangs
}

func newWatchdog() *watchdog { return &watchdog{dead: make(chan struct{}), hung: make(chan struct{})} }

// begin says that the loop is the calling goroutine.
func (w *watchdog) begin() { w.loop = goroutineHere() }

// work says that the loop begins a piece of work, rest that it has nothing to do. Both return a function that undoes
// them.
func (d *Driver) work() (undo func()) {
	if w := d.watchdog; w.beat.Load()%2 == 0 {
		w.begun.Store(int64(time.Since(d.agenda.begun())))
		w.beat.Add(1)
		return func() { d.rest() }
	}
	return func() {}
}

func (d *Driver) rest() (undo func()) {
	if w := d.watchdog; w.beat.Load()%2 == 1 {
		w.beat.Add(1)
		return func() { d.work() }
	}
	return func() {}
}

// alarm returns a channel that is closed while the loop hangs.
func (w *watchdog) alarm() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hung
}

// hangs reports whether the loop hangs, and for how long it has not answered.
func (d *Driver) hangs() (silent time.Duration, hangs bool) {
	select {
	case <-d.watchdog.alarm():
		return time.Since(d.agenda.begun()) - time.Duration(d.watchdog.begun.Load()), true
	default:
		return 0, false
	}
}

// silent returns the error for callers of an engine that hangs.
func (d *Driver) silent() error {
	silent, _ := d.hangs()
	return Errorf(Internal, "the engine has not answered for %v; the containers continue, and bellows status says more",
		silent.Round(time.Second))
}

// Dead is closed when the engine has hung for longer than Patience.Dead. The process should then end without Close,
// which returns an error then: containers continue, and the next Start sets aside the job that the engine hangs on.
func (d *Driver) Dead() <-chan struct{} { return d.watchdog.dead }

// watch is the watchdog's goroutine. It ends with the loop, or when it has given up the loop.
func (d *Driver) watch(p Patience) {
	w := d.watchdog
	const glances = 5 // at the same work, after the first, before the loop counts as hanging
	tick := time.NewTicker(p.Hangs / glances)
	defer tick.Stop()
	last, same := int64(0), 0
	for {
		select {
		case <-tick.C:
		case <-d.calls.ended():
			return
		}
		if beat := w.beat.Load(); beat%2 == 0 || beat != last {
			if same >= glances {
				d.recovered()
			}
			last, same = beat, 0
			continue
		}
		same++
		if same == glances {
			d.sayWhereItHangs()
		}
		if time.Duration(same)*(p.Hangs/glances) >= p.Dead {
			d.log.Error("the engine does not recover: bellows ends; the containers continue, and bellows up finds them again",
				"at", d.note.String())
			close(w.dead)
			return
		}
	}
}

func (d *Driver) sayWhereItHangs() {
	d.note.mark()
	d.counts.hangs.Add(1)
	w := d.watchdog
	w.mu.Lock()
	close(w.hung)
	w.mu.Unlock()
	silent, _ := d.hangs()
	d.log.Error("the engine does not answer", "for", silent.Round(time.Second), "at", d.note.String(), "stack",
		stackOf(d.watchdog.loop))
}

func (d *Driver) recovered() {
	w := d.watchdog
	w.mu.Lock()
	w.hung = make(chan struct{})
	w.mu.Unlock()
	d.log.Warn("the engine answers again")
}

// goroutineHere returns how the stacks of all goroutines name the one that calls this: "goroutine 17 ".
func goroutineHere() string {
	text := make([]byte, 64)
	words := strings.Fields(string(text[:runtime.Stack(text, false)]))
	return fmt.Sprintf("%s %s ", words[0], words[1])
}

// stackOf returns the stack of a goroutine.
func stackOf(goroutine string) string {
	const most = 1 << 20
	text := make([]byte, most)
	text = text[:runtime.Stack(text, true)]
	for part := range strings.SplitSeq(string(text), "\n\n") {
		if strings.HasPrefix(part, goroutine) {
			return part
		}
	}
	return "unknown"
}
