package sim

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// holding says who stops a task.
type holding struct {
	by   cluster.Holders // of the engine's
	told cluster.Holders // as last reported to the engine, the holders of the node included
	paging
}

// ECSHoldDelay is how long it takes to suspend a task and to let it go on again (ECS section V.E: around 0.7 s): a
// value for Config.HoldDelay.
const ECSHoldDelay = 700 * time.Millisecond

// holdFor makes a task stand still, or go on, as was decided. If it cannot, why says so.
func (r *run) holdFor(t *task, d *cluster.Decision) (why string) {
	if !r.fluid {
		return "in this simulation tasks take as long as they take"
	}
	t.holding.by = d.By
	r.turnOut(t, d.PageOut)
	r.holdStill(t, d.By != 0 || t.holding.away())
	return ""
}

// holdStill makes the programs of a task stand still for the engine, or lets them go on if the memory manager does.
func (r *run) holdStill(t *task, still bool) {
	if t.result.Coordinator || t.ending != 0 {
		return // it makes no progress of its own, or it is over
	}
	if t.flow == nil {
		r.becomeFlow(t)
	}
	if t.flow.held != still {
		t.flow.held = still
		r.reslow(t)
	}
}

// reslow makes a flow go on as fast as what is wanted of its task allows, after that has changed.
func (r *run) reslow(t *task) {
	f, here := t.flow, &r.nodes[t.node]
	if f.flexible {
		r.repace(t.container)
		return
	}
	here.demand = here.demand.Sub(f.demand)
	f.slow(1)
	r.setPace(t, f.speed)
	here.demand = here.demand.Add(f.demand)
	r.unsettle(t.node)
}

// stillFor returns who stops a task; 0 if the task runs.
func (t *task) stillFor() (by cluster.Holders) {
	if t.holding != nil {
		if by = t.holding.by; !t.holding.wanted && (t.holding.away() || t.container != nil && t.container.out) {
			by |= cluster.HeldByMemory // until its memory is back
		}
	}
	if t.container != nil && t.container.stopped {
		by |= cluster.HeldByMemory
	}
	return by
}

// resting is what a task that stands still demands: its memory, unless that is paged out.
func (f *flow) resting() resource.Vector {
	if f.away {
		return resource.Vector{}
	}
	return resource.Vector{}.With(resource.Memory, f.whole[resource.Memory])
}
