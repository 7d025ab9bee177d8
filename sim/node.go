package sim

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// node is the true state of a node. Its tasks are plain as long as possible: the end of a plain task is entered once,
// at the task's launch. A task with phases is a flow from the start, and all tasks of a node become flows when more is
// demanded there than the node has.
type node struct {
	capacity  resource.Vector
	swap      resource.Amount // free swap, bytes
	demand    resource.Vector // of all tasks; its memory component is not used
	tasks     []*task
	ends      []ending // of the present phases of the tasks, in their order: see endAt
	first     ending   // the earliest of ends, unless that is sought
	seek      bool     // the earliest of ends is to be sought
	flows     int
	left      bool            // the cluster; known only if nodes are recorded
	crowded   bool            // demand exceeded capacity
	granted   resource.Vector // summed up only if nodes are recorded
	pressed   resource.Vector // as last reported: what it gives of each resource under pressure
	due       ending          // the agenda item for the earliest end of a phase; at Never if there is none
	unsettled bool            // it is among the nodes to be settled
}

// ending is the end of the present phase of a task at its present pace. The ends are apart from the tasks, because the
// earliest of them is looked for after every change on a node.
type ending struct {
	at   timeline.Time // Never if the task is plain, about to end, or makes no progress
	turn uint64        // of the task
}

func (e *ending) before(f *ending) bool { return e.at < f.at || e.at == f.at && e.turn < f.turn }

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
	here := &r.nodes[t.node]
	t.slot, t.turn = int32(len(here.tasks)), r.agenda.turn()
	here.tasks = append(here.tasks, t)
	here.ends = append(here.ends, ending{timeline.Never, t.turn})
	r.unsettle(t.node)
	t.bound = r.caps(t)
	if lasts, plain := r.plainTime(t, here); plain {
		if t.found != nil {
			lasts = r.left(t)
		}
		t.result.Finished = after(r.now, lasts)
		here.demand = here.demand.Add(r.plainUse(t))
		r.agenda.pushAt(t.result.Finished, t.turn, ended, t.index)
		return
	}
	t.flow = r.newFlow(t)
	t.flow.bound = t.bound
	if t.job.behaviours[t.id.Stage]&flexible != 0 {
		t.flow.flexible, t.flow.most = true, t.container.envelope.Max
	}
	here.flows++
	if t.found != nil {
		r.skip(t, r.left(t))
		return
	}
	r.nextPhase(t)
}

// plainTime returns how long a task runs that is plain; plain is false if it must be a flow.
func (r *run) plainTime(t *task, here *node) (lasts time.Duration, plain bool) {
	if t.job.behaviours[t.id.Stage]&(phased|flexible) != 0 {
		return 0, false
	}
	truth := truthOf(t.job.Job, int(t.id.Stage), t.id.Index, t.result.Warmth)
	use, memory := r.plainUse(t), t.grant[resource.Memory]
	if allowedPace(&use, &t.bound) < 1 || memory < truth.IdealMemory &&
		(!underSized(&truth, memory) || r.spreads(t, here)) {
		return 0, false
	}
	return truth.Elasticity.Duration(truth.Duration, truth.IdealMemory, memory), true
}

// nextPhase lets a flow enter its next phase, or end soon: it is over, or cannot survive the phase.
func (r *run) nextPhase(t *task) {
	if r.waitsForParents(t) {
		return
	}
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
	here.endAt(t.slot, f.ends(r.now))
	r.reportPhase(t)
	if !f.flexible {
		here.demand = here.demand.Add(f.demand)
		here.swap -= f.swap
		return
	}
	f.demand = resource.Vector{}
	r.hold(t.container, f.whole[resource.Memory])
}

// endSoon ends a task now, but after the present happening, as its launch may not have been reported yet, and after
// void items about its phase.
func (r *run) endSoon(t *task, how cluster.Outcome) {
	t.ending = how
	t.flow.pace, t.flow.speed = 1, 1
	r.nodes[t.node].endAt(t.slot, timeline.Never)
	r.agenda.pushAt(r.now, t.turn+1, dying, t.index)
}

// vacate takes a task off its node.
func (r *run) vacate(t *task) {
	here := &r.nodes[t.node]
	here.endAt(t.slot, timeline.Never)
	end := len(here.tasks) - 1
	last := here.tasks[end]
	here.tasks[t.slot], here.ends[t.slot], last.slot = last, here.ends[end], t.slot
	here.tasks, here.ends = here.tasks[:end], here.ends[:end]
	if f := t.flow; f != nil {
		here.demand = here.demand.Sub(f.demand)
		here.swap += f.swap
		here.flows--
	} else {
		here.demand = here.demand.Sub(r.plainUse(t))
	}
	r.unsettle(t.node)
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
				r.setPace(t, t.flow.speed)
			}
		}
	}
	here.crowded = over
	if r.traits.LooksAhead {
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
	if here.seek {
		here.seekFirst()
	}
	if here.due == here.first {
		return
	}
	here.due = here.first
	if here.due.at != timeline.Never {
		r.agenda.pushAt(here.due.at, here.due.turn, phaseEnded, int32(id))
	}
}

// endAt sets when the present phase of the task in a slot ends. Most changes leave the earliest end on the node what
// it is, or make the new end the earliest.
func (n *node) endAt(slot int32, at timeline.Time) {
	end := &n.ends[slot]
	n.seek = n.seek || *end == n.first && at > end.at
	end.at = at
	if end.before(&n.first) {
		n.first = *end
	}
}

func (n *node) seekFirst() {
	n.first, n.seek = ending{at: timeline.Never}, false
	for i := range n.ends {
		if n.ends[i].before(&n.first) {
			n.first = n.ends[i]
		}
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
	t.flow = &flow{stretch: 1, slower: 1, grant: t.grant[resource.Memory], pace: 1, speed: 1, since: r.now,
		left: float64(t.result.Finished - r.now), whole: use, demand: use, bound: t.bound}
	t.flow.at = len(t.flow.phases) - 1
	here := &r.nodes[t.node]
	here.flows++
	here.endAt(t.slot, t.result.Finished)
}

// setPace changes the pace of a flow from now on.
func (r *run) setPace(t *task, pace float64) {
	t.flow.setPace(r.now, pace)
	r.nodes[t.node].endAt(t.slot, t.flow.ends(r.now))
}

// crowd shares the resources for which demand exceeds capacity: each resource max-min among the tasks, by weight. A
// task's pace is that of the resource of which it gets the smallest share of its demand.
func (r *run) crowd(here *node) {
	var level [resource.NumKinds]float64 // 0: no limit
	for _, k := range contended {
		if here.capacity[k] <= 0 || here.demand[k] <= here.capacity[k] {
			continue
		}
		r.scratch = r.scratch[:0]
		for _, t := range here.tasks {
			if d := t.flow.demand[k]; d > 0 {
				w := r.weight(t, k)
				r.scratch = append(r.scratch, claim{float64(d) / w, w})
			}
		}
		level[k] = fairLevel(r.scratch, here.effective(k, &r.config.Machine))
	}
	for _, t := range here.tasks {
		pace := 1.0
		for _, k := range contended {
			if d := t.flow.demand[k]; level[k] > 0 && d > 0 {
				pace = min(pace, level[k]*r.weight(t, k)/float64(d))
			}
		}
		if pace *= t.flow.speed; pace != t.flow.pace {
			r.setPace(t, pace)
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
	if here.due != (ending{i.at, i.seq}) {
		return // the item is void: a later change has replaced it
	}
	here.due = ending{at: timeline.Never}
	r.still = 0
	for slot := range here.ends {
		if here.ends[slot].turn == i.seq {
			r.nextPhase(here.tasks[slot])
			break
		}
	}
	r.unsettle(id)
}
