// Package drive runs an engine in real time. It has what every driver needs that is not virtual: a clock, the events
// to come, steps that survive a bug of the policy, the turns of one goroutine, and a loop that handles together what
// happened together. It stores nothing and starts no process.
package drive

import (
	"iter"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Clock is the wall clock at the time when it was made plus the time since then: it never runs backwards, however the
// calendar is set.
type Clock struct{ begun time.Time }

// NewClock returns a clock that begins now.
func NewClock() Clock { return Clock{time.Now()} }

// Begun is when the clock was made.
func (c Clock) Begun() time.Time { return c.begun }

// Now returns the present time.
func (c Clock) Now() timeline.Time {
	return timeline.Time(c.begun.UnixNano()).Add(time.Since(c.begun))
}

// Instant returns the time that a Clock shows as t; the zero time.Time for 0 and timeline.Never, which are no times.
func Instant(t timeline.Time) time.Time {
	if t == 0 || t == timeline.Never {
		return time.Time{}
	}
	return time.Unix(0, int64(t))
}

// OnClock shows t as a clock does.
func OnClock(t timeline.Time) string {
	if t == timeline.Never {
		return "never"
	}
	return Instant(t).Format(time.TimeOnly)
}

// Agenda is the times at which a policy is to be woken, and the events that are to be handled later than they
// arrived. It is not safe for concurrent use.
type Agenda struct {
	wakes []timeline.Time
	held  []heldEvent
}

type heldEvent struct {
	at    timeline.Time
	event cluster.Event
}

// Wake adds a time at which the engine gets a Woken event.
func (a *Agenda) Wake(at timeline.Time) { a.wakes = append(a.wakes, at) }

// Hold adds an event that the engine gets at a time.
func (a *Agenda) Hold(at timeline.Time, e cluster.Event) { a.held = append(a.held, heldEvent{at, e}) }

// DropWakes forgets all times added by Wake.
func (a *Agenda) DropWakes() { a.wakes = nil }

// DropHeld forgets the held events that match.
func (a *Agenda) DropHeld(match func(*cluster.Event) bool) {
	a.held = slices.DeleteFunc(a.held, func(h heldEvent) bool { return match(&h.event) })
}

// TakeHeld returns the first held event that matches, and forgets it; ok is false if there is none.
func (a *Agenda) TakeHeld(match func(*cluster.Event) bool) (e cluster.Event, ok bool) {
	for i := range a.held {
		if match(&a.held[i].event) {
			e = a.held[i].event
			a.held = slices.Delete(a.held, i, i+1)
			return e, true
		}
	}
	return e, false
}

// Held yields the held events, and when each is due.
func (a *Agenda) Held() iter.Seq2[timeline.Time, *cluster.Event] {
	return func(yield func(timeline.Time, *cluster.Event) bool) {
		for i := range a.held {
			if !yield(a.held[i].at, &a.held[i].event) {
				return
			}
		}
	}
}

// Due appends the events whose time has come to a list, and forgets them. However many wakes are due, there is one
// Woken event.
func (a *Agenda) Due(now timeline.Time, to []cluster.Event) []cluster.Event {
	a.held = slices.DeleteFunc(a.held, func(h heldEvent) bool {
		due := h.at <= now
		if due {
			to = append(to, h.event)
		}
		return due
	})
	wakes := len(a.wakes)
	a.wakes = slices.DeleteFunc(a.wakes, func(at timeline.Time) bool { return at <= now })
	if len(a.wakes) < wakes {
		to = append(to, cluster.Event{Kind: cluster.Woken})
	}
	return to
}

// Next returns when the next event is due, timeline.Never if there is none.
func (a *Agenda) Next() timeline.Time {
	next := timeline.Never
	for _, at := range a.wakes {
		next = min(next, at)
	}
	for _, h := range a.held {
		next = min(next, h.at)
	}
	return next
}
