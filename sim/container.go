package sim

import (
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/memory"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// container is the memory of a task on a node that has a keeper.
type container struct {
	task     *task
	envelope memory.Envelope
	asked    timeline.Time // for its memory, first
	again    timeline.Time // when it may ask again; meaningful while it waits
	worth    bool          // something has changed since it was refused
	admitted bool

	limit    resource.Amount // in force
	set      resource.Amount // working set of the present phase
	resident resource.Amount // of that, in memory
	swapped  resource.Amount // of that, on the swap device; what is left its programs have not been given yet
	traffic  int64           // bytes that went to the swap device and came back
	stopped  bool            // its programs stand still
	since    timeline.Time   // when they stopped

	order  *order    // that is being carried out, nil if none is
	moving *transfer // pages that its programs have moved: overflow or fault; nil if they have none
}

// order is an action of the memory manager that the kernel is about to do.
type order struct {
	memory.Action
	asked    timeline.Time
	turn     uint64 // of the item of the agenda with which it goes on
	breathed bool   // Breathe: its programs run already
	full     bool   // Shrink: swap is full
}

func (c *container) id() cluster.ContainerID { return c.envelope.Container }

func (c *container) flex() bool { return c.envelope.Class == cluster.Flex }

// wanting is what its programs ask for and have not been given.
func (c *container) wanting() resource.Amount { return c.set - c.resident - c.swapped }

// short reports whether its programs run and wait for memory.
func (c *container) short() bool { return !c.stopped && c.set > c.limit }

// hold changes the working set of a container. What a program gives back is what it has not used lately: of that swap is full.
func (r *run) hold(c *container, set resource.Amount) {
	k := r.keepers[c.task.node]
	r.callOff(k, c, fault, overflow)
	back := max(0, c.set-set-c.wanting())
	c.set = set
	fromSwap := min(back, c.swapped)
	c.swapped -= fromSwap
	r.places[k.node].swap += fromSwap
	c.resident -= back - fromSwap
	r.refresh(c)
}

// refresh lets a container whose memory has changed go on: its programs take what they may, at the pace that it allows, and it
// is looked at.
func (r *run) refresh(c *container) {
	t := c.task
	if !c.flex() || t.flow == nil || t.ended() {
		return
	}
	if !c.stopped && t.fate == 0 {
		r.allocate(c)
	}
	if t.fate == 0 {
		r.repace(c)
	}
	r.stir(r.keepers[t.node], c)
}

// allocate gives running programs the memory that they want: what is free below the limit at once, the rest as fast as other
// pages of theirs can be swapped out for it. Then what was swapped out comes back, as far as it fits. A program that wants
// more when swap is full is killed.
func (r *run) allocate(c *container) {
	k, p := r.keepers[c.task.node], &r.places[c.task.node]
	c.resident += min(c.wanting(), c.limit-c.resident)
	if c.moving != nil {
		return
	}
	switch free := c.limit - c.resident; {
	case c.wanting() > 0 && p.swap == 0:
		r.fate(c.task, cluster.OutOfMemory)
	case c.wanting() > 0:
		out := min(c.wanting(), p.swap)
		r.reserveSwap(k, out)
		c.moving = &transfer{c, out, overflow}
		r.move(k, c.moving)
	case free > 0 && c.swapped > 0:
		c.moving = &transfer{c, min(free, c.swapped), fault}
		r.move(k, c.moving)
	}
}

func (r *run) reserveSwap(k *keeper, bytes resource.Amount) {
	r.places[k.node].swap -= bytes
	k.promised += bytes
}

// repace finds the pace and the demand that a container's memory allows.
func (r *run) repace(c *container) {
	p, f := &r.places[c.task.node], c.task.flow
	p.demand = p.demand.Sub(f.demand)
	f.speed, f.demand = 0, resource.Vector{}
	if !c.stopped {
		f.speed = 1 / r.config.Machine.Paging.Slowdown(c.resident, c.set)
		f.demand = f.whole
		for _, k := range []resource.Kind{resource.Disk, resource.Network} {
			f.demand[k] = resource.Amount(float64(f.demand[k]) * f.speed)
		}
	}
	f.demand[resource.Memory] = c.resident
	p.demand = p.demand.Add(f.demand)
	r.unsettle(c.task.node)
}

// setLimit changes what a container may hold.
func (r *run) setLimit(c *container, limit resource.Amount) {
	k, change := r.keepers[c.task.node], limit-c.limit
	if change == 0 {
		return
	}
	r.callOff(k, c, fault, overflow)
	memory := func(a resource.Amount) resource.Vector { return resource.Vector{}.With(resource.Memory, a) }
	r.grant(memory(c.limit), memory(limit))
	c.limit = limit
	k.held += change
}

// stand has a container's programs stand still, or run.
func (r *run) stand(c *container, still bool) {
	if c.stopped == still {
		return
	}
	if c.stopped = still; still {
		c.since = r.now
		r.callOff(r.keepers[c.task.node], c, fault, overflow)
		return
	}
	long := r.now.Sub(c.since)
	r.result.Jobs[c.task.job.index].Suspended += long
	r.result.Suspended += long
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

// goOn has the order of a container go on at a later time.
func (r *run) goOn(c *container, at timeline.Time) {
	c.order.turn = r.agenda.turn()
	r.agenda.pushAt(at, c.order.turn, ordered, c.task.index)
}

// carryOn does what the order of a container has come to.
func (r *run) carryOn(t *task, i item) {
	c := t.container
	if c == nil || c.order == nil || c.order.turn != i.seq {
		return // it was given up, or the container has ended
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

// lower pushes out what a container holds above the limit that it is to have, while its programs stand still, and lowers the
// limit. If swap is full, as much as can be is won.
func (r *run) lower(c *container) {
	k, p, o := r.keepers[c.task.node], &r.places[c.task.node], c.order
	r.callOff(k, c, fault, overflow)
	if over := c.resident - o.Limit; over > 0 && !o.full {
		out := min(over, p.swap)
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

// orderDone tells the manager what came of its order.
func (r *run) orderDone(c *container, failed bool) {
	k := r.keepers[c.task.node]
	k.input.Outcomes = append(k.input.Outcomes, memory.Outcome{Action: c.order.ID, Limit: c.limit, Failed: failed})
	c.order = nil
	r.refresh(c)
	k.see(c)
}

// giveUpOrder ends an order that takes too long: what has been won so far counts.
func (r *run) giveUpOrder(c *container) {
	k := r.keepers[c.task.node]
	r.callOff(k, c, pageOut, prefetch)
	if c.order.Kind == memory.Shrink {
		r.lowered(c)
	} else {
		r.orderDone(c, false)
	}
}
