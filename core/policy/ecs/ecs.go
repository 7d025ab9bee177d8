// Package ecs has the policies that grant each phase of a task what it demands: that of the ECS paper (Xu et al.,
// "Improving Utilization and Parallelism of Hadoop Cluster by Elastic Containers"), and the two that the paper compares
// it with, PRISM and contention-aware scheduling.
package ecs

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/leveling"
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
// Jobs are served by dominant share. A task starts where its first phase has room. When it enters another phase, its
// CPU is resized, even beyond what its node has. If the forecasts of the tasks of a node exceed its cores at some
// time, and fluctuate enough, the policy asks which tasks should stop when, and carries out the answer.
type ecs struct {
	detector          leveling.Detector
	levels            bool
	suspension, delay float64 // α and β, of a core or of a node
	eta               float64
	perCore           bool
	interval          time.Duration // the shortest
	sets, states      int

	phased phased
	fit    queue.FirstFit
	whole  resource.Vector // the capacity of the cluster from which shares were computed
	watch  watch
	demand demands
	float  float
	line   []inLine      // of the node that was looked at last
	now    timeline.Time // of this decision
	free   bool          // memory leaves and comes back at once and at no cost
	weighs bool          // a grant of CPU is a weight, and not a quota
}

// New returns the policy "ecs".
func New(s *contract.Settings) contract.Policy {
	e := &ecs{}
	e.detector.Threshold = s.Declare("threshold", "5",
		"H_RF: a node is leveled if its demand fluctuates by more than this, in seconds of the whole node, and "+
			"exceeds its cores at some time "+
			"(equation 16). The paper has no value").Number()
	e.detector.Discount = s.Declare("discount", "0.8",
		"λ, from 0 to 1: the n-th stretch of constant demand counts λ^n in the fluctuation (equation 16). The paper "+
			"has no value").Share()
	e.suspension = s.Declare("suspension", "0.3",
		"α: a suspension costs as much as this over-allocation for one interval (equation 14)").Number()
	e.delay = s.Declare("delay", "0.05",
		"β: the delay of a task by an interval costs as much as this over-allocation for one interval (equation 14)").Number()
	e.eta = s.Declare("eta", "0.4",
		"η, from 0 to 1: the weight of idle cores in the printed value of a solution (equation 14); it does not "+
			"change the solution").Share()
	e.perCore = s.Declare("units", "node",
		"what suspension and delay are multiples of: the cores of the node, or one core").OneOf("node", "core") == "core"
	e.interval = s.Declare("interval", "10s",
		"the shortest interval in which a task stops or goes on; intervals are longer if 20 of them do not reach far "+
			"enough").Duration()
	e.sets = s.Declare("sets", "12",
		"how many groups of tasks of a node may be moved; groups that demand less stay where they are").Count(
		leveling.MostSets)
	e.states = s.Declare("states", "400000",
		"how many states a search for a solution looks at; the driver may permit fewer").Count(1 << 30)
	e.phased.off = !s.Declare("overcommit", "true",
		"tasks are granted the CPU that each phase demands; false: their ideal need").Flag()
	weighs := s.Declare("cpu", "quota",
		"what a grant of CPU is. quota: the most that a task may use. weight: its share of the cores while the tasks "+
			"of its node would use more "+
			"than there are; a task may use what others leave, up to what it requests").OneOf("quota", "weight") == "weight"
	e.weighs = weighs && !e.phased.off
	memory := s.Declare("memory", "ideal",
		"what memory tasks are granted. ideal: what they request. phase: tasks in FLEX containers are granted what "+
			"each phase demands; before "+
			"a phase that needs more than is free a task stops, and its memory is paged out. paper: phase, and memory "+
			"leaves and comes back "+
			"at once and free of charge, which only a simulator can do").OneOf("ideal", "phase", "paper")
	e.phased.memory, e.free = memory != "ideal" && !e.phased.off, memory == "paper"
	if ahead := newLookAhead(s); memory == "phase" {
		e.phased.ahead = ahead
	}
	e.levels = s.Declare("leveling", "true",
		"tasks are stopped while their node would be over-allocated; false: never").Flag()
	e.phased.short.on = s.Declare("short", "true",
		"tasks whose run time is in the lower of two clusters get their largest demand throughout, and are not moved; "+
			"false: all tasks "+
			"are treated alike").Flag()
	e.fit = queue.FirstFit{Queue: queue.Fit{Key: e.share, Grant: e.phased.grant}, Begin: e.phased.begin, Suits: e.suits}
	return e
}

func (*ecs) Name() string { return "ecs" }

// Traits sets Quotas because a task may become short, and then needs more, when another job comes or leaves.
func (e *ecs) Traits() contract.Traits {
	return contract.Traits{LooksAhead: true, ByPhase: !e.phased.off, Weighs: e.weighs, Stops: e.levels || e.phased.memory,
		Quotas: true, Why: e.why, FreePageOut: e.free, DropCaches: e.dropCaches}
}

func (e *ecs) dropCaches() {
	e.fit.Queue.Drop()
	e.phased.short.known = false
	e.watch = watch{}
}

// share is the key of a job in the queue.
func (e *ecs) share(j *book.JobState) float64 { return queue.DominantShare(j, e.whole) }

func (e *ecs) Decide(now timeline.Time, p *book.Plan) {
	e.now = now
	e.follow(p)
	e.watch.collect(now, p)
	for _, n := range e.watch.nodes {
		if e.phased.resize(now, p, n) {
			e.watch.change(n)
		}
		if e.phased.memory && e.serveMemory(now, p, n) {
			e.watch.change(n)
		}
		if e.levels && n.Leveled != nil {
			e.carryOut(now, p, n, e.watch.changed(n))
		}
	}
	e.fit.Serve(p)
	if e.phased.memory && e.fit.Queue.SomeFit(p) { // where phases came first, they may have begun
		e.fit.Anew = true
		e.fit.Place(p)
	}
	e.phased.watchStarted(&e.watch)
	for _, n := range e.watch.nodes {
		if e.levels && e.watch.changed(n) {
			e.ask(now, p, n)
		}
		e.watch.plan(n, e.next(now, p.Snapshot, n))
	}
	e.watch.wake(now, p)
}

// follow makes the queue anew if all shares have changed, or which tasks are short.
func (e *ecs) follow(p *book.Plan) {
	e.fit.Anew = e.phased.short.follow(p)
	if e.fit.Anew || e.whole != p.Capacity {
		e.whole = p.Capacity
		e.fit.Queue.Drop()
	}
}

// next returns the earliest time after now at which a task of n enters a phase in which it is granted another amount,
// or at which it is to stop; Never if there is none.
func (e *ecs) next(now timeline.Time, s *book.Snapshot, n *book.NodeState) timeline.Time {
	at := e.phased.next(now, s, n)
	if e.phased.memory {
		at = min(at, e.nextForMemory(now, s, n))
	}
	if e.levels && n.Leveled != nil {
		for i := range n.Leveled.Shifts {
			if from := n.Leveled.Shifts[i].From; from > now {
				at = min(at, from)
			}
		}
	}
	return at
}
