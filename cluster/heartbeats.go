package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/timeline"
)

// Heartbeats are how nodes and jobs report on substrates that work as YARN does. Policies need not know them: see Plan.Offers.
type Heartbeats struct {
	// Every is how often nodes report, and take new work; 0 means that a node takes new work at any time. Heartbeats of a node on
	// which nothing was started, launched or ended since its last may be left out.
	Every time.Duration
	// Starts is how many tasks may start on a node per heartbeat; 0 means any number.
	Starts int
	// Launch is the interval between heartbeats of a job, which begin when it is submitted, and with which it collects what it
	// was given; 0 is none.
	Launch time.Duration
}

// LaunchTime returns when a task that is booked at the given time, of a job submitted at the given time, should begin to
// run.
func (s *Snapshot) LaunchTime(submitted, booked timeline.Time) timeline.Time {
	if s.Heartbeats.Launch > 0 {
		every := timeline.Time(s.Heartbeats.Launch)
		booked = submitted + ((booked-submitted)/every+1)*every
	}
	return booked.Add(s.LaunchDelay)
}
