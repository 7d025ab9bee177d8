package policy

import (
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// capacity is YARN's CapacityScheduler. Each queue is guaranteed a share of its parent's resources and may use up to a
// maximum share; guaranteed resources that a queue does not request are available to all queues. The queue that uses
// the least of its guarantee is served first; in a leaf, the job that was submitted first. If no node fits the next
// task of the job in turn, nodes are reserved for that job. With preemption, tasks of queues above their guarantee are
// ended when other queues are below theirs. docs/decisions/0009-queues.md says which parts of YARN were taken over.
type capacity struct {
	tree         queueTree[capacityQueue, capacityJob]
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
	shareQueue     = queue[capacityQueue]
	capacityMember = member[capacityQueue, capacityJob]
)

func newCapacity(s *settings) Policy {
	c := &capacity{}
	queues := s.declare("queues", "default=100%",
		"queues, each with its guaranteed share of its parent and, after two dots, its maximum share: "+
			"prod=60%..100%,prod.etl=50%..80%,adhoc=40%; jobs name a leaf, and jobs without a queue are in the leaf "+
			"default")
	c.measure.dominant = s.declare("calculator", "memory",
		"how shares are measured: memory, or dominant, the larger share of memory and CPU (YARN: "+
			"DefaultResourceCalculator, DominantResourceCalculator)").oneOf("memory", "dominant") == "dominant"
	c.fair = s.declare("ordering", "fifo",
		"which job is first in a leaf: fifo, the job submitted first, or fair, the job with the least memory per "+
			"weight").oneOf("fifo", "fair") == "fair"
	c.reservations = s.declare("reservations", "true",
		"reserve a node without room for the next task of the job that is served first, until the task fits").flag()
	c.users = newUserLimits(s)
	c.preemption = newPreemption(s, c.reservations)
	if err := c.parseQueues(queues.text); err != nil {
		queues.reject(err)
	}
	return c
}

func (c *capacity) Name() string { return "capacity" }
func (c *capacity) Traits() Traits {
	return Traits{Quotas: true, Admit: c.admit, Why: c.why, DropCaches: c.dropCaches}
}

func (c *capacity) dropCaches() { c.tree.members = nil }

// admit rejects a job whose queue does not exist, or whose queue is too small for one of the job's tasks even when
// empty.
func (c *capacity) admit(s *book.Snapshot, j *cluster.Job) error {
	if err := c.tree.check(j); err != nil {
		return err
	}
	c.scale(s.Capacity)
	leaf := c.tree.home(j)
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
				j.Name, i, k, k.Format(need[k]), with, q.name, k.Format(q.own.most[k]))
		}
	}
	return nil
}

func (c *capacity) Decide(now timeline.Time, p *book.Plan) {
	c.follow(p)
	c.misses.forget()
	c.decisions++
	c.settleReservations(p)
	for c.serve(p, c.tree.root) {
	}
	if c.preemption.on {
		c.preempt(now, p)
		for c.serve(p, c.tree.root) { // nodes may have been given back
		}
	}
}

// follow updates queues and quotas from the changes of the snapshot.
func (c *capacity) follow(p *book.Plan) {
	c.scale(p.Capacity)
	anew := c.tree.members == nil
	if anew {
		c.kept = map[cluster.NodeID]*capacityMember{}
		for _, q := range c.tree.all {
			q.own.capacityUse = capacityUse{}
		}
	}
	for _, id := range p.Changes.Nodes {
		if m := c.kept[id]; m != nil && p.Nodes[id].ReservedFor != m.job {
			c.forgetReservation(m, id)
		}
	}
	for _, j := range c.tree.changed(p) {
		c.tree.update(j, c.file)
	}
	for i := 0; anew && i < len(p.Nodes); i++ {
		if n := p.Nodes[i]; n.ReservedFor != nil {
			c.noteReservation(c.tree.members[n.ReservedFor], n)
		}
	}
}

// file puts a job in its place in its leaf.
func (c *capacity) file(m *capacityMember) {
	_, runnable := m.job.NextStage()
	m.leaf.own.jobs.set(m.job, c.key(m.job), runnable)
	c.users.leave(m)
	m.count()
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
	if q.runnable == 0 {
		return false
	}
	if q.leaf() {
		return c.serveLeaf(p, q)
	}
	// Every start changes the order here and in the queues above: it is computed anew.
	order := make([]*shareQueue, 0, 8)
	for _, child := range q.children {
		if child.runnable > 0 {
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
	case a.own.ofCluster > b.own.ofCluster:
		return -1
	case a.own.ofCluster < b.own.ofCluster:
		return 1
	}
	return 0
}

// ratio is the use of a queue, including what is reserved for it, over its guarantee. Queues without a guarantee come
// last.
func (c *capacity) ratio(q *shareQueue) float64 {
	if q.own.ofCluster == 0 {
		return math.Inf(1)
	}
	return c.measure.share(q.used.Add(q.own.reserved)) / q.own.ofCluster
}

// serveLeaf lets one job of a leaf start one task. A job that would take a queue above its maximum blocks the jobs
// behind it. A job that fits on no node, or whose user is above the user limit, does not block them.
func (c *capacity) serveLeaf(p *book.Plan, leaf *shareQueue) bool {
	leaf.own.blocker = nil
	for i := 0; i < len(leaf.own.jobs.jobs); i++ {
		j := leaf.own.jobs.jobs[i].job
		m := c.tree.members[j]
		stage, _ := j.NextStage()
		need := j.Stages[stage].Ideal
		if why, over := c.overLimit(m, need, m.own.reserved()); over {
			p.Wait(j, stage, 0, why)
			leaf.own.blocker = j
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
	for q := m.leaf; q.parent != nil; q = q.parent {
		for _, k := range c.measure.kinds() {
			if would := q.used[k] + q.own.reserved[k] + need[k] - back[k]; would > q.own.most[k] {
				return cluster.BecauseQueueFull(k, would, q.own.most[k]), true
			}
		}
	}
	return cluster.Reason{}, false
}

// start starts the next task of a stage on n.
func (c *capacity) start(p *book.Plan, m *capacityMember, stage int, n *book.NodeState) {
	need := m.job.Stages[stage].Ideal
	memory := need[resource.Memory]
	if n.ReservedFor == nil {
		c.makeLimit(p, m, need)
	}
	p.Start(m.job, stage, n, memory, cluster.BecauseFits(memory))
	if n.ReservedFor == m.job {
		c.unreserve(p, m, n, cluster.ReservationUsed)
	}
	c.tree.update(m.job, c.file)
	c.giveBackExcess(p, m)
}

// why names the limit of a queue or user that a job would exceed, or the job that blocks its leaf. Every other job of
// the leaf was considered in the last decision, and what was recorded for it then is true.
func (c *capacity) why(_ timeline.Time, _ *book.Snapshot, j *book.JobState, _ int) (cluster.Reason, bool) {
	m := c.tree.members[j]
	switch {
	case m == nil:
		return cluster.Reason{}, false
	case m.leaf == nil:
		return cluster.Because(cluster.NoSuchQueue), true
	}
	if b := m.leaf.own.blocker; b != nil && b != j {
		ahead, _ := m.leaf.own.jobs.as(b)
		if own, filed := m.leaf.own.jobs.as(j); filed && ahead.compare(own) < 0 {
			return cluster.BecauseBehindJob(b.ID), true
		}
	}
	return j.Waiting, j.Waiting.Code == cluster.QueueFull || j.Waiting.Code == cluster.UserLimit
}
