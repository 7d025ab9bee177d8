package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Estimates record when a policy last estimated the ends of jobs. At is the time of the last estimate. StaleSince is
// the time of the first event since then that may change the estimate, Never if there was none. A task that ended on
// time changes nothing.
type Estimates struct {
	At, StaleSince timeline.Time
	// Latest is when the last job should end; Never if that cannot be estimated, because of a job with a task that has not
	// started.
	Latest timeline.Time
}

// stale notes an event that may change the estimates.
func (e *Estimates) stale(at timeline.Time) { e.StaleSince = min(e.StaleSince, at) }

// renewed notes that the ends of all jobs have been estimated.
func (e *Estimates) renewed(now timeline.Time, jobs []*JobState) {
	e.At, e.StaleSince, e.Latest = now, timeline.Never, now
	for _, j := range jobs {
		if j.Estimate.EndKnown {
			e.Latest = max(e.Latest, j.Estimate.End)
		} else if j.Pending() > 0 {
			e.Latest = timeline.Never
		}
	}
}

// Estimate is the last estimate of a job. A time whose Known flag is false cannot be estimated.
type Estimate struct {
	End, AllStarted           timeline.Time // when the job ends, and when its last task starts
	EndKnown, AllStartedKnown bool
}

// EstimateEnd records when j should end; known is false if that cannot be estimated.
func (p *Plan) EstimateEnd(j *JobState, end timeline.Time, known bool) {
	j.Estimate.End, j.Estimate.EndKnown = end, known
}

// EstimateAllStarted records when the last task of j should have been started.
func (p *Plan) EstimateAllStarted(j *JobState, at timeline.Time, known bool) {
	j.Estimate.AllStarted, j.Estimate.AllStartedKnown = at, known
}

// EstimatesStale reports whether the estimates should be renewed: something happened that may change the ends of
// jobs, and the heartbeat interval in which it happened is over. Without heartbeats the given interval must have
// passed since the last estimate.
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
func (p *Plan) Estimated() { p.Estimates.renewed(p.now, p.Jobs) }

// staleByEnd notes that a task ended, unless the last estimate already counted the task as ended. Staleness begins just
// before the task's estimated end, since the node may report late.
func (s *Snapshot) staleByEnd(now timeline.Time, t *TaskState) {
	should := t.endAfter(now)
	switch {
	case should == timeline.Never || should > now:
		s.Estimates.stale(now)
	case should > s.Estimates.At:
		s.Estimates.stale(should - 1)
	}
}
