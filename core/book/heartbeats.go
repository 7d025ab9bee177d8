package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Heartbeats are how nodes and jobs report to drivers that work as YARN does. Policies do not see them: see
// Plan.Offers.
type Heartbeats struct {
	// Every is the interval at which a node reports and takes new work; 0 means that a node takes new work at any time.
	// A node may skip a heartbeat if no task was started, launched or ended on it since the previous one.
	Every time.Duration
	// Starts is how many tasks may start on a node per heartbeat; 0 means any number.
	Starts int
	// Launch is the interval between heartbeats of a job, which begin when the job is submitted. With each of them the
	// job collects the containers that it was granted. 0 is no heartbeats.
	Launch time.Duration
}

// launch returns when a job collects a grant of that time.
func (h *Heartbeats) launch(submitted, booked timeline.Time) timeline.Time {
	if h.Launch == 0 {
		return booked
	}
	every := timeline.Time(h.Launch)
	return submitted + ((booked-submitted)/every+1)*every
}

// LaunchTime returns when a task should begin to run, from the times at which its job was submitted and the task was
// booked.
func (s *Snapshot) LaunchTime(submitted, booked timeline.Time) timeline.Time {
	return s.Heartbeats.launch(submitted, booked).Add(s.LaunchDelay)
}
