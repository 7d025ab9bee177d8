package scenarios

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
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
	case !d.Grant.FitsIn(n.Room()), (wanted.at == 0 || wanted.of(t.grant) != d.Grant) && !a.resizesPhased(d, t):
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
