package policy

import (
	"cmp"
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
	var changed []queuedFit
	for _, j := range p.Changes.Jobs {
		if e, queued := f.queue.filed[j]; queued {
			changed = append(changed, e)
		}
	}
	slices.SortFunc(changed, queuedFit.compare)
	changed = slices.Compact(changed)
	for len(changed) > 0 {
		e := changed[0]
		changed = changed[1:]
		n, ok := p.FirstFit(e.need)
		if !ok {
			continue // nor will it once others have started
		}
		f.start(p, e.job, n)
		if e, queued := f.queue.filed[e.job]; queued {
			at, _ := slices.BinarySearchFunc(changed, e, queuedFit.compare)
			changed = slices.Insert(changed, at, e)
		}
	}
}

// serveFirst starts tasks of the first job for as long as there is room.
func (f *firstFit) serveFirst(p *cluster.Plan) {
	for len(f.queue.jobs) > 0 {
		e := f.queue.jobs[0]
		n, ok := p.FirstFit(e.need)
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

// fitQueue holds the jobs that have a runnable task, the one with the least key first; among equals the one submitted
// first. It finds the first whose next task fits without looking at every job.
type fitQueue struct {
	key       func(*cluster.JobState) float64
	container container

	jobs  []queuedFit
	filed map[*cluster.JobState]queuedFit // how each of them is filed
	// least is the smallest need of each block of jobs: component by component, so that nothing in the block fits if that
	// does not.
	least []resource.Vector
}

const fitBlock = 32

// queuedFit is a job as it is filed.
type queuedFit struct {
	job  *cluster.JobState
	key  float64
	need resource.Vector // of its next task
}

// compare orders the queue. No two jobs are equal, because no two share an ID.
func (a queuedFit) compare(b queuedFit) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.job.Submitted, b.job.Submitted), cmp.Compare(a.job.ID, b.job.ID))
}

func (q *fitQueue) drop() { q.jobs, q.filed, q.least = nil, nil, nil }

// follow brings the queue up to date with what changed.
func (q *fitQueue) follow(p *cluster.Plan) {
	changed := p.Changes.Jobs
	if q.filed == nil {
		q.filed = make(map[*cluster.JobState]queuedFit, len(p.Jobs))
		changed = p.Jobs
	}
	for _, j := range changed {
		q.update(j)
	}
}

// update files j where it belongs now, or removes it if it has nothing to run. It takes O(log jobs) and a move.
func (q *fitQueue) update(j *cluster.JobState) {
	stage, runnable := j.NextStage()
	var need resource.Vector
	if runnable {
		need, _, runnable = q.container(j, stage)
	}
	old, present := q.filed[j]
	if !runnable {
		if present {
			q.remove(old)
		}
		return
	}
	e := queuedFit{j, q.key(j), need}
	if present && e == old {
		return
	}
	q.filed[j] = e
	if !present {
		to, _ := q.find(e)
		q.jobs = slices.Insert(q.jobs, to, e)
		q.summarise(to, len(q.jobs))
		return
	}
	from, to := q.move(old, e)
	if from/fitBlock != to/fitBlock || e.need != old.need {
		q.summarise(min(from, to), max(from, to)+1)
	}
}

func (q *fitQueue) find(e queuedFit) (int, bool) {
	return slices.BinarySearchFunc(q.jobs, e, queuedFit.compare)
}

func (q *fitQueue) remove(e queuedFit) {
	at, _ := q.find(e)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	delete(q.filed, e.job)
	q.summarise(at, len(q.jobs))
}

// move shifts only the entries between the old and the new place.
func (q *fitQueue) move(old, e queuedFit) (from, to int) {
	from, _ = q.find(old)
	to, _ = q.find(e)
	if to > from {
		to--
		copy(q.jobs[from:to], q.jobs[from+1:to+1])
	} else {
		copy(q.jobs[to+1:from+1], q.jobs[to:from])
	}
	q.jobs[to] = e
	return from, to
}

// summarise works out the blocks that hold the jobs in [from, to) anew.
func (q *fitQueue) summarise(from, to int) {
	blocks := (len(q.jobs) + fitBlock - 1) / fitBlock
	for len(q.least) < blocks {
		q.least = append(q.least, resource.Vector{})
	}
	q.least = q.least[:blocks]
	for b := from / fitBlock; b < blocks && b*fitBlock < to; b++ {
		block := q.block(b)
		q.least[b] = block[0].need
		for i := range block[1:] {
			q.least[b] = q.least[b].Min(block[1+i].need)
		}
	}
}

func (q *fitQueue) block(b int) []queuedFit {
	return q.jobs[b*fitBlock : min(len(q.jobs), (b+1)*fitBlock)]
}

// firstFit returns the first job whose next task needs no more than is free.
func (q *fitQueue) firstFit(free resource.Vector) (*cluster.JobState, bool) {
	e, ok := q.fitFrom(0, free)
	return e.job, ok
}

// fitFrom is firstFit without the jobs before jobs[at].
func (q *fitQueue) fitFrom(at int, free resource.Vector) (queuedFit, bool) {
	for b := at / fitBlock; b < len(q.least); b++ {
		if !q.least[b].FitsIn(free) {
			continue
		}
		for i := max(at, b*fitBlock); i < min(len(q.jobs), (b+1)*fitBlock); i++ {
			if q.jobs[i].need.FitsIn(free) {
				return q.jobs[i], true
			}
		}
	}
	return queuedFit{}, false
}
