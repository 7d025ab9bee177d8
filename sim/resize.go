package sim

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
)

// ECSResizeDelay is how long it takes to give a container another size when its task enters its next phase (ECS
// section V.E: around 50 ms): a value for Config.ResizeDelay.
const ECSResizeDelay = 50 * time.Millisecond

// resize changes the grant of a task from now on. If it cannot, why says so, and the task is as before.
func (r *run) resize(t *task, d *cluster.Decision) (why string) {
	switch {
	case !r.fluid:
		return "in this simulation tasks take as long as they take"
	case t.ending != 0:
		return "" // it is over
	}
	was, is := t.grant[resource.Memory], d.Grant[resource.Memory]
	if was != is && r.keepers != nil {
		if why := r.resizeContainer(t, d.Envelope); why != "" {
			return why
		}
	}
	if flexible := t.flow != nil && t.flow.flexible; was != is && !flexible && !t.result.Coordinator {
		if why := r.resizeMemory(t, is); why != "" {
			if r.keepers != nil {
				_ = r.resizeContainer(t, *t.envelope) // which has room, as before
			}
			return why
		}
	}
	before := r.heldBy(t)
	if t.grant, t.mostCPU = d.Grant, d.Envelope.MostCPU; r.keepers != nil {
		t.envelope = new(d.Envelope)
	}
	r.grant(t.node, before, r.heldBy(t))
	if t.container != nil && t.container.out && t.holding.out > 0 {
		t.holding.out = max(0, t.grant[resource.Memory]-t.container.limit)
	}
	r.rebound(t)
	return ""
}

// resizeContainer changes what the memory manager of a node may do with a container. A FLEX container grows and
// shrinks by the actions of the manager alone.
func (r *run) resizeContainer(t *task, e cluster.Envelope) (why string) {
	c, k := t.container, r.keepers[t.node]
	if more := e.Min - c.limit; !c.flex() && k.manager.Allocated()+more > k.memory {
		return "FLEX containers have grown into the memory"
	}
	c.envelope.Envelope = e
	if !c.flex() {
		r.setLimit(c, e.Min)
	}
	k.input.Changed = append(k.input.Changed, memory.Envelope{Container: c.id(), Envelope: e})
	k.seeChanged()
	r.wake(k)
	if c.out && !t.holding.wanted { // it has requested another amount
		r.unask(k, c)
		r.request(k, c)
	}
	return ""
}

// resizeMemory makes a task go on with another amount of memory, of which it keeps its share of the present phase. It
// fails if the task would not survive the phase.
func (r *run) resizeMemory(t *task, to resource.Amount) (why string) {
	here := &r.nodes[t.node]
	if t.flow == nil {
		r.becomeFlow(t)
		r.unsettle(t.node) // also if this fails: its end is one of a flow from now on
	}
	old, truth := t.flow, truthOf(t.job.Job, int(t.id.Stage), t.id.Index, t.result.Warmth)
	old.advance(r.now)
	f := flowOf(&truth, t.job.Stages[t.id.Stage].Ideal, to)
	f.at, f.held, f.bound = max(0, old.at), old.held, old.bound
	n, ok := f.needOf(&f.phases[f.at], &r.config.Machine, here.swap+old.swap)
	if !ok {
		return "the memory that its programs use fits neither into the new size nor into swap"
	}
	before, left := flowOf(&truth, t.job.Stages[t.id.Stage].Ideal, t.grant[resource.Memory]), n.length
	if was, _ := before.needOf(&before.phases[f.at], &r.config.Machine, here.swap+old.swap); was.length > 0 {
		left = n.length * min(1, old.left/was.length)
	}
	here.demand, here.swap = here.demand.Sub(old.demand), here.swap+old.swap
	*old = f
	old.begin(r.now, n)
	old.left = left
	here.endAt(t.slot, old.ends(r.now))
	here.demand, here.swap = here.demand.Add(old.demand), here.swap-old.swap
	r.unsettle(t.node)
	return ""
}
