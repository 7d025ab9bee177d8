package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// capacity is YARN's CapacityScheduler. Each queue is guaranteed a share of its parent's resources and may use up to a
// maximum share; guaranteed resources that a queue does not request are available to all queues. The queue that uses
// the least of its guarantee is served first; in a leaf, the job that was submitted first. If no node fits the next
// task of the job in turn, nodes are reserved for that job. With preemption, tasks of queues above their guarantee are
// ended when other queues are below theirs. docs/decisions/0009-queues.md says which parts of YARN were taken over.
type capacity struct {
	tree         *queueTree
	measure      measure
	fair         bool // in a leaf, the job that uses the least is served first
	reservations bool
	users        userLimits
	preemption   preemption

	// All fields below are computed from the snapshot.
	members map[*cluster.JobState]*capacityMember
	kept    map[cluster.NodeID]*capacityMember // reserved nodes
	limits  []queueLimits                      // by queue.index
	of      resource.Vector                    // the capacity of the cluster from which limits were computed
	misses  misses                             // in the decision in progress
	// decisions counts calls of Decide.
	decisions int
}

// capacityMember is a job in its leaf.
type capacityMember struct {
	member
	user   *userUse
	kept   []reservation // by node
	looked int           // capacity.decisions when nodes were last considered for reservation
}

// queueLimits are the shares of a queue as amounts, and what is reserved for the jobs in the queue and below it.
type queueLimits struct {
	guaranteed, most, reserved resource.Vector
	share                      float64 // guaranteed, of the cluster
	// blocker is the job of a leaf that would take a queue above its maximum, as of the last decision; nil if there is
	// none. The jobs behind it wait for it.
	blocker *cluster.JobState
}

func newCapacity(s *settings) Policy {
	c := &capacity{}
	queues := s.declare("queues", "default=100%",
		"the queues, each with what it is guaranteed and, behind two dots, the most that it may hold of its "+
			"parent's: prod=60%..100%,prod.etl=50%..80%,adhoc=40%; jobs name a leaf, and those that name none are in "+
			"the leaf default")
	c.measure.dominant = s.declare("calculator", "memory",
		"what shares are measured in: memory, or dominant: the larger of memory and CPU (YARN: "+
			"DefaultResourceCalculator, DominantResourceCalculator)").oneOf("memory", "dominant") == "dominant"
	c.fair = s.declare("ordering", "fifo",
		"who is first in a leaf: fifo, the job submitted first, or fair, the job with the least memory per "+
			"weight").oneOf("fifo", "fair") == "fair"
	c.reservations = s.declare("reservations", "true",
		"keep a node that cannot hold the next task of the job whose turn it is for that job").flag()
	c.users = newUserLimits(s)
	c.preemption = newPreemption(s, c.reservations)
	var err error
	if c.tree, err = parseQueues(queues.text, readShares); err == nil {
		err = c.tree.checkShares()
	}
	if err == nil && c.tree.root.leaf() {
		err = errors.New("must name at least one queue")
	}
	if err != nil {
		queues.reject(err)
	}
	return c
}

// readShares reads "50%" or "50%..80%".
func readShares(q *queue, text string) error {
	guaranteed, most, both := strings.Cut(text, "..")
	if !both {
		most = "100%"
	}
	var ok, okToo bool
	q.share, ok = percent(guaranteed)
	q.most, okToo = percent(most)
	switch {
	case !ok || !okToo:
		return fmt.Errorf("share %q: must be a percentage from 0%% to 100%%, or two such as 50%%..80%%", text)
	case q.share > q.most:
		return fmt.Errorf("share %q: the first must not be more than the second", text)
	case q.most == 0:
		return fmt.Errorf("share %q: the most that it may hold must be more than 0%%", text)
	}
	return nil
}

func percent(text string) (float64, bool) {
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	return v / 100, ok && err == nil && v >= 0 && v <= 100
}

// checkShares returns an error if the children of a queue are guaranteed more than the queue has.
func (t *queueTree) checkShares() error {
	for _, q := range t.all {
		sum := 0.0
		for _, child := range q.children {
			sum += child.share
		}
		if sum > 1+1e-9 {
			name := "the cluster"
			if q.parent != nil {
				name = fmt.Sprintf("queue %q", q.name)
			}
			return fmt.Errorf("%s guarantees %g%% to the queues below: must be at most 100%%", name, math.Round(1e6*sum)/1e4)
		}
	}
	return nil
}

func (c *capacity) Name() string { return "capacity" }
func (c *capacity) Traits() Traits {
	return Traits{Quotas: true, Admit: c.admit, Why: c.why, DropCaches: c.dropCaches}
}

func (c *capacity) dropCaches() { c.members = nil }

// admit rejects a job whose queue does not exist, or whose queue is too small for one of the job's tasks even when
// empty.
func (c *capacity) admit(s *cluster.Snapshot, j *cluster.Job) error {
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
			return fmt.Errorf("job %q stage %d %s %s%s: must be at most what queue %q may hold, %s", j.Name, i, k, k.Format(need[k]), with,
				q.name, k.Format(c.limits[q.index].most[k]))
		}
	}
	return nil
}

// overMost returns the first queue on the way from a leaf to the root that is too small for need even when empty, and
// the resource that it lacks; nil if all queues are large enough.
func (c *capacity) overMost(leaf *queue, need resource.Vector) (resource.Kind, *queue) {
	for q := leaf; q.parent != nil; q = q.parent {
		for _, k := range c.measure.kinds() {
			if need[k] > c.limits[q.index].most[k] {
				return k, q
			}
		}
	}
	return 0, nil
}

func (c *capacity) Decide(now timeline.Time, p *cluster.Plan) {
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

// follow updates queues and limits from the changes of the snapshot.
func (c *capacity) follow(p *cluster.Plan) {
	c.scale(p.Capacity)
	if c.members == nil {
		c.fill(p)
		return
	}
	for _, id := range p.Changes.Nodes {
		if m := c.kept[id]; m != nil && p.Nodes[id].ReservedFor != m.job {
			c.forgetReservation(m, id)
		}
	}
	for _, j := range p.Changes.Jobs {
		c.update(j)
	}
}

// fill computes everything from the snapshot.
func (c *capacity) fill(p *cluster.Plan) {
	c.members, c.kept = make(map[*cluster.JobState]*capacityMember, len(p.Jobs)), map[cluster.NodeID]*capacityMember{}
	c.tree.clear()
	c.users.clear()
	for i := range c.limits {
		c.limits[i].reserved = resource.Vector{}
	}
	reserved := false
	for _, j := range p.Jobs {
		c.update(j)
		reserved = reserved || j.Reservations > 0
	}
	for i := 0; reserved && i < len(p.Nodes); i++ {
		if n := p.Nodes[i]; n.ReservedFor != nil {
			c.noteReservation(c.members[n.ReservedFor], n)
		}
	}
}

// scale converts the shares of the queues to amounts.
func (c *capacity) scale(whole resource.Vector) {
	if c.limits == nil {
		c.limits = make([]queueLimits, len(c.tree.all))
	} else if c.of == whole {
		return
	}
	c.of, c.measure.whole = whole, whole
	most := make([]float64, len(c.limits))
	for i, q := range c.tree.all {
		l := &c.limits[i]
		l.share, most[i] = 1, 1
		if q.parent != nil {
			l.share, most[i] = q.share*c.limits[q.parent.index].share, q.most*most[q.parent.index]
		}
		l.guaranteed, l.most = portion(whole, l.share), portion(whole, most[i])
	}
}

// portion is a share of v, rounded down; an amount that is whole except for rounding errors is kept.
func portion(v resource.Vector, share float64) resource.Vector {
	for k := range v {
		v[k] = resource.Amount(math.Floor(float64(v[k])*share + 1e-6))
	}
	return v
}

// update brings what is known of one job up to date.
func (c *capacity) update(j *cluster.JobState) {
	m := c.members[j]
	if m == nil {
		if j.Retired() {
			return
		}
		m = &capacityMember{member: member{job: j, leaf: c.tree.home(j.Job)}}
		m.user = c.users.of(m.leaf, j.Owner)
		c.members[j] = m
	}
	if _, runnable := j.NextStage(); m.leaf != nil {
		m.leaf.jobs.set(j, c.key(j), runnable)
	}
	c.users.leave(m)
	m.count()
	c.users.join(m)
	if j.Retired() {
		delete(c.members, j)
	}
}

// key is the sort key of a job in its leaf.
func (c *capacity) key(j *cluster.JobState) float64 {
	if c.fair {
		return fairKey(j)
	}
	return 0
}

// serve lets one task in or below q start, and reports whether a task started. Queues are served in ascending order of
// use over guarantee.
func (c *capacity) serve(p *cluster.Plan, q *queue) bool {
	if q.runnable == 0 {
		return false
	}
	if q.leaf() {
		return c.serveLeaf(p, q)
	}
	// Every start changes the order here and in the queues above: it is computed anew.
	order := make([]*queue, 0, 8)
	for _, child := range q.children {
		if child.runnable > 0 {
			order = append(order, child)
		}
	}
	slices.SortStableFunc(order, c.compare)
	return slices.ContainsFunc(order, func(child *queue) bool { return c.serve(p, child) })
}

// compare orders queues by use over guarantee, ascending; ties go to the larger guarantee.
func (c *capacity) compare(a, b *queue) int {
	switch x, y := c.ratio(a), c.ratio(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	case c.limits[a.index].share > c.limits[b.index].share:
		return -1
	case c.limits[a.index].share < c.limits[b.index].share:
		return 1
	}
	return 0
}

// ratio is the use of a queue, including what is reserved for it, over its guarantee. Queues without a guarantee come
// last.
func (c *capacity) ratio(q *queue) float64 {
	l := &c.limits[q.index]
	if l.share == 0 {
		return math.Inf(1)
	}
	return c.measure.share(q.used.Add(l.reserved)) / l.share
}

// serveLeaf lets one job of a leaf start one task. A job that would take a queue above its maximum blocks the jobs
// behind it. A job that fits on no node, or whose user is above the user limit, does not block them.
func (c *capacity) serveLeaf(p *cluster.Plan, leaf *queue) bool {
	c.limits[leaf.index].blocker = nil
	for i := 0; i < len(leaf.jobs.jobs); i++ {
		j := leaf.jobs.jobs[i].job
		m := c.members[j]
		stage, _ := j.NextStage()
		need := j.Stages[stage].Ideal
		if why, over := c.overLimit(m, need, m.reserved()); over {
			p.Wait(j, stage, 0, why)
			c.limits[leaf.index].blocker = j
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
		l := &c.limits[q.index]
		for _, k := range c.measure.kinds() {
			if would := q.used[k] + l.reserved[k] + need[k] - back[k]; would > l.most[k] {
				return cluster.BecauseQueueFull(k, would, l.most[k]), true
			}
		}
	}
	return cluster.Reason{}, false
}

// start starts the next task of a stage on n.
func (c *capacity) start(p *cluster.Plan, m *capacityMember, stage int, n *cluster.NodeState) {
	need := m.job.Stages[stage].Ideal
	memory := need[resource.Memory]
	if n.ReservedFor == nil {
		c.makeLimit(p, m, need)
	}
	p.Start(m.job, stage, n, memory, cluster.BecauseFits(memory))
	if n.ReservedFor == m.job {
		c.unreserve(p, m, n, cluster.ReservationUsed)
	}
	c.update(m.job)
	c.giveBackExcess(p, m)
}

// why names the limit of a queue or user that a job would exceed, or the job that blocks its leaf. Every other job of the
// leaf was considered in the last decision, and what was recorded for it then is true.
func (c *capacity) why(_ timeline.Time, _ *cluster.Snapshot, j *cluster.JobState, _ int) (cluster.Reason, bool) {
	m := c.members[j]
	switch {
	case m == nil:
		return cluster.Reason{}, false
	case m.leaf == nil:
		return cluster.Because(cluster.NoSuchQueue), true
	}
	filed := m.leaf.jobs.filed
	if b := c.limits[m.leaf.index].blocker; b != nil && b != j && filed[b].compare(filed[j]) < 0 {
		return cluster.BecauseBehindJob(b.ID), true
	}
	return j.Waiting, j.Waiting.Code == cluster.QueueFull || j.Waiting.Code == cluster.UserLimit
}
