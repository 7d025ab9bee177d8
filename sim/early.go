package sim

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Tasks of a stage with a StartShare may start before the stages that it depends on have ended. What they do in their
// first phase needs only what has ended, such as the shuffle of a reduce; then they wait. A task that waits holds its
// memory, and uses nothing else.

// early is what a job with such stages knows of them.
type early struct {
	left    []int   // tasks of each stage that have not succeeded
	waiting []*task // that have done their first phase; some may have ended since
}

// earlyOf returns nil for a job none of whose stages starts early.
func earlyOf(j *cluster.Job) *early {
	e, some := &early{}, false
	for i := range j.Stages {
		e.left = append(e.left, j.Stages[i].Tasks)
		some = some || j.Stages[i].StartShare > 0
	}
	if !some {
		return nil
	}
	return e
}

// mayGoOn reports whether all stages that a stage depends on have ended.
func (e *early) mayGoOn(j *cluster.Job, stage int32) bool {
	for _, parent := range j.Stages[stage].Parents {
		if e.left[parent] > 0 {
			return false
		}
	}
	return true
}

// waitsForParents lets a task wait that has done its first phase, if it cannot enter the next one yet.
func (r *run) waitsForParents(t *task) bool {
	e := t.job.early
	if e == nil || t.flow.at != 0 || t.flow.waits || e.mayGoOn(&t.job.Job.Job, t.id.Stage) {
		return t.flow.waits
	}
	t.flow.waits = true
	e.waiting = append(e.waiting, t)
	r.reslow(t)
	return true
}

// end notes that a task of a stage has succeeded, and reports whether it was the last one.
func (e *early) end(stage int32) (last bool) {
	if e == nil {
		return false
	}
	e.left[stage]--
	return e.left[stage] == 0
}

// forget notes that a task waits no more, because it has ended.
func (e *early) forget(t *task) {
	if e != nil {
		e.waiting = slices.DeleteFunc(e.waiting, func(w *task) bool { return w == t })
	}
}

// letFollowersGoOn lets the tasks enter their next phase that have waited for the stage of t, which has succeeded.
func (r *run) letFollowersGoOn(t *task) {
	e := t.job.early
	if !e.end(t.id.Stage) {
		return
	}
	waiting := e.waiting
	e.waiting = nil
	for _, w := range waiting {
		if !e.mayGoOn(&w.job.Job.Job, w.id.Stage) {
			e.waiting = append(e.waiting, w)
			continue
		}
		w.flow.waits = false
		r.reslow(w)
		r.nextPhase(w)
	}
}
