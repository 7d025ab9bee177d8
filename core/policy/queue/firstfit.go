package queue

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// FirstFit serves jobs in an order: free room goes to the first job, and what the first job cannot use to the next. It
// neither preempts tasks nor reserves nodes.
//
// After each decision no queued task fits anywhere, so that the next decision needs to look only at nodes with more
// room and at jobs with different tasks.
type FirstFit struct {
	Queue Fit
	// Blocks is set if no job is served before the first one.
	Blocks bool
	// demand is set during a decision if some task may fit on nodes that did not change, and Anew before one if that may
	// be a task of any job.
	demand, Anew bool
	// Begin starts a task with what its job is granted; nil starts it with its memory, and its ideal need of other
	// resources.
	Begin func(p *book.Plan, j *book.JobState, stage int, n *book.NodeState, need resource.Vector, why cluster.Reason)
	// Suits says whether the next task of a job may start on a node with room for it; nil is always.
	Suits func(p *book.Plan, j *book.JobState, n *book.NodeState) bool
}

// GrantFunc returns the resources that the next task of a stage is granted on any node with room, and why. ok is false
// if the task can be granted nothing, and then why says why not.
type GrantFunc func(j *book.JobState, stage int) (need resource.Vector, why cluster.Reason, ok bool)

// IdealContainer grants tasks what they need to run unhindered.
func IdealContainer(j *book.JobState, stage int) (resource.Vector, cluster.Reason, bool) {
	need := j.Stages[stage].Ideal
	return need, cluster.BecauseFits(need[resource.Memory]), true
}

// Serve takes the decisions of a step.
func (f *FirstFit) Serve(p *book.Plan) {
	f.Queue.Follow(p)
	if f.Blocks {
		f.serveFirst(p)
	} else {
		f.serveAll(p)
	}
}

// serveAll starts the tasks that fit: on nodes that changed and then, if there are new runnable tasks, on any node.
func (f *FirstFit) serveAll(p *book.Plan) {
	f.demand = p.Changes.Demand || f.Anew
	for n := range p.Offers() {
		if j, ok := f.firstOn(p, n); ok {
			f.start(p, j, n)
		}
	}
	if f.demand {
		f.Place(p)
	}
}

// firstOn returns the first job whose next task may start on n.
func (f *FirstFit) firstOn(p *book.Plan, n *book.NodeState) (*book.JobState, bool) {
	e, ok := f.Queue.fitFrom(0, n.Free)
	for ok && f.Suits != nil && !f.Suits(p, e.Job, n) {
		e, ok = f.Queue.FitAfter(e, n.Free)
	}
	return e.Job, ok
}

// firstFor returns the first node on which the next task of a job may start.
func (f *FirstFit) firstFor(p *book.Plan, e FitEntry) (*book.NodeState, bool) {
	n, ok := p.FirstFit(e.With)
	for ok && f.Suits != nil && !f.Suits(p, e.Job, n) {
		n, ok = p.NextRoom(e.With, n.ID+1)
	}
	return n, ok
}

// Place starts tasks of the jobs that changed on any node where they fit, in the order of the queue.
func (f *FirstFit) Place(p *book.Plan) {
	changed := ChangedIn(p, &f.Queue)
	if f.Anew {
		changed, f.Anew = slices.Clone(f.Queue.Jobs), false
	}
	for len(changed) > 0 {
		e := changed[0]
		changed = changed[1:]
		n, ok := f.firstFor(p, e)
		if !ok {
			continue // nor will it fit after other tasks have started
		}
		f.start(p, e.Job, n)
		if e, queued := f.Queue.As(e.Job); queued {
			at, _ := slices.BinarySearchFunc(changed, e, FitEntry.Compare)
			changed = slices.Insert(changed, at, e)
		}
	}
}

// serveFirst starts tasks of the first job for as long as there is room.
func (f *FirstFit) serveFirst(p *book.Plan) {
	for len(f.Queue.Jobs) > 0 {
		e := f.Queue.Jobs[0]
		n, ok := p.FirstFit(e.With)
		if !ok {
			p.WaitBehind(e.Job)
			return
		}
		f.start(p, e.Job, n)
	}
}

func (f *FirstFit) start(p *book.Plan, j *book.JobState, n *book.NodeState) {
	stage, _ := j.NextStage()
	need, why, _ := f.Queue.Grant(j, stage)
	if memory := need[resource.Memory]; f.Begin != nil {
		f.Begin(p, j, stage, n, need, why)
	} else if memory == j.Stages[stage].Ideal[resource.Memory] {
		p.Start(j, stage, n, memory, why)
	} else {
		p.StartSized(j, stage, n, memory, why)
	}
	f.Queue.Update(j)
	if next, more := j.NextStage(); more && next != stage {
		f.demand = true
	}
}
