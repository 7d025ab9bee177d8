package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// throttle checks that a running task of a pressed node is throttled, by bounds that the node could give, for a while.
func (a *auditor) throttle(d *cluster.Decision) {
	t := a.task(d.Task)
	n, pressed := a.nodes[d.Node], a.pressed[d.Node]
	switch {
	case a.c.name != "prophet" && a.c.name != "bellows" || a.flag("backoff") == "0s" || a.flag("backoff") == "off":
		a.fail("task %s is throttled by %s", d.Task, a.c.title)
	case t.state != running || t.killing || t.node != d.Node:
		a.fail("task %s is throttled in state %d", d.Task, t.state)
	case d.Bound == resource.Vector{}:
		if a.flag("relief") == "share" || a.flag("backoff") == "share" || d.At != 0 {
			a.fail("the throttle of task %s is ended at %s", d.Task, seconds(d.At))
		}
	case d.At <= a.now:
		a.fail("task %s is throttled to %v until %s", d.Task, d.Bound, seconds(d.At))
	case pressed == resource.Vector{}:
		a.fail("task %s is throttled, and node %s is not pressed", d.Task, n.Name)
	}
	for k, most := range d.Bound {
		if kind := resource.Kind(k); most < 0 || most > n.Capacity[k] || most > 0 && !kind.IsRate() {
			a.fail("task %s is bounded to %d of %s, and node %s has %d", d.Task, most, kind, n.Name, n.Capacity[k])
		}
	}
	a.orders[d.ID] = d.Task
}

// answersOrder takes in the answer to a throttle: there is one, unless the task ends.
func (a *auditor) answersOrder(e *cluster.Event) bool {
	of, open := a.orders[e.Decision]
	delete(a.orders, e.Decision)
	return open && of == e.Task
}

// foreseer follows, by events and orders alone, when tasks should end.
type foreseer struct {
	jobs  map[cluster.JobID]*cluster.Job
	tasks map[cluster.TaskID]*foreseen
	ended map[[2]int64]int // tasks of a stage of a job that have succeeded
}

// foreseen is what delays a running task since it was known for the last time how much of it is left.
type foreseen struct {
	base  timeline.Time // when that was: at its launch, or when it entered a phase
	left  float64       // that share of its run time
	stood time.Duration // since base
	still timeline.Time // since when it stands still; Never if it runs
	slow  []slowSpan    // times in which it may be slower, since base
}

type slowSpan struct{ from, until timeline.Time }

func (f foreseer) see(now timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
	for i := range events {
		e := &events[i]
		switch t := f.tasks[e.Task]; {
		case e.NewJob != nil:
			f.jobs[e.NewJob.ID] = e.NewJob
		case e.Kind == cluster.JobGrew:
			job := f.jobs[e.Job].Grown(e.Found.Growth)
			f.jobs[e.Job] = &job
		case e.Kind == cluster.DecisionDone && t == nil:
			f.tasks[e.Task] = &foreseen{base: now, left: 1, still: timeline.Never}
		case e.Kind == cluster.TaskEnded:
			delete(f.tasks, e.Task)
			if j := f.jobs[e.Task.Job]; j != nil && e.Outcome == cluster.Succeeded {
				f.ended[[2]int64{int64(e.Task.Job), int64(e.Task.Stage)}]++
				f.goOn(now, j, int(e.Task.Stage))
			}
		case e.Kind == cluster.TaskPhase:
			t.enter(now, f.jobs[e.Task.Job].Stages[e.Task.Stage].Phases, int(e.Phase))
		case e.Kind == cluster.TaskSuspended:
			t.still = min(t.still, now) // others may hold it from now on
		case e.Kind == cluster.TaskResumed:
			t.stood, t.still = t.stood+now.Sub(t.still), timeline.Never
		}
	}
	for i := range decisions {
		switch d := &decisions[i]; d.Kind {
		case cluster.Start:
			delete(f.tasks, d.Task) // its node may have left
		case cluster.Throttle:
			t := f.tasks[d.Task]
			if last := len(t.slow) - 1; last >= 0 {
				t.slow[last].until = min(t.slow[last].until, now)
			}
			t.slow = append(t.slow, slowSpan{now, d.At})
		}
	}
}

// waits reports whether tasks of a stage cannot leave their first phase yet.
func (f foreseer) waits(j *cluster.Job, stage int) bool {
	for _, parent := range j.Stages[stage].Parents {
		if f.ended[[2]int64{int64(j.ID), int64(parent)}] < j.Stages[parent].Tasks {
			return true
		}
	}
	return false
}

// goOn lets those tasks leave their first phase that have waited for a stage, if it was the last one.
func (f foreseer) goOn(now timeline.Time, j *cluster.Job, ended int) {
	for id, t := range f.tasks {
		stage := &j.Stages[0]
		if id.Job == j.ID {
			stage = &j.Stages[id.Stage]
		}
		if id.Job != j.ID || stage.StartShare == 0 || !slices.Contains(stage.Parents, ended) || f.waits(j, int(id.Stage)) {
			continue
		}
		total, after := stage.ForecastLength(), time.Duration(0)
		for _, p := range stage.Phases[min(1, len(stage.Phases)):] {
			after += p.Duration
		}
		if total > 0 && t.base.Add(time.Duration(t.left*float64(total))+t.stood) < now.Add(after) {
			t.enter(now, stage.Phases, 1)
		}
	}
}

// check compares what the engine says of running tasks: a task ends as much later as it stood still, and at most as
// much later again as it was throttled.
func (f foreseer) check(e *engine.Engine, now timeline.Time) error {
	for _, n := range e.Snapshot().Nodes {
		for _, task := range n.Tasks {
			t := f.tasks[task.ID]
			got, known := e.Snapshot().EstimatedEnd(task, now)
			if t == nil || known != (task.Duration > 0) {
				if t != nil || task.Running {
					return fmt.Errorf("the end of task %s is known: %v", task.ID, known)
				}
				continue
			}
			if !known {
				continue
			}
			end := t.base.Add(time.Duration(t.left*float64(task.Duration)) + t.stood)
			if t.still != timeline.Never {
				end = end.Add(now.Sub(t.still))
			}
			if task.Stage().StartShare > 0 && f.waits(task.Job.Job, int(task.ID.Stage)) {
				end = max(end, now.Add(task.AfterFirst()))
			}
			latest := end
			for _, s := range t.slow {
				latest = latest.Add(max(0, s.until.Sub(s.from)))
			}
			if end, latest = max(now, end), max(now, latest); got < end-10 || got > latest+10 {
				return fmt.Errorf("task %s should end at %s, and not from %s to %s", task.ID, seconds(got), seconds(end),
					seconds(latest))
			}
		}
	}
	return nil
}

// enter begins anew with the phase that a task has entered, if its phases have a length.
func (t *foreseen) enter(now timeline.Time, phases []cluster.Phase, phase int) {
	var all, rest time.Duration
	for i := range phases {
		if all += phases[i].Duration; i >= phase {
			rest += phases[i].Duration
		}
	}
	if all == 0 {
		return
	}
	t.base, t.left, t.stood = now, float64(rest)/float64(all), 0
	for i := range t.slow {
		t.slow[i].from = max(t.slow[i].from, now)
	}
}
