package drive

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Schedule is a clock with the events that a driver itself makes, for now and for later. Only the driver's goroutine
// uses it; Now and Begun may be called from any.
type Schedule struct {
	Agenda
	Clock
	soon []cluster.Event // to be handled after the current ones
}

// NewSchedule returns a schedule whose clock begins now.
func NewSchedule() Schedule { return Schedule{Clock: NewClock()} }

// Soon adds an event that is handled after the current ones.
func (s *Schedule) Soon(e cluster.Event) { s.soon = append(s.soon, e) }

// Take returns the events whose time has come, those that were added by Soon first, and forgets them.
func (s *Schedule) Take(now timeline.Time) (events []cluster.Event) {
	events, s.soon = s.Due(now, s.soon), nil
	return events
}

// Wait is how long until the next event is due, at most some time.
func (s *Schedule) Wait(most time.Duration) time.Duration {
	if next := s.Next(); next != timeline.Never {
		most = min(most, max(0, next.Sub(s.Now())))
	}
	return most
}
