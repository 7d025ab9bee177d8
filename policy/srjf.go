package policy

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// srjf is shortest remaining job first: what has room goes to the job with the least work left to start, and what that job
// cannot use to the next (YARN-ME section 6.2, where it runs on one node that pools the cluster, the Meganode). It
// neither stops tasks nor reserves nodes.
//
// After each decision nothing in the queue fits anywhere, so that only nodes with more room and jobs with other tasks need
// be looked at.
type srjf struct {
	queue workQueue
	// demand is set while a decision is made if some task may fit on nodes that did not change.
	demand bool
}

func newSRJF(*settings) Policy { return &srjf{} }

func (*srjf) Name() string { return "srjf" }

// DropCaches implements CacheDropper.
func (s *srjf) DropCaches() { s.queue = workQueue{} }

func (s *srjf) Decide(_ timeline.Time, p *cluster.Plan) {
	s.queue.follow(p)
	if p.Heartbeat > 0 {
		for _, id := range p.Changes.Heartbeats {
			s.offer(p, p.Nodes[id], p.StartsPerHeartbeat)
		}
	} else {
		s.demand = p.Changes.Demand
		for _, id := range p.Changes.Nodes {
			s.offer(p, p.Nodes[id], 0)
		}
		if s.demand {
			s.place(p)
		}
	}
	s.explain(p)
}

// offer lets the queue start tasks on n, at most so many unless that is 0.
func (s *srjf) offer(p *cluster.Plan, n *cluster.NodeState, most int) {
	if n.Gone || n.ReservedFor != nil {
		return
	}
	for i := 0; i < most || most == 0; i++ {
		j, ok := s.queue.firstFit(n.Free)
		if !ok {
			return
		}
		s.start(p, j, n)
	}
}

// place starts what fits on any node of the jobs that changed, in the order of the queue. A job that starts a task moves
// ahead, and none that was ahead of it fits better than before: so it goes on until it fits no more.
func (s *srjf) place(p *cluster.Plan) {
	var changed []queuedWork
	for _, j := range p.Changes.Jobs {
		if e, queued := s.queue.filed[j]; queued {
			changed = append(changed, e)
		}
	}
	slices.SortFunc(changed, queuedWork.compare)
	for _, e := range slices.Compact(changed) {
		for stage, more := e.job.NextStage(); more; stage, more = e.job.NextStage() {
			n, ok := firstOpen(p, e.job.Stages[stage].Ideal)
			if !ok {
				break
			}
			s.start(p, e.job, n)
		}
	}
}

func (s *srjf) start(p *cluster.Plan, j *cluster.JobState, n *cluster.NodeState) {
	stage, _ := j.NextStage()
	memory := j.Stages[stage].Ideal[resource.Memory]
	p.Start(j, stage, n, memory, cluster.Because(cluster.Fits, int64(memory)))
	s.queue.update(j)
	if next, more := j.NextStage(); more && next != stage {
		s.demand = true
	}
}

// explain gives a reason to every job that changed and waits. Where nodes have heartbeats, a job may just wait for one.
func (s *srjf) explain(p *cluster.Plan) {
	for _, j := range p.Changes.Jobs {
		stage, ok := j.NextStage()
		if !ok || j.Waiting.Code != 0 {
			continue
		}
		need := j.Stages[stage].Ideal
		if p.Heartbeat > 0 {
			if _, room := firstOpen(p, need); room {
				continue
			}
		}
		p.Wait(j, stage, 0, cluster.Because(cluster.NoRoom, int64(need[resource.Memory]), int64(need[resource.CPU])))
	}
}

// firstOpen is FirstOpen that looks at every resource.
func firstOpen(p *cluster.Plan, need resource.Vector) (*cluster.NodeState, bool) {
	n, ok := p.FirstOpen(need, 0)
	for ok && !need.FitsIn(n.Free) {
		n, ok = p.FirstOpen(need, n.ID+1)
	}
	return n, ok
}

// remainingWork is the sum of the estimated run times of a job's tasks that have not started, in seconds; coordinators do
// not count. It is infinite if one of them is unknown.
func remainingWork(j *cluster.JobState) float64 {
	work := 0.0
	for i := range j.Stages {
		stage, pending := &j.Stages[i], j.Progress[i].Pending
		switch {
		case pending == 0 || stage.Coordinator:
		case stage.Duration <= 0:
			return math.Inf(1)
		default:
			work += float64(pending) * stage.Duration.Seconds()
		}
	}
	return work
}

// workQueue holds the jobs that have a runnable task, the one with the least remaining work first; among equals the one
// submitted first. It finds the first whose next task fits without looking at every job.
type workQueue struct {
	jobs  []queuedWork
	filed map[*cluster.JobState]queuedWork // how each of them is filed
	// least is the smallest need of each block of jobs: component by component, so that nothing in the block fits if that
	// does not.
	least []resource.Vector
}

const workBlock = 32

// queuedWork is a job as it is filed.
type queuedWork struct {
	job  *cluster.JobState
	work float64         // seconds
	need resource.Vector // of its next task
}

// compare orders the queue. No two jobs are equal, because no two share an ID.
func (a queuedWork) compare(b queuedWork) int {
	return cmp.Or(cmp.Compare(a.work, b.work), cmp.Compare(a.job.Submitted, b.job.Submitted), cmp.Compare(a.job.ID, b.job.ID))
}

// follow brings the queue up to date with what changed.
func (q *workQueue) follow(p *cluster.Plan) {
	changed := p.Changes.Jobs
	if q.filed == nil {
		q.filed = make(map[*cluster.JobState]queuedWork, len(p.Jobs))
		changed = p.Jobs
	}
	for _, j := range changed {
		q.update(j)
	}
}

// update files j where it belongs now, or removes it if it has nothing to run. It takes O(log jobs) and a move.
func (q *workQueue) update(j *cluster.JobState) {
	stage, runnable := j.NextStage()
	old, present := q.filed[j]
	if !runnable {
		if present {
			q.remove(old)
		}
		return
	}
	e := queuedWork{j, remainingWork(j), j.Stages[stage].Ideal}
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
	if from/workBlock != to/workBlock || e.need != old.need {
		q.summarise(min(from, to), max(from, to)+1)
	}
}

func (q *workQueue) find(e queuedWork) (int, bool) {
	return slices.BinarySearchFunc(q.jobs, e, queuedWork.compare)
}

func (q *workQueue) remove(e queuedWork) {
	at, _ := q.find(e)
	q.jobs = slices.Delete(q.jobs, at, at+1)
	delete(q.filed, e.job)
	q.summarise(at, len(q.jobs))
}

// move shifts only the entries between the old and the new place.
func (q *workQueue) move(old, e queuedWork) (from, to int) {
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
func (q *workQueue) summarise(from, to int) {
	blocks := (len(q.jobs) + workBlock - 1) / workBlock
	for len(q.least) < blocks {
		q.least = append(q.least, resource.Vector{})
	}
	q.least = q.least[:blocks]
	for b := from / workBlock; b < blocks && b*workBlock < to; b++ {
		block := q.block(b)
		q.least[b] = block[0].need
		for i := range block[1:] {
			q.least[b] = q.least[b].Min(block[1+i].need)
		}
	}
}

func (q *workQueue) block(b int) []queuedWork {
	return q.jobs[b*workBlock : min(len(q.jobs), (b+1)*workBlock)]
}

// firstFit returns the first job whose next task needs no more than is free.
func (q *workQueue) firstFit(free resource.Vector) (*cluster.JobState, bool) {
	for b, least := range q.least {
		if !least.FitsIn(free) {
			continue
		}
		block := q.block(b)
		for i := range block {
			if block[i].need.FitsIn(free) {
				return block[i].job, true
			}
		}
	}
	return nil, false
}
