package live

import "github.com/bellows-rm/bellows/cluster"

// A run is an attempt if it was Lost or Preempted after its program had started only in some cases. What nobody saw end may have
// done all its work, so that it counts, whether its supervisor died or the machine. What gave its room to others does not,
// unless the program must not start twice.

// mayHaveStarted completes what is known of the end of a run: when it began, at the latest, and why it is the last.
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

// startsOnce says why no program of the job may start twice; empty if it may.
func (j *job) startsOnce() string {
	switch {
	case j.Request.Input:
		return "its input was read once and is gone"
	case j.Request.Job.AtMostOnce:
		return "its job runs at most once"
	}
	return ""
}

// outcome is what the engine is told of the end of a run: an attempt that came to nothing has Failed.
func (j *job) outcome(r *run) cluster.Outcome {
	if r.Started != 0 && (r.Outcome == cluster.Lost || r.Outcome == cluster.Preempted && j.startsOnce() != "") {
		return cluster.Failed
	}
	return r.Outcome
}
