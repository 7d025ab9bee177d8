package sim

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// container is the memory of a task on a node that has a keeper.
type container struct {
	task     *task
	envelope memory.Envelope
	asked    timeline.Time // for its memory, the first time
	again    timeline.Time // earliest time of its next request; meaningful while it waits
	worth    bool          // something has changed since it was refused
	admitted bool

	limit    resource.Amount // in force
	set      resource.Amount // working set of the present phase
	resident resource.Amount // part of the working set in memory
	swapped  resource.Amount // part of the working set on the swap device; the rest has not been allocated yet
	traffic  int64           // bytes moved to the swap device and back
	told     resource.Amount // of resident and swapped, as last reported to the engine: see reportHeld
	stopped  bool            // its programs are suspended
	// its memory is out, or on its way out, for another party than the memory manager: see sendOut
	out    bool
	runsOn bool            // no memory can be had for it by any means, and it runs until it needs more
	parked resource.Amount // part of swapped for which no swap is used: see policy.Traits.FreePageOut
	since  timeline.Time   // when they were suspended
	stood  time.Duration   // how long they were suspended before

	order  *order    // in progress; nil if there is none
	moving *transfer // pages moved by its programs: overflow or fault; nil if there are none
}

// order is an action of the memory manager that is being carried out.
type order struct {
	memory.Action
	asked    timeline.Time
	turn     uint64 // of the order's next item on the agenda
	breathed bool   // Breathe: its programs already run
	full     bool   // Shrink: swap is full
}

func (c *container) id() cluster.ContainerID { return c.envelope.Container }

func (c *container) flex() bool { return c.envelope.Class == cluster.Flex }

// wanting is the memory that its programs have asked for and not been given, bytes.
func (c *container) wanting() resource.Amount { return c.set - c.resident - c.swapped }

// short reports whether its programs run and wait for memory.
func (c *container) short() bool { return !c.stopped && !c.out && c.set > c.limit }

// hold changes the working set of a container. A program frees the memory that it has not used lately, so swapped pages
// are freed first.
func (r *run) hold(c *container, set resource.Amount) {
	k := r.keepers[c.task.node]
	r.callOff(k, c, fault, overflow)
	back := max(0, c.set-set-c.wanting())
	c.set = set
	fromSwap := min(back, c.swapped)
	c.swapped -= fromSwap
	r.nodes[k.node].swap += fromSwap
	c.resident -= back - fromSwap
	r.refresh(c)
}

// refresh updates a container whose memory has changed: its programs allocate memory within the limit, their pace is
// computed again, and the memory manager is to sample the container.
func (r *run) refresh(c *container) {
	t := c.task
	if !c.flex() || t.flow == nil || t.ended() {
		return
	}
	if !c.stopped && !c.out && t.ending == 0 {
		r.allocate(c)
	}
	if t.ending == 0 {
		r.repace(c)
	}
	r.memoryChanged(r.keepers[t.node], c)
	r.reportHeld(c)
}

// allocate gives running programs the memory that they ask for: memory below the limit at once, and the rest at the
// speed at which other pages of the container are swapped out. Then swapped pages come back, as far as they fit. A
// program that asks for more memory when swap is full is killed at its maximum, or where the memory manager knows no
// other means; elsewhere the manager stops it before, and it waits.
func (r *run) allocate(c *container) {
	k, here := r.keepers[c.task.node], &r.nodes[c.task.node]
	c.resident += min(c.wanting(), c.limit-c.resident)
	if c.moving != nil {
		return
	}
	switch free := c.limit - c.resident; {
	case c.wanting() > 0 && here.swap == 0 && r.parameters.Strategy == memory.InOrder && c.limit < c.envelope.Max &&
		!c.runsOn:
	case c.wanting() > 0 && here.swap == 0:
		r.endSoon(c.task, cluster.OutOfMemory)
	case c.wanting() > 0:
		out := min(c.wanting(), here.swap)
		r.reserveSwap(k, out)
		c.moving = &transfer{c, out, overflow}
		r.move(k, c.moving)
	case free > 0 && c.swapped > 0:
		c.moving = &transfer{c, min(free, c.swapped), fault}
		r.move(k, c.moving)
	}
}

func (r *run) reserveSwap(k *keeper, bytes resource.Amount) {
	r.nodes[k.node].swap -= bytes
	k.promised += bytes
}

// repace computes the pace and the demand that a container's memory allows.
func (r *run) repace(c *container) {
	here, f := &r.nodes[c.task.node], c.task.flow
	here.demand = here.demand.Sub(f.demand)
	f.speed, f.demand = 0, resource.Vector{}
	if !c.stopped && !c.out {
		f.slow(1 / r.config.Machine.Paging.Slowdown(c.resident, c.set))
	}
	f.demand[resource.Memory] = c.resident
	here.demand = here.demand.Add(f.demand)
	r.unsettle(c.task.node)
}

// setLimit changes the limit of a container.
func (r *run) setLimit(c *container, limit resource.Amount) {
	k, change := r.keepers[c.task.node], limit-c.limit
	if change == 0 {
		return
	}
	r.callOff(k, c, fault, overflow)
	c.runsOn = false
	memory := func(a resource.Amount) resource.Vector { return resource.Vector{}.With(resource.Memory, a) }
	r.grant(c.task.node, memory(c.limit), memory(limit))
	c.limit = limit
	k.held += change
}

// stand suspends or resumes a container's programs on behalf of its node's memory.
func (r *run) stand(c *container, still bool) {
	if c.stopped == still {
		return
	}
	c.stopped = still
	r.reportStill(c.task)
	if still {
		c.since = r.now
		r.callOff(r.keepers[c.task.node], c, fault, overflow)
		return
	}
	c.stood += r.now.Sub(c.since)
	r.result.Jobs[c.task.job.index].Suspended += r.now.Sub(c.since)
}

// take begins to carry out an action.
func (r *run) take(c *container, a memory.Action) {
	c.order = &order{Action: a, asked: r.now}
	if a.Kind == memory.Shrink && c.resident > a.Limit {
		r.lower(c)
		return
	}
	r.goOn(c, r.now.Add(orderTime))
}

// goOn enters the next step of a container's order in the agenda.
func (r *run) goOn(c *container, at timeline.Time) {
	c.order.turn = r.agenda.turn()
	r.agenda.pushAt(at, c.order.turn, ordered, c.task.index)
}

// carryOn carries out the next step of a container's order.
func (r *run) carryOn(t *task, i item) {
	c := t.container
	if c == nil || c.order == nil || c.order.turn != i.seq {
		return // the order was given up, or the container has ended
	}
	switch o := c.order; o.Kind {
	case memory.Grow:
		r.setLimit(c, max(c.limit, o.Limit))
		if c.stopped && c.swapped > 0 && c.resident+c.swapped <= c.limit {
			r.move(r.keepers[t.node], &transfer{c, c.swapped, prefetch})
			r.refresh(c)
			return
		}
		r.orderDone(c, false)
	case memory.Shrink:
		r.lower(c)
	case memory.Suspend, memory.Resume:
		r.stand(c, o.Kind == memory.Suspend)
		c.runsOn = o.Reason.Code == memory.RunsOn
		r.orderDone(c, false)
	case memory.Breathe:
		r.stand(c, o.breathed)
		if o.breathed {
			r.orderDone(c, false)
			return
		}
		o.breathed = true
		r.refresh(c)
		r.goOn(c, r.now.Add(r.parameters.BreathOf(c.envelope.HeartbeatTimeout)))
	}
}

// lower swaps out the memory of a suspended container that exceeds the order's limit, and then lowers the limit. If
// swap is full, it lowers the limit as far as it can.
func (r *run) lower(c *container) {
	k, here, o := r.keepers[c.task.node], &r.nodes[c.task.node], c.order
	r.callOff(k, c, fault, overflow)
	if over := c.resident - o.Limit; over > 0 && !o.full {
		out := min(over, here.swap)
		o.full = out < over
		if out > 0 {
			r.stand(c, true)
			r.reserveSwap(k, out)
			r.move(k, &transfer{c, out, pageOut})
			r.refresh(c)
			return
		}
	}
	r.lowered(c)
}

func (r *run) lowered(c *container) {
	o := c.order
	r.setLimit(c, min(c.limit, max(o.Limit, c.resident)))
	r.stand(c, o.Suspended)
	r.orderDone(c, c.limit > o.Limit)
}

// orderDone reports the outcome of a container's order to the manager.
func (r *run) orderDone(c *container, failed bool) {
	k := r.keepers[c.task.node]
	k.input.Outcomes = append(k.input.Outcomes, memory.Outcome{Action: c.order.ID, Limit: c.limit, Failed: failed})
	c.order = nil
	r.refresh(c)
	k.see(c)
}

// giveUpOrder ends an order that takes too long; memory reclaimed so far counts.
func (r *run) giveUpOrder(c *container) {
	k := r.keepers[c.task.node]
	r.callOff(k, c, pageOut, prefetch)
	if c.order.Kind == memory.Shrink {
		r.lowered(c)
	} else {
		r.orderDone(c, false)
	}
}
