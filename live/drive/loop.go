package drive

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/timeline"
)

// MostBatch is for how long calls that have arrived are taken together before the engine decides (Mira, section III.C).
const MostBatch = time.Millisecond

// ErrEnded says that a Loop has ended.
var ErrEnded = errors.New("the loop has ended")

// Handler is what a Loop works for. The loop calls its methods in its own goroutine, in which it alone runs.
type Handler interface {
	// Due handles what is due, and returns when there is something to handle next; timeline.Never is not at all. It is
	// called before each step.
	Due(now timeline.Time) (next timeline.Time)
	// Took handles the decisions of a step, but for Wake. The slice is valid until it returns.
	Took(now timeline.Time, decisions []cluster.Decision)
	// Broke handles a bug of the policy or of the handler, after which the engine decides nothing.
	Broke(err error)
}

// Loop runs an engine in real time, in a goroutine of its own. What arrives together is one step.
type Loop struct {
	engine  *engine.Engine
	handler Handler
	turns   *Turns

	// Only the loop uses the fields below.
	schedule Schedule
	passed   int64 // events that the engine was handed
	broken   bool
}

// NewLoop returns a loop that has not begun.
func NewLoop(e *engine.Engine, h Handler) *Loop {
	return &Loop{schedule: NewSchedule(), engine: e, handler: h, turns: NewTurns()}
}

// Run runs the loop until End is called.
func (l *Loop) Run() {
	defer l.turns.End()
	l.turns.timer.Reset(0)
	l.turns.Run(nil, worker{l})
}

// worker is a Loop as its Turns know it.
type worker struct{ *Loop }

// Call makes a call, and others that wait, for as long as a batch may take.
func (w worker) Call(f func()) {
	w.survive(f)
	for began := time.Now(); time.Since(began) < MostBatch; {
		select {
		case f := <-w.turns.calls:
			w.survive(f)
		default:
			return
		}
	}
}

// Receive does nothing: a Loop has no events of its own.
func (worker) Receive(cluster.Event) {}

// Turn lets the engine decide.
func (w worker) Turn() time.Duration {
	next := timeline.Never
	w.survive(func() { next = w.step() })
	if next == timeline.Never {
		return idle
	}
	return next.Sub(w.schedule.Now())
}

// survive calls f. A panic is a bug of the handler, which must not harm others in the process.
func (l *Loop) survive(f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.breakDown(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	f()
}

func (l *Loop) breakDown(err error) {
	l.broken = true
	l.schedule.DropWakes()
	l.handler.Broke(err)
}

// step lets the engine decide until nothing more happens, and returns when something is due next.
func (l *Loop) step() (next timeline.Time) {
	for {
		now := l.schedule.Now()
		next = l.handler.Due(now)
		events := l.schedule.Take(now)
		if len(events) == 0 || l.broken {
			return min(next, l.schedule.Next())
		}
		l.passed += int64(len(events))
		decisions, err := Step(l.engine, now, events...)
		if err != nil {
			l.breakDown(err)
			return next
		}
		for i := range decisions {
			if decisions[i].Kind == cluster.Wake {
				l.schedule.Wake(decisions[i].At)
			}
		}
		l.handler.Took(now, decisions)
	}
}

// Now returns the present time.
func (l *Loop) Now() timeline.Time { return l.schedule.Now() }

// Engine returns the engine, for the loop's goroutine.
func (l *Loop) Engine() *engine.Engine { return l.engine }

// Events is how many events the engine was handed. It must be called in the loop's goroutine.
func (l *Loop) Events() int64 { return l.passed }

// Event hands an event to the engine, in the next step. It must be called in the loop's goroutine.
func (l *Loop) Event(e cluster.Event) { l.schedule.Soon(e) }

// Do calls f in the loop's goroutine, between two steps, and returns when f has returned. The error is ErrEnded, or
// that of ctx if f was not called. If f panics, the loop is broken.
func (l *Loop) Do(ctx context.Context, f func()) error {
	called := make(chan struct{})
	select {
	case l.turns.calls <- func() { defer close(called); f() }:
		<-called
		return nil
	case <-l.turns.done:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended is closed when the loop has ended.
func (l *Loop) Ended() <-chan struct{} { return l.turns.done }

// End ends the loop, and returns when it has ended.
func (l *Loop) End() {
	select {
	case l.turns.stop <- struct{}{}:
	case <-l.turns.done:
	}
	<-l.turns.done
}
