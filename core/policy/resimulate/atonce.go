package resimulate

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// atOnce is what a step of the resimulation has changed. Where nodes have no heartbeats it determines, as in
// fair.offerAll, which nodes are offered, and so which nodes become reserved.
type atOnce struct {
	nodes  []int32 // have more free than before, or are no longer reserved
	jobs   []int32 // with a different consumption or different runnable tasks
	demand bool    // there are runnable tasks that have not yet been offered to every node with room
	found  []foundTask
}

func (s *atOnce) reset() {
	s.nodes, s.jobs, s.demand, s.found = s.nodes[:0], s.jobs[:0], false, s.found[:0]
}

// playAtOnce simulates a cluster without heartbeats: every end is a step of its own; of tasks that end at the same
// time, the one started first ends first.
func (r *Estimator) playAtOnce(p *book.Plan) {
	slices.SortFunc(r.step.found, func(a, b foundTask) int {
		return cmp.Or(cmp.Compare(a.task.Decision, b.task.Decision), cmp.Compare(a.task.Launched, b.task.Launched))
	})
	for _, f := range r.step.found {
		r.addFound(p, f)
	}
	r.step.reset()
	for _, n := range p.Changes.Nodes {
		r.step.nodes = append(r.step.nodes, int32(n))
	}
	for _, j := range p.Changes.Jobs {
		if i := r.indexOf(p, j); i >= 0 {
			r.step.jobs = append(r.step.jobs, i)
		}
	}
	r.step.demand = p.Changes.Demand
	r.offerChanged(p)
	for len(r.events) > 0 && r.open > 0 {
		e := r.events.Pop()
		r.now = e.Key
		r.step.reset()
		if task := uint32(e.Rank); task >= readyEvents {
			r.steer(int32(task - readyEvents))
		} else {
			r.step.nodes = append(r.step.nodes, r.tasks[task].node)
			r.endTask(task)
		}
		r.offerChanged(p)
	}
}

// offerChanged is fair.offerAll on the copy.
func (r *Estimator) offerChanged(p *book.Plan) {
	if r.reservations && r.running == 0 {
		r.giveBackHopeless()
	}
	for i := 0; i < len(r.step.nodes) || r.step.demand; { // an offer may add to both
		if i == len(r.step.nodes) {
			r.step.demand = false
			r.offerRoom(p)
			continue
		}
		if n := r.step.nodes[i]; !r.nodes[n].gone {
			r.offerRepeatedly(p, n)
		}
		i++
	}
}

// offerRoom is fair.offerRoom on the copy.
func (r *Estimator) offerRoom(p *book.Plan) {
	var cpu, memory resource.Amount
	any := false
	for _, job := range r.step.jobs {
		next := r.jobs[job].next
		if next < 0 {
			continue
		}
		s := &r.stages[next]
		if !any {
			cpu, memory, any = s.cpu, s.least, true
		}
		cpu, memory = min(cpu, s.cpu), min(memory, s.least)
	}
	for i := range r.nodes {
		if n := &r.nodes[i]; any && !n.gone && n.holder < 0 && n.cpu >= cpu && n.memory >= memory {
			r.offerRepeatedly(p, int32(i))
		}
	}
}

// moveOn updates a job for its next stage, as fair.start does.
func (r *Estimator) moveOn(job int32) {
	j := &r.jobs[job]
	for i := 0; i < len(r.nodes) && j.held > 0; i++ {
		if n := &r.nodes[i]; n.holder == job && n.heldFor != j.next {
			r.giveBack(int32(i))
		}
	}
	r.step.demand = r.step.demand || j.next >= 0
}

// giveBackHopeless is the function of the same name in package policy, on the copy.
func (r *Estimator) giveBackHopeless() {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.holder < 0 || n.gone {
			continue
		}
		if s := &r.stages[n.heldFor]; s.cpu > n.cpu || s.memory > n.memory {
			r.giveBack(int32(i))
		}
	}
}
