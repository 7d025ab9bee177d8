package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// firstFit serves jobs in an order: free room goes to the first job, and what the first job cannot use to the next. It
// neither preempts tasks nor reserves nodes.
//
// After each decision no queued task fits anywhere, so that the next decision needs to look only at nodes with more
// room and at jobs with different tasks.
type firstFit struct {
	queue fitQueue
	// blocks is set if no job is served before the first one.
	blocks bool
	// demand is set during a decision if some task may fit on nodes that did not change.
	demand bool
}

// grantFunc returns the resources that the next task of a stage is granted on any node with room, and why. ok is false
// if the task can be granted nothing, and then why says why not.
type grantFunc func(j *cluster.JobState, stage int) (need resource.Vector, why cluster.Reason, ok bool)

// idealContainer grants tasks what they need to run unhindered.
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

// serve starts the tasks that fit: on nodes that changed and then, if there are new runnable tasks, on any node.
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

// place starts tasks of the jobs that changed on any node where they fit, in the order of the queue.
func (f *firstFit) place(p *cluster.Plan) {
	changed := changedIn(p, &f.queue)
	for len(changed) > 0 {
		e := changed[0]
		changed = changed[1:]
		n, ok := p.FirstFit(e.with)
		if !ok {
			continue // nor will it fit after other tasks have started
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
	need, why, _ := f.queue.grant(j, stage)
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
