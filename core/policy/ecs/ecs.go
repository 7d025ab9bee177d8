// Package ecs has the policies that grant each phase of a task what it demands: that of the ECS paper (Xu et al.,
// "Improving Utilization and Parallelism of Hadoop Cluster by Elastic Containers"), and the two that the paper compares
// it with, PRISM and contention-aware scheduling.
package ecs

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// ecs grants each task what its phase demands, so that more tasks run at once, and stops tasks that have time while
// their node would be over-allocated (Xu et al., "Improving Utilization and Parallelism of Hadoop Cluster by Elastic
// Containers", Algorithm 1 and equations 1 to 16). What the paper leaves open is decided in
// docs/decisions/0047-ecs.md.
//
// Jobs are served by dominant share. A task starts where its first phase has room; a Leveler does the rest.
type ecs struct {
	Leveler
	fit   queue.FirstFit
	whole resource.Vector // the capacity of the cluster from which shares were computed
}

// New returns the policy "ecs".
func New(s *contract.Settings) contract.Policy {
	e := &ecs{}
	e.declare(s)
	e.fit = queue.FirstFit{Queue: queue.Fit{Key: e.share, Grant: e.phased.grant}, Begin: e.phased.begin, Suits: e.suits}
	return e
}

func (*ecs) Name() string { return "ecs" }

// Traits sets Quotas because a task may become short, and then needs more, when another job comes or leaves.
func (e *ecs) Traits() contract.Traits {
	return contract.Traits{LooksAhead: true, ByPhase: !e.phased.off, Weighs: e.phased.weighs,
		Stops: e.levels || e.phased.memory, Quotas: true, Why: e.why, FreePageOut: e.free, DropCaches: e.dropCaches}
}

func (e *ecs) dropCaches() {
	e.fit.Queue.Drop()
	e.phased.short.known = false
	e.DropCaches()
}

// share is the key of a job in the queue.
func (e *ecs) share(j *book.JobState) float64 { return queue.DominantShare(j, e.whole) }

func (e *ecs) Decide(now timeline.Time, p *book.Plan) {
	e.follow(p)
	e.Begin(now, p)
	e.fit.Serve(p)
	if e.phased.memory && e.fit.Queue.SomeFit(p) { // where phases came first, they may have begun
		e.fit.Anew = true
		e.fit.Place(p)
	}
	e.End(now, p)
}

// follow makes the queue anew if all shares have changed, or which tasks are short.
func (e *ecs) follow(p *book.Plan) {
	e.fit.Anew = e.phased.short.follow(p)
	if e.fit.Anew || e.whole != p.Capacity {
		e.whole = p.Capacity
		e.fit.Queue.Drop()
	}
}
