package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/timeline"
)

// Estimates are when the ends of jobs were last estimated, for policies that do so. At is that time; StaleSince is when the first
// thing happened since that may change them, Never if nothing did. A task that ended when it should have changes nothing.
type Estimates struct {
	At, StaleSince timeline.Time
}

// Estimate is what was last estimated of a job. What is not Known cannot be said.
type Estimate struct {
	End, AllStarted           timeline.Time // when it ends, and when the last of its tasks starts
	EndKnown, AllStartedKnown bool
}

// EstimateEnd records when j should end; known is false if that cannot be said.
func (p *Plan) EstimateEnd(j *JobState, end timeline.Time, known bool) {
	j.Estimate.End, j.Estimate.EndKnown = end, known
}

// EstimateAllStarted records when the last task of j should have been started.
func (p *Plan) EstimateAllStarted(j *JobState, at timeline.Time, known bool) {
	j.Estimate.AllStarted, j.Estimate.AllStartedKnown = at, known
}

// EstimatesStale reports whether something happened that may change the ends of jobs, and the interval in which nodes report, or
// without one the given interval, has passed.
func (p *Plan) EstimatesStale(interval time.Duration) bool {
	switch every := timeline.Time(p.Heartbeats.Every); {
	case p.Estimates.StaleSince == timeline.Never:
		return false
	case every > 0:
		return p.now/every > p.Estimates.StaleSince/every
	}
	return p.now.Sub(p.Estimates.At) >= interval
}

// Estimated records that the ends of all jobs have been estimated now.
func (p *Plan) Estimated() { p.Estimates.At, p.Estimates.StaleSince = p.now, timeline.Never }

// staleByEnd notes that a task ended, unless the last estimate already took it for ended. It counts from just before the
// time when the task should have ended, since its node may report late.
func (s *Snapshot) staleByEnd(now timeline.Time, t *TaskState) {
	should, known := s.EstimatedEnd(t, 0)
	switch {
	case !known || should > now:
		s.Estimates.StaleSince = min(s.Estimates.StaleSince, now)
	case should > s.Estimates.At:
		s.Estimates.StaleSince = min(s.Estimates.StaleSince, should-1)
	}
}
