package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// firstFit serves jobs in an order: what has room goes to the first, and what the first cannot use to the next. It neither
// stops tasks nor reserves nodes.
//
// After each decision nothing that is queued fits anywhere, so that only nodes with more room and jobs with other tasks
// need be looked at.
type firstFit struct {
	queue fitQueue
	// blocks is set where nobody is served before the first.
	blocks bool
	// demand is set while a decision is made if some task may fit on nodes that did not change.
	demand bool
}

// container is what the next task of a stage gets on whatever node has room for it, and why. ok is false if it gets
// nothing anywhere, and then why is the reason for that.
type container func(j *cluster.JobState, stage int) (need resource.Vector, why cluster.Reason, ok bool)

// idealContainer gives tasks what they need to run unhindered.
func idealContainer(j *cluster.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	need := j.Stages[stage].Ideal
	return need, cluster.BecauseFits(need[resource.Memory]), true
}

func (f *firstFit) decide(p *cluster.Plan) {
	f.queue.follow(p)
	if f.blocks {
		f.serveFirst(p)
	} else {
		f.serve(p)
	}
}

// serve starts tasks of whoever fits: on nodes that changed and then, if there are new runnable tasks, on any node.
func (f *firstFit) serve(p *cluster.Plan) {
	f.demand = p.Changes.Demand
	for n := range p.Offers() {
		if j, ok := f.queue.firstFit(n.Free); ok {
			f.start(p, j, n)
		}
	}
	if f.demand {
		f.place(p)
	}
}

// place starts what fits on any node of the jobs that changed, in the order of the queue.
func (f *firstFit) place(p *cluster.Plan) {
	var changed []fitEntry
	for _, j := range p.Changes.Jobs {
		if e, queued := f.queue.filed[j]; queued {
			changed = append(changed, e)
		}
	}
	slices.SortFunc(changed, fitEntry.compare)
	changed = slices.Compact(changed)
	for len(changed) > 0 {
		e := changed[0]
		changed = changed[1:]
		n, ok := p.FirstFit(e.with)
		if !ok {
			continue // nor will it once others have started
		}
		f.start(p, e.job, n)
		if e, queued := f.queue.filed[e.job]; queued {
			at, _ := slices.BinarySearchFunc(changed, e, fitEntry.compare)
			changed = slices.Insert(changed, at, e)
		}
	}
}

// serveFirst starts tasks of the first job for as long as there is room.
func (f *firstFit) serveFirst(p *cluster.Plan) {
	for len(f.queue.jobs) > 0 {
		e := f.queue.jobs[0]
		n, ok := p.FirstFit(e.with)
		if !ok {
			p.WaitBehind(e.job)
			return
		}
		f.start(p, e.job, n)
	}
}

func (f *firstFit) start(p *cluster.Plan, j *cluster.JobState, n *cluster.NodeState) {
	stage, _ := j.NextStage()
	need, why, _ := f.queue.container(j, stage)
	if memory := need[resource.Memory]; memory == j.Stages[stage].Ideal[resource.Memory] {
		p.Start(j, stage, n, memory, why)
	} else {
		p.StartSized(j, stage, n, memory, why)
	}
	f.queue.update(j)
	if next, more := j.NextStage(); more && next != stage {
		f.demand = true
	}
}
