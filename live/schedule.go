package live

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/drive"
)

// schedule has the events that the Driver itself makes, for now and for later. Only the loop uses it; now and begun
// may be called from any goroutine.
type schedule struct {
	drive.Agenda
	clock drive.Clock
	soon  []cluster.Event // to be handled after the current ones
}

func newSchedule() schedule {
	return schedule{clock: drive.NewClock()}
}

// now is the time that never runs backwards.
func (s *schedule) now() timeline.Time { return s.clock.Now() }

// begun is when the Driver began.
func (s *schedule) begun() time.Time { return s.clock.Begun() }

// next adds an event that is handled after the current ones.
func (s *schedule) next(e cluster.Event) { s.soon = append(s.soon, e) }

// due returns the events whose time has come, and forgets them.
func (s *schedule) due() (events []cluster.Event) {
	events, s.soon = s.Due(s.now(), s.soon), nil
	return events
}

// wait is how long until the next event is due, at most some time.
func (s *schedule) wait(most time.Duration) time.Duration {
	if next := s.Next(); next != timeline.Never {
		most = min(most, max(0, next.Sub(s.now())))
	}
	return most
}
