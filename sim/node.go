package sim

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// node is the true state of a node. Its tasks are plain as long as possible: the end of a plain task is entered once,
// at the task's launch. A task with phases is a flow from the start, and all tasks of a node become flows when more is
// demanded there than the node has.
type node struct {
	capacity  resource.Vector
	swap      resource.Amount // free swap, bytes
	demand    resource.Vector // of all tasks; its memory component is not used
	tasks     []*task
	flows     int
	left      bool            // the cluster; known only if nodes are recorded
	crowded   bool            // demand exceeded capacity
	granted   resource.Vector // summed up only if nodes are recorded
	pressed   resource.Vector // as last reported: what it gives of each resource under pressure
	due       timeline.Time   // time of the agenda item for the earliest end of a phase; Never if there is none
	turn      uint64          // of the agenda item: the turn of the task whose phase ends
	unsettled bool            // it is among the nodes to be settled
}

// spreads reports whether the demands of an under-sized task differ from those of its stage: the task spills, or its
// reads and writes are spread over a longer time.
func (r *run) spreads(t *task, here *node) bool {
	if t.job.behaviours[t.id.Stage]&spills != 0 && here.capacity[resource.Disk] > 0 {
		return true
	}
	ideal := &t.job.Stages[t.id.Stage].Ideal
	return slices.ContainsFunc(rates, func(k resource.Kind) bool { return here.capacity[k] > 0 && ideal[k] > 0 })
}

// plainUse is the resource use of a task without phases whose grant makes it neither spill nor page.
func (r *run) plainUse(t *task) resource.Vector {
	return t.job.Stages[t.id.Stage].Ideal.With(resource.Memory, t.grant[resource.Memory])
}

// occupy puts a task on its node, at its launch.
func (r *run) occupy(t *task) {
	truth := truthOf(t.job.Job, int(t.id.Stage), t.id.Index)
	here := &r.nodes[t.node]
	memory := t.grant[resource.Memory]
	t.slot, t.turn = int32(len(here.tasks)), r.agenda.turn()
	here.tasks = append(here.tasks, t)
	r.unsettle(t.node)
	t.bound = r.caps(t)
	use := r.plainUse(t)
	if t.job.behaviours[t.id.Stage]&(phased|flexible) == 0 && allowedPace(&use, &t.bound) == 1 && (memory >= truth.IdealMemory || underSized(&truth, memory) && !r.spreads(t, here)) {
		t.result.Finished = after(r.now, truth.Elasticity.Duration(truth.Duration, truth.IdealMemory, memory))
		here.demand = here.demand.Add(use)
		r.agenda.pushAt(t.result.Finished, t.turn, ended, t.index)
		return
	}
	t.flow = newFlow(t.room, &truth, t.job.Stages[t.id.Stage].Ideal, memory)
	t.flow.bound = t.bound
	if t.job.behaviours[t.id.Stage]&flexible != 0 {
		t.flow.flexible, t.flow.most = true, t.container.envelope.Max
	}
	here.flows++
	r.nextPhase(t)
}

// nextPhase lets a flow enter its next phase, or end soon: it is over, or cannot survive the phase.
func (r *run) nextPhase(t *task) {
	here, f := &r.nodes[t.node], t.flow
	here.demand = here.demand.Sub(f.demand)
	here.swap += f.swap
	f.demand, f.swap = resource.Vector{}, 0
	if f.at++; f.at == len(f.phases) {
		r.endSoon(t, cluster.Succeeded)
		return
	}
	n, ok := f.needOf(&f.phases[f.at], &r.config.Machine, here.swap)
	if !ok {
		r.endSoon(t, cluster.OutOfMemory)
		return
	}
	f.begin(r.now, n)
	r.reportPhase(t)
	if !f.flexible {
		here.demand = here.demand.Add(f.demand)
		here.swap -= f.swap
		return
	}
	f.demand = resource.Vector{}
	r.hold(t.container, f.whole[resource.Memory])
}

// endSoon ends a task now, but after the present happening, as its launch may not have been reported yet.
func (r *run) endSoon(t *task, how cluster.Outcome) {
	t.ending = how
	t.flow.due, t.flow.pace, t.flow.speed = timeline.Never, 1, 1
	r.agenda.pushAt(r.now, t.turn, dying, t.index)
}

// vacate takes a task off its node.
func (r *run) vacate(t *task) {
	here := &r.nodes[t.node]
	last := here.tasks[len(here.tasks)-1]
	here.tasks[t.slot], last.slot = last, t.slot
	here.tasks = here.tasks[:len(here.tasks)-1]
	if f := t.flow; f != nil {
		here.demand = here.demand.Sub(f.demand)
		here.swap += f.swap
		here.flows--
	} else {
		here.demand = here.demand.Sub(r.plainUse(t))
	}
	r.unsettle(t.node)
}

func (r *run) unsettle(n cluster.NodeID) {
	if here := &r.nodes[n]; !here.unsettled {
		here.unsettled = true
		r.unsettled = append(r.unsettled, n)
	}
}

// settleAll computes the pace of the tasks on all nodes where something has changed.
func (r *run) settleAll() {
	for _, n := range r.unsettled {
		r.nodes[n].unsettled = false
		r.settle(n)
	}
	r.unsettled = r.unsettled[:0]
}

func (r *run) settle(id cluster.NodeID) {
	here := &r.nodes[id]
	over := here.overcommitted()
	switch {
	case over:
		r.becomeFlows(here)
		r.crowd(here)
	case here.crowded || r.keepers != nil:
		for _, t := range here.tasks {
			if t.flow != nil && t.flow.pace != t.flow.speed {
				t.flow.setPace(r.now, t.flow.speed)
			}
		}
	}
	here.crowded = over
	if r.looksAhead {
		r.reportPressure(id)
	}
	if r.recorder != nil {
		for _, t := range here.tasks {
			r.use(t, r.useNow(t))
		}
	}
	if r.config.Series.Nodes {
		r.recordNode(id)
	}
	if r.audit != nil {
		r.audit(here)
	}
	if here.flows == 0 {
		return
	}
	r.file(id)
}

// file enters the earliest end of a phase in the agenda, with the turn of its task: tasks that end at the same time end
// in the order of their launches, regardless of events in between.
func (r *run) file(id cluster.NodeID) {
	here := &r.nodes[id]
	due, turn := timeline.Never, uint64(0)
	for _, t := range here.tasks {
		if f := t.flow; f != nil && (f.due < due || f.due == due && t.turn < turn) {
			due, turn = f.due, t.turn
		}
	}
	if due == here.due && turn == here.turn {
		return
	}
	here.due, here.turn = due, turn
	if due != timeline.Never {
		r.agenda.pushAt(due, turn, phaseEnded, int32(id))
	}
}

func (n *node) overcommitted() bool {
	for _, k := range contended {
		if n.capacity[k] > 0 && n.demand[k] > n.capacity[k] {
			return true
		}
	}
	return false
}

// becomeFlows turns the plain tasks of a node into flows; the agenda items of the plain tasks become void.
func (r *run) becomeFlows(here *node) {
	if here.flows == len(here.tasks) {
		return
	}
	for _, t := range here.tasks {
		if t.flow == nil {
			r.becomeFlow(t)
		}
	}
}

func (r *run) becomeFlow(t *task) {
	use := r.plainUse(t)
	t.flow = &flow{stretch: 1, slower: 1, grant: t.grant[resource.Memory], pace: 1, speed: 1, since: r.now, due: t.result.Finished,
		left: float64(t.result.Finished - r.now), whole: use, demand: use, bound: t.bound}
	t.flow.at = len(t.flow.phases) - 1
	r.nodes[t.node].flows++
}

// crowd shares the resources for which demand exceeds capacity: each resource max-min among the tasks. A task's pace is
// that of the resource of which it gets the smallest share of its demand.
func (r *run) crowd(here *node) {
	var level [resource.NumKinds]float64 // 0: no limit
	for _, k := range contended {
		if here.capacity[k] <= 0 || here.demand[k] <= here.capacity[k] {
			continue
		}
		r.scratch = r.scratch[:0]
		for _, t := range here.tasks {
			if d := t.flow.demand[k]; d > 0 {
				r.scratch = append(r.scratch, float64(d))
			}
		}
		level[k] = fairLevel(r.scratch, here.effective(k, &r.config.Machine))
	}
	for _, t := range here.tasks {
		pace := 1.0
		for _, k := range contended {
			if d := t.flow.demand[k]; level[k] > 0 && d > 0 {
				pace = min(pace, level[k]/float64(d))
			}
		}
		if pace *= t.flow.speed; pace != t.flow.pace {
			t.flow.setPace(r.now, pace)
		}
	}
}

// effective is the usable capacity of a resource at the present demand, in its base unit.
func (n *node) effective(k resource.Kind, m *Machine) float64 {
	capacity := float64(n.capacity[k])
	return capacity * m.loss(k).Efficiency(float64(n.demand[k])/capacity)
}

// endPhase handles the end of the phase that is due on a node.
func (r *run) endPhase(id cluster.NodeID, i item) {
	here := &r.nodes[id]
	if here.due != i.at || here.turn != i.seq {
		return // the item is void: a later change has replaced it
	}
	here.due, here.turn = timeline.Never, 0
	r.still = 0
	for _, t := range here.tasks {
		if t.turn == i.seq {
			r.nextPhase(t)
			break
		}
	}
	r.unsettle(id)
}
