package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
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
	// demand is set during a decision if some task may fit on nodes that did not change, and anew before one if that may
	// be a task of any job.
	demand, anew bool
	// begin starts a task with what its job is granted; nil starts it with its memory, and its ideal need of other
	// resources.
	begin func(p *book.Plan, j *book.JobState, stage int, n *book.NodeState, need resource.Vector, why cluster.Reason)
	// suits says whether the next task of a job may start on a node with room for it; nil is always.
	suits func(p *book.Plan, j *book.JobState, n *book.NodeState) bool
}

// grantFunc returns the resources that the next task of a stage is granted on any node with room, and why. ok is false
// if the task can be granted nothing, and then why says why not.
type grantFunc func(j *book.JobState, stage int) (need resource.Vector, why cluster.Reason, ok bool)

// idealContainer grants tasks what they need to run unhindered.
func idealContainer(j *book.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	need := j.Stages[stage].Ideal
	return need, cluster.BecauseFits(need[resource.Memory]), true
}

func (f *firstFit) decide(p *book.Plan) {
	f.queue.follow(p)
	if f.blocks {
		f.serveFirst(p)
	} else {
		f.serve(p)
	}
}

// serve starts the tasks that fit: on nodes that changed and then, if there are new runnable tasks, on any node.
func (f *firstFit) serve(p *book.Plan) {
	f.demand = p.Changes.Demand || f.anew
	for n := range p.Offers() {
		if j, ok := f.firstOn(p, n); ok {
			f.start(p, j, n)
		}
	}
	if f.demand {
		f.place(p)
	}
}

// firstOn returns the first job whose next task may start on n.
func (f *firstFit) firstOn(p *book.Plan, n *book.NodeState) (*book.JobState, bool) {
	e, ok := f.queue.fitFrom(0, n.Free)
	for ok && f.suits != nil && !f.suits(p, e.job, n) {
		e, ok = f.queue.fitAfter(e, n.Free)
	}
	return e.job, ok
}

// firstFor returns the first node on which the next task of a job may start.
func (f *firstFit) firstFor(p *book.Plan, e fitEntry) (*book.NodeState, bool) {
	n, ok := p.FirstFit(e.with)
	for ok && f.suits != nil && !f.suits(p, e.job, n) {
		n, ok = p.NextRoom(e.with, n.ID+1)
	}
	return n, ok
}

// place starts tasks of the jobs that changed on any node where they fit, in the order of the queue.
func (f *firstFit) place(p *book.Plan) {
	changed := changedIn(p, &f.queue)
	if f.anew {
		changed, f.anew = slices.Clone(f.queue.jobs), false
	}
	for len(changed) > 0 {
		e := changed[0]
		changed = changed[1:]
		n, ok := f.firstFor(p, e)
		if !ok {
			continue // nor will it fit after other tasks have started
		}
		f.start(p, e.job, n)
		if e, queued := f.queue.as(e.job); queued {
			at, _ := slices.BinarySearchFunc(changed, e, fitEntry.compare)
			changed = slices.Insert(changed, at, e)
		}
	}
}

// serveFirst starts tasks of the first job for as long as there is room.
func (f *firstFit) serveFirst(p *book.Plan) {
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

func (f *firstFit) start(p *book.Plan, j *book.JobState, n *book.NodeState) {
	stage, _ := j.NextStage()
	need, why, _ := f.queue.grant(j, stage)
	if memory := need[resource.Memory]; f.begin != nil {
		f.begin(p, j, stage, n, need, why)
	} else if memory == j.Stages[stage].Ideal[resource.Memory] {
		p.Start(j, stage, n, memory, why)
	} else {
		p.StartSized(j, stage, n, memory, why)
	}
	f.queue.update(j)
	if next, more := j.NextStage(); more && next != stage {
		f.demand = true
	}
}
