package book

import "github.com/bellows-rm/bellows/core/timeline"

// Waits sums up how long jobs that had to wait have waited, from their submission to the start of the first of their
// tasks. A job that started when it was submitted did not wait and does not count.
type Waits struct {
	Jobs    int
	Seconds float64
}

// count counts a job that is submitted at one time and gets on at the other.
func (w *Waits) count(submitted, started timeline.Time) {
	if started > submitted {
		w.Jobs++
		w.Seconds += started.Sub(submitted).Seconds()
	}
}

// Mean is the mean wait of the counted jobs, in seconds; 0 if there is none.
func (w Waits) Mean() float64 {
	if w.Jobs == 0 {
		return 0
	}
	return w.Seconds / float64(w.Jobs)
}

// With returns w with a job that has been waiting since its submission.
func (w Waits) With(submitted, now timeline.Time) Waits {
	w.count(submitted, now)
	return w
}

// NeverStarted reports whether no task of j was ever started.
func (j *JobState) NeverStarted() bool { return !j.begun }
