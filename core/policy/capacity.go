package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// capacity is YARN's CapacityScheduler. Each queue is guaranteed a share of its parent's resources and may use up to a
// maximum share; guaranteed resources that a queue does not request are available to all queues. The queue that uses
// the least of its guarantee is served first; in a leaf, the job that was submitted first. If no node fits the next
// task of the job in turn, nodes are reserved for that job. With preemption, tasks of queues above their guarantee are
// ended when other queues are below theirs. docs/decisions/0009-queues.md says which parts of YARN were taken over.
type capacity struct {
	tree         queue.Tree[capacityQueue, capacityJob]
	measure      measure
	fair         bool // in a leaf, the job that uses the least is served first
	reservations bool
	users        userLimits
	preemption   preemption

	// All fields below are computed from the snapshot.
	kept   map[cluster.NodeID]*capacityMember // reserved nodes
	misses misses                             // in the decision in progress
	// decisions counts calls of Decide.
	decisions int
}

// capacityQueue is what is kept with a queue.
type capacityQueue struct {
	quota
	capacityUse
	ideal *idealQueue // in the search for tasks to preempt
}

// capacityUse is what is computed from the jobs in a queue and below it.
type capacityUse struct {
	jobs     fairQueue       // of a leaf: the jobs that can start a task, in the order in which they are served
	reserved resource.Vector // what is reserved for the jobs in the queue and below it
	// blocker is the job of a leaf that would take a queue above its maximum, as of the last decision; nil if there is
	// none. The jobs behind it wait for it.
	blocker *book.JobState
	leafUsers
}

// capacityJob is what is kept with a job.
type capacityJob struct {
	user   *userUse
	kept   []reservation // by node
	looked int           // capacity.decisions when nodes were last considered for reservation
}

type (
	shareQueue     = queue.Queue[capacityQueue]
	capacityMember = queue.Member[capacityQueue, capacityJob]
)

func newCapacity(s *contract.Settings) Policy {
	c := &capacity{}
	queues := s.Declare("queues", "default=100%",
		"queues, each with its guaranteed share of its parent and, after two dots, its maximum share: "+
			"prod=60%..100%,prod.etl=50%..80%,adhoc=40%; jobs name a leaf, and jobs without a queue are in the leaf "+
			"default")
	c.measure.dominant = s.Declare("calculator", "memory",
		"how shares are measured: memory, or dominant, the larger share of memory and CPU (YARN: "+
			"DefaultResourceCalculator, DominantResourceCalculator)").OneOf("memory", "dominant") == "dominant"
	c.fair = s.Declare("ordering", "fifo",
		"which job is first in a leaf: fifo, the job submitted first, or fair, the job with the least memory per "+
			"weight").OneOf("fifo", "fair") == "fair"
	c.reservations = s.Declare("reservations", "true",
		"reserve a node without room for the next task of the job that is served first, until the task fits").Flag()
	c.users = newUserLimits(s)
	c.preemption = newPreemption(s, c.reservations)
	if err := c.parseQueues(queues.Text); err != nil {
		queues.Reject(err)
	}
	return c
}

func (c *capacity) Name() string { return "capacity" }
func (c *capacity) Traits() Traits {
	return Traits{Quotas: true, Admit: c.admit, Why: c.why, DropCaches: c.dropCaches}
}

func (c *capacity) dropCaches() { c.tree.Members = nil }

// admit rejects a job whose queue does not exist, or whose queue is too small for one of the job's tasks even when
// empty.
func (c *capacity) admit(s *book.Snapshot, j *cluster.Job) error {
	if err := c.tree.Check(j); err != nil {
		return err
	}
	c.scale(s.Capacity)
	leaf := c.tree.Home(j)
	var coordinator resource.Vector
	for i := range j.Stages {
		if j.Stages[i].Coordinator {
			coordinator = coordinator.Add(j.Stages[i].Ideal)
		}
	}
	for i := range j.Stages {
		need, with := j.Stages[i].Ideal, ""
		if !coordinator.IsZero() && !j.Stages[i].Coordinator {
			need, with = need.Add(coordinator), " with its coordinator"
		}
		if k, q := c.overMost(leaf, need); q != nil {
			return fmt.Errorf("job %q stage %d %s %s%s: must be at most what queue %q may hold, %s",
				j.Name, i, k, k.Format(need[k]), with, q.Name, k.Format(q.Own.most[k]))
		}
	}
	return nil
}

func (c *capacity) Decide(now timeline.Time, p *book.Plan) {
	c.follow(p)
	c.misses.forget()
	c.decisions++
	c.settleReservations(p)
	for c.serve(p, c.tree.Root) {
	}
	if c.preemption.on {
		c.preempt(now, p)
		for c.serve(p, c.tree.Root) { // nodes may have been given back
		}
	}
}

// follow updates queues and quotas from the changes of the snapshot.
func (c *capacity) follow(p *book.Plan) {
	c.scale(p.Capacity)
	anew := c.tree.Members == nil
	if anew {
		c.kept = map[cluster.NodeID]*capacityMember{}
		for _, q := range c.tree.All {
			q.Own.capacityUse = capacityUse{}
		}
	}
	for _, id := range p.Changes.Nodes {
		if m := c.kept[id]; m != nil && p.Nodes[id].ReservedFor != m.Job {
			c.forgetReservation(m, id)
		}
	}
	for _, j := range c.tree.Changed(p) {
		c.tree.Update(j, c.file)
	}
	for i := 0; anew && i < len(p.Nodes); i++ {
		if n := p.Nodes[i]; n.ReservedFor != nil {
			c.noteReservation(c.tree.Members[n.ReservedFor], n)
		}
	}
}

// file puts a job in its place in its leaf.
func (c *capacity) file(m *capacityMember) {
	_, runnable := m.Job.NextStage()
	m.Leaf.Own.jobs.set(m.Job, c.key(m.Job), runnable)
	c.users.leave(m)
	m.Count()
	c.users.join(m)
}

// key is the sort key of a job in its leaf.
func (c *capacity) key(j *book.JobState) float64 {
	if c.fair {
		return fairKey(j)
	}
	return 0
}

// serve lets one task in or below q start, and reports whether a task started. Queues are served in ascending order of
// use over guarantee.
func (c *capacity) serve(p *book.Plan, q *shareQueue) bool {
	if q.Runnable == 0 {
		return false
	}
	if q.Leaf() {
		return c.serveLeaf(p, q)
	}
	// Every start changes the order here and in the queues above: it is computed anew.
	order := make([]*shareQueue, 0, 8)
	for _, child := range q.Children {
		if child.Runnable > 0 {
			order = append(order, child)
		}
	}
	slices.SortStableFunc(order, c.compare)
	return slices.ContainsFunc(order, func(child *shareQueue) bool { return c.serve(p, child) })
}

// compare orders queues by use over guarantee, ascending; ties go to the larger guarantee.
func (c *capacity) compare(a, b *shareQueue) int {
	switch x, y := c.ratio(a), c.ratio(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	case a.Own.ofCluster > b.Own.ofCluster:
		return -1
	case a.Own.ofCluster < b.Own.ofCluster:
		return 1
	}
	return 0
}

// ratio is the use of a queue, including what is reserved for it, over its guarantee. Queues without a guarantee come
// last.
func (c *capacity) ratio(q *shareQueue) float64 {
	if q.Own.ofCluster == 0 {
		return math.Inf(1)
	}
	return c.measure.share(q.Used.Add(q.Own.reserved)) / q.Own.ofCluster
}

// serveLeaf lets one job of a leaf start one task. A job that would take a queue above its maximum blocks the jobs
// behind it. A job that fits on no node, or whose user is above the user limit, does not block them.
func (c *capacity) serveLeaf(p *book.Plan, leaf *shareQueue) bool {
	leaf.Own.blocker = nil
	for i := 0; i < len(leaf.Own.jobs.Jobs); i++ {
		j := leaf.Own.jobs.Jobs[i].Job
		m := c.tree.Members[j]
		stage, _ := j.NextStage()
		need := j.Stages[stage].Ideal
		if why, over := c.overLimit(m, need, m.Own.reserved()); over {
			p.Wait(j, stage, 0, why)
			leaf.Own.blocker = j
			return false
		}
		if why, over := c.users.over(c, m, need); over {
			p.Wait(j, stage, 0, why)
			continue
		}
		if n, ok := c.misses.firstFit(p, need); ok {
			c.start(p, m, stage, n)
			return true
		}
		if c.reservations {
			c.reserve(p, m, stage)
		}
		p.Wait(j, stage, 0, cluster.BecauseNoRoom(need))
	}
	return false
}

// overLimit reports whether a queue on the way to the root would exceed its maximum after adding need and subtracting
// back.
func (c *capacity) overLimit(m *capacityMember, need, back resource.Vector) (cluster.Reason, bool) {
	for q := m.Leaf; q.Parent != nil; q = q.Parent {
		for _, k := range c.measure.kinds() {
			if would := q.Used[k] + q.Own.reserved[k] + need[k] - back[k]; would > q.Own.most[k] {
				return cluster.BecauseQueueFull(k, would, q.Own.most[k]), true
			}
		}
	}
	return cluster.Reason{}, false
}

// start starts the next task of a stage on n.
func (c *capacity) start(p *book.Plan, m *capacityMember, stage int, n *book.NodeState) {
	need := m.Job.Stages[stage].Ideal
	memory := need[resource.Memory]
	if n.ReservedFor == nil {
		c.makeLimit(p, m, need)
	}
	p.Start(m.Job, stage, n, memory, cluster.BecauseFits(memory))
	if n.ReservedFor == m.Job {
		c.unreserve(p, m, n, cluster.ReservationUsed)
	}
	c.tree.Update(m.Job, c.file)
	c.giveBackExcess(p, m)
}

// why names the limit of a queue or user that a job would exceed, or the job that blocks its leaf. Every other job of
// the leaf was considered in the last decision, and what was recorded for it then is true.
func (c *capacity) why(_ timeline.Time, _ *book.Snapshot, j *book.JobState, _ int) (cluster.Reason, bool) {
	m := c.tree.Members[j]
	switch {
	case m == nil:
		return cluster.Reason{}, false
	case m.Leaf == nil:
		return cluster.Because(cluster.NoSuchQueue), true
	}
	if b := m.Leaf.Own.blocker; b != nil && b != j {
		ahead, _ := m.Leaf.Own.jobs.As(b)
		if own, filed := m.Leaf.Own.jobs.As(j); filed && ahead.Compare(own) < 0 {
			return cluster.BecauseBehindJob(b.ID), true
		}
	}
	return j.Waiting, j.Waiting.Code == cluster.QueueFull || j.Waiting.Code == cluster.UserLimit
}
