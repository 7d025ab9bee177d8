// Package watchdog observes whether the loop of an engine makes progress, and notes which step the engine is at, so
// that its user knows after a hang which job the engine hung on: in this process and, by a file, in the next one.
package watchdog

import (
	"fmt"
	"log/slog"
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
	// Dead is when the loop is given up: see Watchdog.Dead. The default is DefaultDead.
	Dead time.Duration
}

// The defaults of Patience.
const (
	DefaultHangs = 5 * time.Second
	DefaultDead  = 60 * time.Second
)

// Watchdog observes whether a loop makes progress. Its clock is its own ticks. While the whole machine is suspended,
// as a laptop that sleeps, there are no ticks, so that a suspension does not count as a hang. Work on the disk does not
// count either, because a slow disk is not the engine's fault. Its methods may be called from any goroutine, but for
// Begin, Work and Rest, which the loop calls.
type Watchdog struct {
	notebook
	log   *slog.Logger
	made  time.Time
	beat  atomic.Int64 // odd while the loop works, even while it waits for work or for the disk
	begun atomic.Int64 // when it began that work, ns since the Watchdog was made
	loop  string       // the goroutine, as stacks name it
	hangs atomic.Int64 // how often it has hung
	dead  chan struct{}

	mu   sync.Mutex
	hung chan struct{} // closed while the loop hangs
}

// Open returns a Watchdog of a loop that has not begun, with the note that the last process left in a state directory;
// ok is false if it left none.
func Open(dir string, log *slog.Logger) (w *Watchdog, left Note, ok bool, err error) {
	w = &Watchdog{log: log, made: time.Now(), dead: make(chan struct{}), hung: make(chan struct{})}
	left, ok, err = w.notebook.open(dir)
	return w, left, ok, err
}

// Warn logs why the step of a note that the last process left counts as hanging.
func (w *Watchdog) Warn(left Note) {
	message := "the engine hung in the last run"
	if left.Deaths >= MostDeaths {
		message = "bellows was killed several times in a row in the same step: it may lack memory for it"
	}
	w.log.Warn(message, "at", left.String())
}

// Begin says that the loop is the calling goroutine.
func (w *Watchdog) Begin() { w.loop = goroutineHere() }

// Work says that the loop begins a piece of work, Rest that it has nothing to do, or waits for the disk. Both return a
// function that undoes them.
func (w *Watchdog) Work() (undo func()) {
	if w.beat.Load()%2 == 0 {
		w.begun.Store(int64(time.Since(w.made)))
		w.beat.Add(1)
		return func() { w.Rest() }
	}
	return func() {}
}

// Rest is described with Work.
func (w *Watchdog) Rest() (undo func()) {
	if w.beat.Load()%2 == 1 {
		w.beat.Add(1)
		return func() { w.Work() }
	}
	return func() {}
}

// Alarm returns a channel that is closed while the loop hangs.
func (w *Watchdog) Alarm() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hung
}

// Hangs reports whether the loop hangs, and for how long it has not answered.
func (w *Watchdog) Hangs() (silent time.Duration, hangs bool) {
	select {
	case <-w.Alarm():
		return w.silent(), true
	default:
		return 0, false
	}
}

func (w *Watchdog) silent() time.Duration { return time.Since(w.made) - time.Duration(w.begun.Load()) }

// Count is how often the loop has hung.
func (w *Watchdog) Count() int64 { return w.hangs.Load() }

// Dead is closed when the loop has hung for longer than Patience.Dead.
func (w *Watchdog) Dead() <-chan struct{} { return w.dead }

// Watch observes the loop until it has ended, or has hung for longer than Patience.Dead. The log says so.
func (w *Watchdog) Watch(p Patience, ended <-chan struct{}) {
	if p.Hangs == 0 {
		p.Hangs = DefaultHangs
	}
	if p.Dead == 0 {
		p.Dead = DefaultDead
	}
	const glances = 5 // at the same work, after the first, before the loop counts as hanging
	tick := time.NewTicker(p.Hangs / glances)
	defer tick.Stop()
	last, same := int64(0), 0
	for {
		select {
		case <-tick.C:
		case <-ended:
			return
		}
		if beat := w.beat.Load(); beat%2 == 0 || beat != last {
			if same >= glances {
				w.recovered()
			}
			last, same = beat, 0
			continue
		}
		same++
		if same == glances {
			w.sayWhereItHangs()
		}
		if time.Duration(same)*(p.Hangs/glances) >= p.Dead {
			w.log.Error("the engine does not recover: bellows ends; the containers continue, and bellows up finds them again",
				"at", w.notebook.String())
			close(w.dead)
			return
		}
	}
}

func (w *Watchdog) sayWhereItHangs() {
	w.notebook.mark()
	w.hangs.Add(1)
	w.mu.Lock()
	close(w.hung)
	w.mu.Unlock()
	w.log.Error("the engine does not answer", "for", w.silent().Round(time.Second), "at", w.notebook.String(), "stack",
		stackOf(w.loop))
}

func (w *Watchdog) recovered() {
	w.mu.Lock()
	w.hung = make(chan struct{})
	w.mu.Unlock()
	w.log.Warn("the engine answers again")
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
