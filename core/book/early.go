package book

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Tasks of a stage with a StartShare may start before its parents have ended, and stay in their first phase until then.

// opensEarly reports whether tasks of a stage may start before its parents have ended: see cluster.Stage.StartShare.
func (j *JobState) opensEarly(stage int) bool {
	s := &j.Stages[stage]
	if s.StartShare == 0 {
		return false
	}
	for _, parent := range s.Parents {
		p := &j.Progress[parent]
		if p.Pending+len(p.held)+len(p.later) > 0 ||
			float64(p.Ended) < s.StartShare*float64(j.Stages[parent].Tasks) {
			return false
		}
	}
	return true
}

// AfterFirst is how long the phases after the first take of a task with a forecast, stretched or shortened as the whole
// task is.
func (t *TaskState) AfterFirst() time.Duration {
	phases := t.Stage().Phases
	total := sumPhases(phases)
	if total == 0 {
		return 0
	}
	return time.Duration(float64(sumPhases(phases[1:])) / float64(total) * float64(t.Duration))
}

// mayStartEarly records that a task of a stage has succeeded, after which tasks of others may start that need only a
// share of it.
func (s *Snapshot) mayStartEarly(now timeline.Time, j *JobState, parent int) {
	for i := j.passed; i < len(j.Stages) && j.Progress[parent].passable; i++ {
		if j.Stages[i].StartShare > 0 && slices.Contains(j.Stages[i].Parents, parent) && j.Ready(i) {
			j.Since = max(j.Since, now)
			s.demand()
		}
	}
}

// goOn lets the tasks of a stage that started early leave their first phase, once its parents have ended: those that
// should have left it before leave it now.
func (j *JobState) goOn(now timeline.Time, stage int) {
	if j.Stages[stage].StartShare == 0 || j.Progress[stage].parentsLeft > 0 {
		return
	}
	for _, t := range j.Tasks {
		if int(t.ID.Stage) != stage {
			continue
		}
		t.Waits = false
		if t.Running && t.end != timeline.Never {
			t.endsAt(now, max(t.usualEnd(now), now.Add(t.AfterFirst())))
		}
	}
	j.Version++
}

// makeWay preempts tasks that wait for a stage of which a task is to run again and for which no node has room: each
// would wait for the other. It preempts one task of a job at a time, the newest; its end changes the job.
func (p *Plan) makeWay() {
	for _, j := range p.Changes.Jobs {
		if j.Open || j.AtMostOnce || j.Status.Ended() { // The first may have many stages, and none that starts early.
			continue
		}
		for i := j.passed; i < len(j.Stages); i++ {
			if j.Progress[i].passable && j.Ready(i) && !p.hasRoom(j, i) {
				p.preemptFor(j, i)
			}
		}
	}
}

// hasRoom reports whether a node has free what the next task of a stage needs at least.
func (p *Plan) hasRoom(j *JobState, stage int) bool {
	need := j.Stages[stage].LeastNeed()
	_, open := p.FirstOpen(need, 0)
	_, kept := p.FirstReserved(need, 0)
	return open || kept
}

// preemptFor preempts the newest task of a job that waits for a stage, unless one is about to end.
func (p *Plan) preemptFor(j *JobState, stage int) {
	var newest *TaskState
	for _, t := range j.Tasks {
		if !t.Waits || !slices.Contains(t.Stage().Parents, stage) {
			continue
		}
		if t.Killing {
			return
		}
		if newest == nil || t.Decision > newest.Decision {
			newest = t
		}
	}
	if newest != nil {
		p.Preempt(newest, cluster.BecauseWaitsForRetry(stage))
	}
}
