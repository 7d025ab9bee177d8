package drive

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Turns calls what others ask for, one call at a time, in one goroutine. So what only that goroutine uses needs no
// lock. Its methods may be called from any goroutine, unless their comments say otherwise.
type Turns struct {
	calls chan func()
	stop  chan struct{}
	done  chan struct{}
	timer *time.Timer // has an element when the next turn is due
}

// Worker is what Turns works for. Its methods are called in the goroutine of Run.
type Worker interface {
	// Call makes a call of another goroutine.
	Call(f func())
	// Receive handles an event.
	Receive(cluster.Event)
	// Turn follows each call and each event. It returns when to call it again at the latest.
	Turn() (wait time.Duration)
}

// idle is the longest time without a turn.
const idle = time.Hour

// NewTurns returns Turns that have not begun.
func NewTurns() *Turns {
	return &Turns{calls: make(chan func()), stop: make(chan struct{}), done: make(chan struct{}),
		timer: time.NewTimer(idle)}
}

// Run takes turns until Stop was asked. events may be nil. Whoever called it then calls End.
func (t *Turns) Run(events <-chan cluster.Event, w Worker) {
	defer t.timer.Stop()
	for {
		select {
		case f := <-t.calls:
			w.Call(f)
		case e := <-events:
			w.Receive(e)
		case <-t.timer.C:
		case <-t.stop:
			return
		}
		t.timer.Reset(min(idle, max(0, w.Turn())))
	}
}

// End says that nothing is called any more. It is called once.
func (t *Turns) End() { close(t.done) }

// Calls takes what is to be called between two turns; nothing does once Ended is closed.
func (t *Turns) Calls() chan<- func() { return t.calls }

// Stop takes a request that Run returns.
func (t *Turns) Stop() chan<- struct{} { return t.stop }

// Ended is closed by End.
func (t *Turns) Ended() <-chan struct{} { return t.done }
