package cluster

import "time"

// Attempts of a task pause before they begin, except the first: what made the task fail (a network, a license, a
// lock) may be back by then. The pause after the first attempt is the job's RetryDelay, and each pause is twice the
// one before, at most LongestRetryDelay unless RetryDelay is longer. Meanwhile the task holds nothing, and is not
// pending. Runs that do not count as attempts begin at once.

const (
	// DefaultRetryDelay is the RetryDelay of a job that is submitted without one.
	DefaultRetryDelay = time.Second
	// LongestRetryDelay bounds how long pauses between attempts grow.
	LongestRetryDelay = 5 * time.Minute
)

// Pause returns how long a task of j pauses after it has failed that many times.
func (j *Job) Pause(failed int) time.Duration {
	d := j.RetryDelay
	for ; failed > 1 && d > 0 && d < LongestRetryDelay; failed-- {
		d = min(2*d, LongestRetryDelay)
	}
	return d
}

// RetryByDefault makes tasks of j pause between attempts for as long as usual, for a job that does not state how long.
func (j *Job) RetryByDefault() {
	if j.MaxAttempts > 1 {
		j.RetryDelay = DefaultRetryDelay
	}
}
