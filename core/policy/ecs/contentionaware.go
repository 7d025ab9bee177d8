package ecs

import (
	"math"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// contentionAware is the baseline of the ECS paper (section V.D): tasks are granted what each phase demands, as under
// ecs, and start only on nodes that have enough for what all tasks there are forecast to demand until the new one
// ends. Nothing is stopped.
//
// The paper has it as a variation of YARN's Capacity Scheduler, without its queues. Here jobs are served in the order
// of their submission, and jobs whose task starts nowhere are skipped. "The near future" is the run time of the task.
type contentionAware struct {
	phased phased
	fit    queue.FirstFit
	watch  watch
	demand demands
	now    timeline.Time
}

// NewContentionAware returns the policy "contention-aware".
func NewContentionAware(*contract.Settings) contract.Policy {
	c := &contentionAware{}
	c.fit = queue.FirstFit{Queue: queue.Fit{Key: queue.FirstSubmitted, Grant: c.phased.grant}, Begin: c.phased.begin,
		Suits: c.suits}
	return c
}

func (*contentionAware) Name() string { return "contention-aware" }

// Traits sets Quotas because what a node demands later limits what starts there, in addition to room.
func (c *contentionAware) Traits() contract.Traits {
	return contract.Traits{LooksAhead: true, ByPhase: true, Quotas: true, Why: c.why, DropCaches: c.dropCaches}
}

func (c *contentionAware) dropCaches() {
	c.fit.Queue.Drop()
	c.watch = watch{}
}

func (c *contentionAware) Decide(now timeline.Time, p *book.Plan) {
	c.now = now
	c.watch.collect(now, p)
	for _, n := range c.watch.nodes {
		c.phased.resize(now, p, n)
	}
	c.fit.Serve(p)
	if c.fit.Queue.SomeFit(p) { // as time passes, what was too much may suit
		c.fit.Anew = true
		c.fit.Place(p)
	}
	c.phased.watchStarted(&c.watch)
	for _, n := range c.watch.nodes {
		c.watch.plan(n, c.phased.next(now, p.Snapshot, n))
	}
	c.watch.wake(now, p)
}

// suits reports whether n has enough until the next task of a job ends.
func (c *contentionAware) suits(p *book.Plan, j *book.JobState, n *book.NodeState) bool {
	stage, _ := j.NextStage()
	_, over := c.exceeds(c.now, p.Snapshot, j, stage, n)
	return !over
}

// exceeds returns the first time at which n would have too few cores if the next task of a stage started now; ok is
// false if it would have enough until the task ends.
func (c *contentionAware) exceeds(now timeline.Time, s *book.Snapshot, j *book.JobState, stage int,
	n *book.NodeState) (at timeline.Time, ok bool) {
	c.demand.look(now, s, n, nil)
	lasts := j.Stages[stage].RunTime()
	if lasts <= 0 {
		lasts = math.MaxInt64
	}
	d := &c.demand
	d.pieces, d.pauses = d.pieces[:0], d.pauses[:0]
	if c.phased.applies(j.Job, stage) {
		d.workByPhase(j.Job, stage, n, lasts, lasts)
	} else {
		need, _, _ := c.phased.grant(j, stage)
		d.pieces = append(d.pieces, piece{lasts, need[resource.CPU]})
	}
	from := s.LaunchTime(j.Submitted, now)
	d.follow(from)
	d.sum()
	at, over := d.over(now)
	return at, over && at < from.Add(lasts)
}

// why says that a node with room would have too few cores later.
func (c *contentionAware) why(now timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	need, _, _ := c.phased.grant(j, stage)
	first := timeline.Never
	for n, ok := s.FirstOpen(need, 0); ok; n, ok = s.FirstOpen(need, n.ID+1) {
		at, over := c.exceeds(now, s, j, stage, n)
		if !over {
			return cluster.Reason{}, false
		}
		first = min(first, at)
	}
	if first < timeline.Never {
		return cluster.BecauseExceedsLater(first), true
	}
	return s.NoRoom(need)
}
