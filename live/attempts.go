package live

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
)

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

// attempts returns how many runs of a task count as attempts, with one that has not ended.
func (j *job) attempts(task cluster.TaskID) (n int) {
	for _, r := range j.runs[task] {
		if o := j.outcome(r); o != cluster.Lost && o != cluster.Preempted {
			n++
		}
	}
	return n
}

// givenUp reports whether a task is not tried again after its newest run, by the rule of the engine.
func (j *job) givenUp(task cluster.TaskID) bool {
	switch o := j.outcome(j.newest(task)); o {
	case 0, cluster.Succeeded, cluster.Lost, cluster.Preempted:
		return false
	default:
		return j.attempts(task) >= max(1, j.Request.Job.MaxAttempts) || !j.Request.Job.RetryOn.After(o)
	}
}

// failed reports whether a task was given up, and if the job keeps going, whether all tasks of its stage have ended.
func (j *job) failed() bool {
	left := make([]int, len(j.Request.Job.Stages)) // tasks that have not ended for good, where one was given up
	for i := range left {
		left[i] = j.Request.Job.Stages[i].Tasks
	}
	lost := map[int32]bool{}
	for _, task := range j.tasks() {
		gone := j.givenUp(task)
		if gone || j.newest(task).Outcome == cluster.Succeeded {
			left[task.Stage]--
		}
		lost[task.Stage] = lost[task.Stage] || gone
	}
	for stage := range lost {
		if lost[stage] && (!j.Request.Job.KeepGoing || left[stage] == 0) {
			return true
		}
	}
	return false
}

// whyGivenUp says, as a clause, why the task of a run that failed is not tried again although attempts are left; empty
// if none are.
func (j *job) whyGivenUp(r *run) string {
	if on := j.Request.Job.RetryOn; j.attempts(r.Container.Task) < j.Request.Job.MaxAttempts && !on.After(j.outcome(r)) {
		return fmt.Sprintf("; it is not tried again, because retry_on is %v", on)
	}
	return ""
}
