package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// preemption are the settings of YARN's ProportionalCapacityPreemptionPolicy.
type preemption struct {
	on          bool
	interval    time.Duration
	wait        time.Duration
	perRound    float64
	ignored     float64
	termination float64
	overshoot   bool
}

func newPreemption(s *contract.Settings, reservations bool) preemption {
	on := s.Declare("preemption", "false",
		"preempt tasks of queues that hold more than their guarantee while other queues hold less than theirs; "+
			"needs reservations")
	p := preemption{
		on: on.Flag(),
		interval: s.Declare("preemption-interval", "3s",
			"time between two searches for tasks to preempt (YARN: monitoring_interval)").Duration(),
		wait: s.Declare("preemption-wait", "15s",
			"time between choosing a task and ending it (YARN: max_wait_before_kill)").Duration(),
		perRound: s.Declare("preemption-per-round", "0.1",
			"largest share of the cluster that is preempted at a time (YARN: total_preemption_per_round)").Share(),
		ignored: s.Declare("preemption-ignored", "0.1",
			"share of its guarantee that a queue may hold beyond it without preemption (YARN: "+
				"max_ignored_over_capacity)").Number(),
		termination: s.Declare("preemption-termination", "0.2",
			"share of the excess that is preempted at a time; the rest should end by itself (YARN: "+
				"natural_termination_factor)").Share(),
		overshoot: s.Declare("preemption-overshoot", "false",
			"preempt a task even if its queue then holds less than its guarantee and takes the room back (YARN "+
				"does, so that large tasks may be preempted again and again)").Flag(),
	}
	if p.on && !reservations {
		on.Fail("false without capacity.reservations: what is taken from one queue would not reach the other")
	}
	return p
}

// preempt looks for tasks to preempt, once per interval while some queue lacks guaranteed resources.
func (c *capacity) preempt(now timeline.Time, p *book.Plan) {
	due := p.Preemption.At != 0 && now >= p.Preemption.At
	if p.Preemption.At != 0 && !due {
		return
	}
	if !c.imbalanced() {
		if due {
			p.EndPreemption()
		}
		return
	}
	if due {
		c.preemptRound(now, p)
	}
	p.PlanPreemption(now.Add(c.preemption.interval), cluster.Because(cluster.PreemptionDue))
}

// imbalanced reports whether some queue with tasks to start uses less than its guarantee while some leaf exceeds its
// own guarantee by more than the ignored margin.
func (c *capacity) imbalanced() bool {
	less, more := false, false
	for _, q := range c.tree.All[1:] {
		less = less || q.Runnable > 0 && c.measure.less(q.Used, q.Own.guaranteed)
		more = more || q.Leaf() && c.beyondIgnored(q, q.Used)
	}
	return less && more
}

// beyondIgnored reports whether used exceeds the guarantee of a queue by more than the ignored margin.
func (c *capacity) beyondIgnored(q *shareQueue, used resource.Vector) bool {
	return c.measure.less(scaled(q.Own.guaranteed, 1+c.preemption.ignored), used)
}

// idealQueue is a queue in the computation of what each queue should use.
type idealQueue struct {
	*shareQueue
	used, pending    resource.Vector // what it uses, reserved nodes included; what its jobs request in addition
	guaranteed, most resource.Vector
	stays            resource.Vector // what its coordinators use
	ideal            resource.Vector // what it should use
	preempt          resource.Vector // what should be preempted from it
	normal           [resource.NumKinds]float64
}

// preemptRound chooses tasks for preemption and ends those that have stayed chosen for long enough.
func (c *capacity) preemptRound(now timeline.Time, p *book.Plan) {
	// 1. What each queue uses, and what it requests.
	c.look(p)
	root := c.tree.Root.Own.ideal
	// 2. What each queue should use, from the root down, and what must be preempted from it.
	allowed := scaled(root.guaranteed, c.preemption.perRound)
	root.ideal = root.guaranteed
	c.distribute(root, allowed)
	// 3. Tasks of the leaves that use too much, until enough is found.
	for _, queue := range c.tree.All {
		q := queue.Own.ideal
		if !q.Leaf() || !c.beyondIgnored(queue, q.used) {
			continue
		}
		obtain := roundUp(q.preempt, c.preemption.termination)
		if c.measure.less(resource.Vector{}, obtain) {
			c.choose(now, p, q, obtain, &allowed)
		}
	}
}

// look works out what each queue uses and requests. Tasks that are being killed count as ended.
func (c *capacity) look(p *book.Plan) {
	for _, q := range c.tree.All {
		q.Own.ideal = &idealQueue{shareQueue: q, used: c.measure.of(q.Used.Add(q.Own.reserved)),
			guaranteed: c.measure.of(q.Own.guaranteed), most: c.measure.of(q.Own.most)}
	}
	for j, m := range c.tree.Members {
		if m.Leaf == nil {
			continue
		}
		var killing, stays resource.Vector
		for _, t := range j.Tasks {
			if t.Killing {
				killing = killing.Add(t.Holds())
			} else if t.Steers {
				stays = stays.Add(t.Holds())
			}
		}
		for q := m.Leaf; q != nil; q = q.Parent {
			q.Own.ideal.used = q.Own.ideal.used.Sub(c.measure.of(killing))
			q.Own.ideal.stays = q.Own.ideal.stays.Add(stays)
		}
	}
	for _, leaf := range c.tree.All {
		pending := c.measure.of(c.claims(p, leaf))
		for q := leaf; q != nil; q = q.Parent {
			q.Own.ideal.pending = q.Own.ideal.pending.Add(pending)
		}
	}
}

// claims adds up what the jobs of a leaf request, less the nodes that are reserved for them. A request that can never
// be met does not count, because other tasks would be preempted for it for ever: one that no node or no queue can take
// beside coordinators, together with the jobs that it blocks, and one beyond its user's limit.
func (c *capacity) claims(p *book.Plan, leaf *shareQueue) (all resource.Vector) {
	possible := map[resource.Vector]bool{}
	for _, e := range leaf.Own.jobs.Jobs {
		m := c.tree.Members[e.Job]
		next, _ := e.Job.NextStage()
		var pending resource.Vector
		for i := next; i < len(e.Job.Stages); i++ {
			if !e.Job.Ready(i) {
				continue
			}
			need := e.Job.Stages[i].Ideal
			if c.tooLarge(leaf, need) {
				if i == next {
					return all
				}
				continue
			}
			fits, known := possible[need]
			if !known {
				fits = fitsBesideCoordinators(p, need)
				possible[need] = fits
			}
			if _, over := c.users.over(c, m, need); over || !fits {
				break // the job's later stages are not served before this one
			}
			pending = pending.Add(need.Scale(int64(e.Job.Startable(i))))
		}
		all = all.Add(pending.Sub(m.Own.reserved()).Max(resource.Vector{}))
	}
	return all
}

// tooLarge reports whether some queue on the way to the root could not take need in addition to its coordinators.
func (c *capacity) tooLarge(leaf *shareQueue, need resource.Vector) bool {
	for q := leaf; q.Parent != nil; q = q.Parent {
		for _, k := range c.measure.kinds() {
			if need[k]+q.Own.ideal.stays[k] > q.Own.most[k] {
				return true
			}
		}
	}
	return false
}

// fitsBesideCoordinators reports whether some node could take need if it ran nothing but coordinators, which are not
// preempted. Doubtful nodes do not count: they may be unable to start anything even after a preemption.
func fitsBesideCoordinators(p *book.Plan, need resource.Vector) bool {
	for _, n := range p.Nodes {
		if n.Doubtful || !n.Holds(need) {
			continue
		}
		left := n.Room()
		for _, t := range n.Tasks {
			if t.Steers {
				left = left.Sub(t.Holds())
			}
		}
		if need.FitsIn(left) {
			return true
		}
	}
	return false
}

// distribute computes what the children of q should use of q's ideal, and what must be preempted for that.
func (c *capacity) distribute(q *idealQueue, allowed resource.Vector) {
	if len(q.Children) == 0 {
		return
	}
	var children, guaranteed, others []*idealQueue
	for _, queue := range q.Children {
		child := queue.Own.ideal
		children = append(children, child)
		if c.measure.less(resource.Vector{}, child.guaranteed) {
			guaranteed = append(guaranteed, child)
		} else {
			others = append(others, child)
		}
	}
	left := c.assign(guaranteed, q.ideal, true)
	if len(others) > 0 && c.measure.less(resource.Vector{}, left) {
		c.assign(others, left, false)
	}
	var needed resource.Vector
	for _, child := range children {
		if c.measure.less(child.ideal, child.used) {
			needed = needed.Add(child.used.Sub(child.ideal))
		}
	}
	factor := 1.0
	if c.measure.less(allowed, needed) {
		factor = c.measure.share(allowed) / c.measure.share(needed)
	}
	for _, child := range children {
		// It keeps its ideal, and what it requests within its guarantee.
		keep := c.measure.max(c.measure.min(child.used.Add(child.pending), child.guaranteed), child.ideal)
		if c.measure.less(keep, child.used) {
			child.preempt = scaled(child.used.Sub(keep), factor)
		}
		c.distribute(child, allowed)
	}
}

// assign distributes what is left: first to each queue its use up to its guarantee, then to the queues with the least
// of their guarantees, until no queue requests more. It returns the rest.
func (c *capacity) assign(queues []*idealQueue, left resource.Vector, byGuarantee bool) resource.Vector {
	var asking []*idealQueue
	for _, q := range queues {
		q.ideal = q.used
		if c.measure.less(q.guaranteed, q.used) {
			q.ideal = q.guaranteed
		}
		left = left.Sub(q.ideal)
		if c.measure.less(q.ideal, q.used.Add(q.pending)) {
			asking = append(asking, q)
		}
	}
	for len(asking) > 0 && c.measure.less(resource.Vector{}, left) {
		normalize(asking, byGuarantee)
		slices.SortStableFunc(asking, func(a, b *idealQueue) int {
			return cmp.Compare(c.idealRatio(a), c.idealRatio(b))
		})
		given, first := resource.Vector{}, c.idealRatio(asking[0])
		var still []*idealQueue
		for _, q := range asking {
			if c.idealRatio(q) > first {
				still = append(still, q)
				continue
			}
			part := left
			for k := range part {
				part[k] = roundUpAmount(resource.Kind(k), float64(part[k])*q.normal[k])
			}
			if taken := c.offer(q, part); c.measure.less(resource.Vector{}, taken) {
				q.ideal = q.ideal.Add(taken)
				given = given.Add(taken)
				still = append(still, q)
			}
		}
		asking, left = still, left.Sub(given)
	}
	return left
}

// normalize computes the part of each queue among the queues that request more.
func normalize(asking []*idealQueue, byGuarantee bool) {
	var sum resource.Vector
	for _, q := range asking {
		sum = sum.Add(q.guaranteed)
	}
	for _, q := range asking {
		for k := range sum {
			switch {
			case !byGuarantee:
				q.normal[k] = 1 / float64(len(asking))
			case sum[k] > 0:
				q.normal[k] = float64(q.guaranteed[k]) / float64(sum[k])
			}
		}
	}
}

// idealRatio is the ideal of a queue over its guarantee; a queue without a guarantee is the last to get more.
func (c *capacity) idealRatio(q *idealQueue) float64 {
	guaranteed := c.measure.share(q.guaranteed)
	if guaranteed == 0 {
		return math.Inf(1)
	}
	return c.measure.share(q.ideal) / guaranteed
}

// offer returns how much of part a queue takes, bounded by its maximum and its requests. A leaf takes no more than the
// larger of its guarantee and its use: no task is preempted to lift a queue further above its guarantee.
func (c *capacity) offer(q *idealQueue, part resource.Vector) resource.Vector {
	var none resource.Vector
	taken := c.measure.min(q.most.Sub(q.ideal).Max(none), c.measure.min(part, q.used.Add(q.pending).Sub(q.ideal)))
	if q.Leaf() {
		bound := c.measure.max(c.measure.max(q.used, q.guaranteed).Sub(q.ideal), none)
		taken = c.measure.min(taken, bound)
	}
	return taken
}

// choose ends reservations of jobs of a leaf, marks tasks for preemption, and ends the tasks that have been marked for
// long enough. It begins with the job that is served last, and in each job with the newest task. A mark becomes
// stale if the task does not stay chosen; the task is then marked anew.
func (c *capacity) choose(
	now timeline.Time, p *book.Plan, q *idealQueue, obtain resource.Vector, allowed *resource.Vector,
) {
	k := c.measure.largest(q.used)
	why := cluster.BecauseQueueOverShare(k, q.used[k], q.guaranteed[k])
	wait := timeline.Time(c.preemption.wait)
	// A task with an older mark was not chosen in some round since.
	forgotten := now - timeline.Time(c.preemption.interval) - 2*wait
	for _, j := range c.lastFirst(q.shareQueue) {
		m := c.tree.Members[j]
		for len(m.Own.kept) > 0 && c.measure.less(resource.Vector{}, obtain) {
			obtain = obtain.Sub(c.measure.of(m.Own.kept[0].need))
			c.unreserve(p, m, p.Nodes[m.Own.kept[0].node], cluster.ReservationNotNeeded)
		}
		for _, t := range newestFirst(j) {
			if c.overshoots(q, t) || !c.contributes(t, &obtain, allowed) {
				continue
			}
			for a := q.shareQueue; a != nil; a = a.Parent {
				a.Own.ideal.used = a.Own.ideal.used.Sub(c.measure.of(t.Holds()))
			}
			switch {
			case !t.Mark.Since(forgotten):
				p.Mark(t)
			case t.Mark.At+wait <= now:
				p.Preempt(t, why)
			}
		}
	}
}

// overshoots reports whether the end of t would take its leaf, or a queue above, from more than its guarantee to less:
// the queue would then be served first and take the room back at once, for ever.
func (c *capacity) overshoots(q *idealQueue, t *book.TaskState) bool {
	if c.preemption.overshoot {
		return false
	}
	for a := q.shareQueue; a.Parent != nil; a = a.Parent {
		i := a.Own.ideal
		if !c.measure.less(i.used, i.guaranteed) && c.measure.less(i.used.Sub(c.measure.of(t.Holds())), i.guaranteed) {
			return true
		}
	}
	return false
}

// contributes reports whether the end of t would yield part of obtain within allowed, and subtracts it from both.
func (c *capacity) contributes(t *book.TaskState, obtain, allowed *resource.Vector) bool {
	var none resource.Vector
	grant := c.measure.of(t.Holds())
	if !c.measure.less(none, obtain.Max(none)) || !grant.FitsIn(allowed.Max(none)) {
		return false
	}
	if after := obtain.Sub(grant); !c.measure.less(after.Max(none), obtain.Max(none)) {
		return false
	}
	*obtain, *allowed = obtain.Sub(grant), allowed.Sub(grant)
	return true
}

// lastFirst returns the jobs of a leaf that use anything, in reverse order of service.
func (c *capacity) lastFirst(leaf *shareQueue) []*book.JobState {
	var jobs []queued
	for j, m := range c.tree.Members {
		if m.Leaf == leaf && (len(j.Tasks) > 0 || len(m.Own.kept) > 0) {
			jobs = append(jobs, queue.EntryOf(j, c.key(j), struct{}{}))
		}
	}
	slices.SortFunc(jobs, func(a, b queued) int { return b.Compare(a) })
	out := make([]*book.JobState, len(jobs))
	for i, e := range jobs {
		out[i] = e.Job
	}
	return out
}

// newestFirst returns the tasks of a job that can be preempted, the newest first.
func newestFirst(j *book.JobState) []*book.TaskState {
	var tasks []*book.TaskState
	for _, t := range j.Tasks {
		if t.Running && !t.Killing && !t.Steers && !j.AtMostOnce {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *book.TaskState) int {
		return cmp.Or(cmp.Compare(b.Booked, a.Booked),
			cmp.Compare(b.ID.Stage, a.ID.Stage), cmp.Compare(b.ID.Index, a.ID.Index))
	})
	return tasks
}

func scaled(v resource.Vector, factor float64) resource.Vector {
	for k := range v {
		v[k] = resource.Amount(float64(v[k]) * factor)
	}
	return v
}

// roundUp scales v and rounds up to YARN's units.
func roundUp(v resource.Vector, factor float64) resource.Vector {
	for k := range v {
		v[k] = roundUpAmount(resource.Kind(k), float64(v[k])*factor)
	}
	return v
}

// roundUpAmount rounds up to megabytes of memory, and to single units of everything else.
func roundUpAmount(k resource.Kind, v float64) resource.Amount {
	step := 1.0
	if k == resource.Memory {
		step = float64(resource.MB)
	}
	return resource.Amount(math.Ceil(v/step) * step)
}
