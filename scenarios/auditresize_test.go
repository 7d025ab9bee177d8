package scenarios

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// resize checks a change of a grant: the scenario or a phase of the task wants that, the task runs, and memory is not
// granted twice.
func (a *auditor) resize(d *cluster.Decision) {
	t, n := a.task(d.Task), a.nodes[d.Node]
	wanted := a.s.resizingOf(d.Task, a.now)
	switch more := d.Grant[resource.Memory] - t.grant[resource.Memory]; {
	case a.err != nil:
		return
	case t.state != running || t.killing || t.node != d.Node:
		a.fail("task %s is resized, which does not run on", d.Task)
	case !d.Grant.FitsIn(n.Room()), (wanted.at == 0 || wanted.of(t.grant) != d.Grant) && !a.resizesPhased(d, t) &&
		!a.renews(d, t):
		a.fail("task %s is resized from %v to %v on node %s", d.Task, t.grant, d.Grant, n.Name)
	case more > 0 && t.lentMemory() == (resource.Vector{}) && more > a.unused(n)[resource.Memory]:
		a.fail("task %s is resized to %v on node %s, which has %v unused", d.Task, d.Grant, n.Name, a.unused(n))
	}
	a.weighs(d)
	if a.orders[t.wants.ID] != t.id {
		t.was = t.grant
	}
	t.wants = *d
	if more := d.Grant[resource.Memory] - t.grant[resource.Memory]; t.lentMemory() != (resource.Vector{}) {
		t.out = max(0, t.out+more)
	}
	t.regrant(d.Grant.With(resource.Memory, max(t.grant[resource.Memory], d.Grant[resource.Memory])))
	a.orders[d.ID] = d.Task
}

// renewal is a change of what is reserved of memory for a running task.
type renewal struct {
	at     timeline.Time
	memory resource.Amount
}

// renews reports whether a decision renews a reservation that is learned, and nothing else: by an eighth at least, not
// within 10 s of the last time, never down to less than the task holds, nor up to more than its job reserves, nor down
// once it was up. So there are few for each task, whatever that does.
func (a *auditor) renews(d *cluster.Decision, t *auditedTask) bool {
	j, n := a.jobs[d.Task.Job], a.nodes[d.Node]
	wanted := a.wanted(t)
	was, is, since := wanted[resource.Memory], d.Grant[resource.Memory], timeline.Never
	if a.flag("renew") != "on" || j.Reserve != cluster.ReserveLearned || d.Grant != wanted.With(resource.Memory, is) ||
		max(is, was)-min(is, was) < was/8 || is < min(t.held, n.Capacity[resource.Memory], was) ||
		is < was && t.held == 0 || is > was && is > j.Stages[d.Task.Stage].Ideal[resource.Memory] {
		return false
	}
	for i, r := range t.renewals {
		before := j.Stages[d.Task.Stage].Ideal[resource.Memory]
		if i > 0 {
			before = t.renewals[i-1].memory
		}
		if since = r.at; r.memory > before && is < was {
			return false
		}
	}
	t.renewals = append(t.renewals, renewal{a.now, is})
	return since == timeline.Never || a.now.Sub(since) >= 10*time.Second
}

// wanted is the grant that was decided last.
func (a *auditor) wanted(t *auditedTask) resource.Vector {
	if t.wants.ID != 0 && a.orders[t.wants.ID] == t.id {
		return t.wants.Grant
	}
	return t.grant
}

// resized takes in the answer to an order that may have been a resize.
func (a *auditor) resized(e *cluster.Event) {
	switch t := a.task(e.Task); {
	case t.wants.ID != e.Decision:
	case e.Kind == cluster.DecisionDone:
		t.regrant(t.wants.Grant)
	default:
		t.regrant(t.was)
	}
}

// regrant changes the grant of a task that may lend all but its memory.
func (t *auditedTask) regrant(to resource.Vector) {
	lends := t.holds != t.grant
	if t.grant, t.holds = to, to; lends {
		t.holds = resource.Vector{}.With(resource.Memory, to[resource.Memory])
	}
}
