package live

import "github.com/bellows-rm/bellows/core/cluster"

// Whether a Lost or Preempted run counts as an attempt depends on its program. A lost run counts if its program may
// have started, because it may have done all its work. A preempted run does not count, unless the program must not
// start twice.

// mayHaveStarted completes the record of a run's end: the latest time at which it may have begun, and why it is the
// last run.
func (j *job) mayHaveStarted(r *run, e *cluster.Event) {
	if e.Kind != cluster.TaskEnded || e.Outcome != cluster.Lost && e.Outcome != cluster.Preempted {
		return
	}
	if r.Started == 0 {
		r.Started = r.Booked
	}
	if once := j.startsOnce(); once != "" {
		if e.Outcome == cluster.Preempted {
			e.Detail = "it was ended to give its room to others"
		}
		e.Detail += "; it does not start again, because " + once
	}
}

// startsOnce says why no program of the job may start twice; empty if programs may.
func (j *job) startsOnce() string {
	switch {
	case j.Request.Input:
		return "its input was read once and is gone"
	case j.Request.Job.AtMostOnce:
		return "its job runs at most once"
	}
	return ""
}

// outcome returns the outcome of a run that the engine is notified of: an attempt without a result has Failed.
func (j *job) outcome(r *run) cluster.Outcome {
	if r.Started != 0 && (r.Outcome == cluster.Lost || r.Outcome == cluster.Preempted && j.startsOnce() != "") {
		return cluster.Failed
	}
	return r.Outcome
}
