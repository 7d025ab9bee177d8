package sim

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// A FLEX container stands still without its memory, as on a machine: the memory manager leaves it alone from before
// its pages go to swap until it has been given its Min again. Then it is suspended, and the manager resumes it. Its
// pages come back as its programs use them.

// sendOut begins to page out the memory of a container whose programs stand still.
func (r *run) sendOut(c *container) {
	k := r.keepers[c.task.node]
	if c.out { // it was about to come back
		r.unask(k, c)
	}
	c.out = true
	r.callOff(k, c, fault, overflow, pageOut, prefetch)
	if c.order != nil {
		k.input.Outcomes = append(k.input.Outcomes, memory.Outcome{Action: c.order.ID, Limit: c.limit, Failed: true})
		c.order = nil
	}
	r.stand(c, false)
	k.input.Out = append(k.input.Out, memory.Out{Container: c.id()})
	switch bytes := min(c.resident, r.nodes[k.node].swap); {
	case r.traits.FreePageOut:
		c.parked += c.resident
		c.resident, c.swapped = 0, c.swapped+c.resident
		r.leftMemory(c)
	case bytes == 0:
		r.leftMemory(c)
	default:
		r.reserveSwap(k, bytes)
		r.move(k, &transfer{c, bytes, leave})
	}
	r.refresh(c)
	r.wake(k)
}

// leftMemory lowers the limit of a container to what is left in memory, and reports what has left.
func (r *run) leftMemory(c *container) {
	k, t := r.keepers[c.task.node], c.task
	r.setLimit(c, min(c.limit, max(page, c.resident)))
	k.input.Out = append(k.input.Out, memory.Out{Container: c.id(), Limit: c.limit})
	r.refresh(c)
	r.wake(k)
	r.tellOut(t)
}

// tellOut reports how much memory of its grant has left a task with a container.
func (r *run) tellOut(t *task) {
	t.holding.out = 0
	e := cluster.Event{Kind: cluster.TaskPagedOut, Task: t.id, Node: t.node}
	if c := t.container; c.out {
		t.holding.out = max(0, t.grant[resource.Memory]-c.limit)
		found := cluster.Condition{Out: t.holding.out}
		if c.resident > page {
			found.Stays = "swap is full"
		}
		e.SetCondition(found)
	}
	r.report(t, e)
}

// callBack requests the memory of a container that is out.
func (r *run) callBack(c *container) {
	if !c.out {
		return
	}
	k := r.keepers[c.task.node]
	r.callOff(k, c, leave)
	c.asked = r.now
	r.request(k, c)
}

// unask takes back the request for the memory of a container.
func (r *run) unask(k *keeper, c *container) {
	k.input.Requests = slices.DeleteFunc(k.input.Requests, func(q memory.Request) bool { return q.Container == c.id() })
	k.refused = slices.DeleteFunc(k.refused, func(o *container) bool { return o == c })
}

// comeBack gives a container its memory again: the memory manager has suspended it, and resumes it in its place in
// the order.
func (r *run) comeBack(c *container) {
	r.waited(c)
	k := r.keepers[c.task.node]
	c.out = false
	r.setLimit(c, max(c.limit, c.envelope.Min))
	c.resident, c.swapped, c.parked = c.resident+c.parked, c.swapped-c.parked, 0
	r.stand(c, true)
	r.holdStill(c.task, c.task.holding.by != 0)
	r.refresh(c)
	k.see(c)
	r.wake(k)
	r.tellOut(c.task)
	r.reportStill(c.task)
}
