package scenarios

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// hold checks an order that a task stands still, or goes on: its owner or leveling wanted that, and it runs.
func (a *auditor) hold(d *cluster.Decision) {
	t, j := a.task(d.Task), a.jobs[d.Task.Job]
	suspends, levels := d.Kind == cluster.Suspend, d.By&cluster.HeldByLeveling != 0
	wanted := slices.ContainsFunc(a.s.suspensions, func(s suspension) bool {
		return s.task == d.Task && s.at <= a.now && s.until == d.At && s.forTask == d.For
	})
	switch {
	case a.err != nil:
		return
	case t.state != running || t.killing:
		a.fail("%s of task %s, which does not run on", d.Kind, d.Task)
	case j.paused != (d.By&cluster.HeldByOwner != 0) || suspends != (d.By != 0):
		a.fail("%s of task %s by %q, and its job is paused: %v", d.Kind, d.Task, d.By, j.paused)
	case levels && (!wanted && !a.stops() || d.At <= a.now), !levels && (d.At != 0 || d.For != cluster.TaskID{}):
		a.fail("%s of task %s by %q until %s for task %s", d.Kind, d.Task, d.By, seconds(d.At), d.For)
	case !levels && !a.stops() && t.until > a.now:
		a.fail("%s of task %s by %q, and leveling holds it until %s", d.Kind, d.Task, d.By, seconds(t.until))
	}
	if !suspends && t.still&cluster.HeldByMemory == 0 {
		t.holds = t.grant // it will go on
	}
	t.waits = levels && (t.waits || d.Reason.Code == cluster.MemoryWaits)
	if d.PageOut != (j.paused && j.pageOut || t.waits) {
		a.fail("%s of task %s with page-out %v, and its job is paused: %v, with its memory: %v", d.Kind, d.Task, d.PageOut,
			j.paused, j.pageOut)
	}
	a.orders[d.ID], t.ordered, t.until, t.pageOut = d.Task, d.By, d.At, d.PageOut
}

// lentMemory is the memory of a task that has left its node and is granted to others.
func (t *auditedTask) lentMemory() resource.Vector {
	if !t.pageOut {
		return resource.Vector{}
	}
	return resource.Vector{}.With(resource.Memory, t.out)
}

// holdsInTime checks that leveling holds no task longer than it wanted.
func (a *auditor) holdsInTime() {
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.state == running && !t.killing && t.until != 0 && t.until <= a.now {
				a.fail("leveling holds task %s, and should have ended that at %s", t.id, seconds(t.until))
			}
		}
	}
}
