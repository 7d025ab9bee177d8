package sim

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// place is the true state of a node. Its tasks are plain as long as possible: the end of a plain task is entered once,
// at the task's launch. A task with phases is a flow from the start, and all tasks of a place become flows when more is
// demanded there than the node has.
type place struct {
	capacity resource.Vector
	swap     resource.Amount // free swap, bytes
	demand   resource.Vector // of all tasks; its memory component is not used
	tasks    []*task
	flows    int
	crowded  bool          // demand exceeded capacity
	due      timeline.Time // time of the agenda item for the earliest end of a phase; Never if there is none
	turn     uint64        // of the agenda item: the turn of the task whose phase ends
	unsure   bool          // it is among the places to be settled
}

// spreads reports whether the demands of an under-sized task differ from those of its stage: the task spills, or its
// reads and writes are spread over a longer time.
func (r *run) spreads(t *task, p *place) bool {
	if t.job.natures[t.id.Stage]&spills != 0 && p.capacity[resource.Disk] > 0 {
		return true
	}
	ideal := &t.job.Stages[t.id.Stage].Ideal
	return slices.ContainsFunc(rates, func(k resource.Kind) bool { return p.capacity[k] > 0 && ideal[k] > 0 })
}

// plainUse is the resource use of a task without phases whose grant makes it neither spill nor page.
func (r *run) plainUse(t *task) resource.Vector {
	return t.job.Stages[t.id.Stage].Ideal.With(resource.Memory, t.grant[resource.Memory])
}

// occupy puts a task on its place, at its launch.
func (r *run) occupy(t *task) {
	truth := truthOf(t.job.Job, int(t.id.Stage), t.id.Index)
	p := &r.places[t.node]
	memory := t.grant[resource.Memory]
	t.slot, t.turn = int32(len(p.tasks)), r.agenda.turn()
	p.tasks = append(p.tasks, t)
	r.unsettle(t.node)
	if t.job.natures[t.id.Stage]&(phased|flexible) == 0 && (memory >= truth.IdealMemory || underSized(&truth, memory) && !r.spreads(t, p)) {
		t.result.Finished = after(r.now, truth.Elasticity.Duration(truth.Duration, truth.IdealMemory, memory))
		p.demand = p.demand.Add(r.plainUse(t))
		r.agenda.pushAt(t.result.Finished, t.turn, ended, t.index)
		return
	}
	t.flow = newFlow(t.room, &truth, t.job.Stages[t.id.Stage].Ideal, memory)
	if t.job.natures[t.id.Stage]&flexible != 0 {
		t.flow.flexible, t.flow.most = true, t.container.envelope.Max
	}
	p.flows++
	r.nextPhase(t)
}

// nextPhase lets a flow enter its next phase, or gives it its fate: it is over, or cannot survive the phase.
func (r *run) nextPhase(t *task) {
	p, f := &r.places[t.node], t.flow
	p.demand = p.demand.Sub(f.demand)
	p.swap += f.swap
	f.demand, f.swap = resource.Vector{}, 0
	if f.at++; f.at == len(f.phases) {
		r.fate(t, cluster.Succeeded)
		return
	}
	n, ok := f.needOf(&f.phases[f.at], &r.config.Machine, p.swap)
	if !ok {
		r.fate(t, cluster.OutOfMemory)
		return
	}
	f.begin(r.now, n)
	if !f.flexible {
		p.demand = p.demand.Add(f.demand)
		p.swap -= f.swap
		return
	}
	f.whole, f.demand = f.demand, resource.Vector{}
	r.hold(t.container, f.whole[resource.Memory])
}

// fate ends a task now, but after the present happening, as its launch may not have been reported yet.
func (r *run) fate(t *task, how cluster.Outcome) {
	t.fate = how
	t.flow.due, t.flow.pace, t.flow.speed = timeline.Never, 1, 1
	r.agenda.pushAt(r.now, t.turn, dying, t.index)
}

// vacate takes a task off its place.
func (r *run) vacate(t *task) {
	p := &r.places[t.node]
	last := p.tasks[len(p.tasks)-1]
	p.tasks[t.slot], last.slot = last, t.slot
	p.tasks = p.tasks[:len(p.tasks)-1]
	if f := t.flow; f != nil {
		p.demand = p.demand.Sub(f.demand)
		p.swap += f.swap
		p.flows--
	} else {
		p.demand = p.demand.Sub(r.plainUse(t))
	}
	r.unsettle(t.node)
}

func (r *run) unsettle(n cluster.NodeID) {
	if p := &r.places[n]; !p.unsure {
		p.unsure = true
		r.unsure = append(r.unsure, n)
	}
}

// settleAll computes the pace of the tasks on all places where something has changed.
func (r *run) settleAll() {
	for _, n := range r.unsure {
		r.places[n].unsure = false
		r.settle(n)
	}
	r.unsure = r.unsure[:0]
}

func (r *run) settle(id cluster.NodeID) {
	p := &r.places[id]
	over := p.overcommitted()
	switch {
	case over:
		r.becomeFlows(p)
		r.crowd(p)
	case p.crowded || r.keepers != nil:
		for _, t := range p.tasks {
			if t.flow != nil && t.flow.pace != t.flow.speed {
				t.flow.setPace(r.now, t.flow.speed)
			}
		}
	}
	p.crowded = over
	if r.recorder != nil {
		for _, t := range p.tasks {
			r.use(t, r.useNow(t))
		}
	}
	if r.audit != nil {
		r.audit(p)
	}
	if p.flows == 0 {
		return
	}
	r.file(id)
}

// file enters the earliest end of a phase in the agenda, with the turn of its task: tasks that end at the same time end
// in the order of their launches, regardless of events in between.
func (r *run) file(id cluster.NodeID) {
	p := &r.places[id]
	due, turn := timeline.Never, uint64(0)
	for _, t := range p.tasks {
		if f := t.flow; f != nil && (f.due < due || f.due == due && t.turn < turn) {
			due, turn = f.due, t.turn
		}
	}
	if due == p.due && turn == p.turn {
		return
	}
	p.due, p.turn = due, turn
	if due != timeline.Never {
		r.agenda.pushAt(due, turn, phaseEnded, int32(id))
	}
}

func (p *place) overcommitted() bool {
	for _, k := range contended {
		if p.capacity[k] > 0 && p.demand[k] > p.capacity[k] {
			return true
		}
	}
	return false
}

// becomeFlows turns the plain tasks of a place into flows; the agenda items of the plain tasks become void.
func (r *run) becomeFlows(p *place) {
	if p.flows == len(p.tasks) {
		return
	}
	for _, t := range p.tasks {
		if t.flow == nil {
			t.flow = &flow{stretch: 1, slower: 1, grant: t.grant[resource.Memory], pace: 1, speed: 1, since: r.now, due: t.result.Finished,
				left: float64(t.result.Finished - r.now), demand: r.plainUse(t)}
			t.flow.at = len(t.flow.phases) - 1
		}
	}
	p.flows = len(p.tasks)
}

// crowd shares the resources for which demand exceeds capacity: each resource max-min among the tasks. A task's pace is
// that of the resource of which it gets the smallest share of its demand.
func (r *run) crowd(p *place) {
	var level [resource.NumKinds]float64 // 0: no limit
	for _, k := range contended {
		if p.capacity[k] <= 0 || p.demand[k] <= p.capacity[k] {
			continue
		}
		r.scratch = r.scratch[:0]
		for _, t := range p.tasks {
			if d := t.flow.demand[k]; d > 0 {
				r.scratch = append(r.scratch, float64(d))
			}
		}
		level[k] = fairLevel(r.scratch, p.effective(k, &r.config.Machine))
	}
	for _, t := range p.tasks {
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
func (p *place) effective(k resource.Kind, m *Machine) float64 {
	capacity := float64(p.capacity[k])
	return capacity * m.loss(k).Efficiency(float64(p.demand[k])/capacity)
}

// endPhase handles the end of the phase that is due on a place.
func (r *run) endPhase(id cluster.NodeID, i item) {
	p := &r.places[id]
	if p.due != i.at || p.turn != i.seq {
		return // the item is void: a later change has replaced it
	}
	p.due, p.turn = timeline.Never, 0
	r.still = 0
	for _, t := range p.tasks {
		if t.turn == i.seq {
			r.nextPhase(t)
			break
		}
	}
	r.unsettle(id)
}
