package ecs

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/queue"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// prism is the baseline of the ECS paper (sections V.A to V.C; Zhang et al., "PRISM: Fine-Grained Resource-Aware
// Scheduling for MapReduce"): each phase of a task is scheduled like a task. A task that enters a phase that demands
// more CPU than is free on its node stops until there is room.
//
// The paper describes no more than that. Filled in: jobs are served by dominant share, as under ecs; waiting phases
// come before new tasks, and those that have waited longest come first; the task keeps its memory and, unless stopped
// tasks lend, the cores of the phase before; if nothing else runs on the node, or a phase has waited for the
// patience, it begins without room. What a stop costs is up to the machine, or the simulator's delays.
type prism struct {
	patience time.Duration
	phased   phased
	fit      queue.FirstFit
	whole    resource.Vector // the capacity of the cluster from which shares were computed
	watch    watch
	waiting  []*book.TaskState
}

// NewPRISM returns the policy "prism".
func NewPRISM(s *contract.Settings) contract.Policy {
	r := &prism{patience: s.Declare("patience", "10m",
		"how long a phase of a task waits at most; then it begins without room").Duration()}
	r.fit = queue.FirstFit{Queue: queue.Fit{Key: r.share, Grant: r.phased.grant}, Begin: r.phased.begin}
	return r
}

func (*prism) Name() string { return "prism" }

func (r *prism) Traits() contract.Traits {
	return contract.Traits{LooksAhead: true, ByPhase: true, Stops: true, Why: r.phased.why, DropCaches: r.dropCaches}
}

func (r *prism) dropCaches() {
	r.fit.Queue.Drop()
	r.watch = watch{}
}

// share is the key of a job in the queue.
func (r *prism) share(j *book.JobState) float64 { return queue.DominantShare(j, r.whole) }

func (r *prism) Decide(now timeline.Time, p *book.Plan) {
	if r.whole != p.Capacity {
		r.whole = p.Capacity
		r.fit.Queue.Drop()
	}
	r.watch.collect(now, p)
	for _, n := range r.watch.nodes {
		r.schedule(now, p, n)
	}
	r.fit.Serve(p)
	r.phased.watchStarted(&r.watch)
	for _, n := range r.watch.nodes {
		r.watch.plan(n, r.next(now, p.Snapshot, n))
	}
	r.watch.wake(now, p)
}

// schedule lets the phases of the tasks of n begin that have room, and stops the tasks of which the next phase has
// none.
func (r *prism) schedule(now timeline.Time, p *book.Plan, n *book.NodeState) {
	r.waiting = r.waiting[:0]
	for _, t := range n.Tasks {
		phase, grant, ok := r.phased.wants(now, t)
		_, held := t.HeldUntil()
		switch {
		case !ok || t.Suspended && !held:
		case held || grant[resource.CPU] > t.WantedGrant()[resource.CPU]:
			r.waiting = append(r.waiting, t)
		default:
			r.phased.regrant(now, p, t, phase, grant)
		}
	}
	slices.SortStableFunc(r.waiting, func(a, b *book.TaskState) int {
		x, xHeld := a.HeldUntil()
		y, yHeld := b.HeldUntil()
		return cmp.Or(cmp.Compare(btoi(yHeld), btoi(xHeld)), cmp.Compare(x.Since, y.Since), a.ID.Compare(b.ID))
	})
	runs := r.runs(n)
	for _, t := range r.waiting {
		phase, grant, _ := r.phased.wants(now, t)
		cpu := grant[resource.CPU]
		_, held := t.HeldUntil()
		room := n.Overdrawn()[resource.CPU] == 0 && cpu-t.Holds()[resource.CPU] <= n.Free[resource.CPU]
		switch {
		case room || !runs || held && r.patient(t) <= now:
			r.phased.regrant(now, p, t, phase, grant)
			p.Resume(t, cluster.HeldByLeveling, cluster.BecausePhaseDemands(phase, t.WantedGrant()))
			runs = true
		case !held:
			// The policy ends the hold earlier: the task must not go on before its phase has been granted.
			p.SuspendUntil(t, now.Add(2*r.patience), cluster.TaskID{},
				cluster.BecausePhaseWaits(phase, cpu, n.Free[resource.CPU]))
		}
	}
}

// patient returns when the next phase of a task begins without room; Never if the task does not wait.
func (r *prism) patient(t *book.TaskState) timeline.Time {
	h, held := t.HeldUntil()
	if !held {
		return timeline.Never
	}
	return h.Until.Add(-r.patience)
}

// next returns the earliest time after now at which a task of n should enter another phase, or has waited for long
// enough.
func (r *prism) next(now timeline.Time, s *book.Snapshot, n *book.NodeState) timeline.Time {
	at := r.phased.next(now, s, n)
	for _, t := range n.Tasks {
		if patient := r.patient(t); patient > now {
			at = min(at, patient)
		}
	}
	return at
}

// runs reports whether a task runs on n that does not wait, or is about to.
func (r *prism) runs(n *book.NodeState) bool {
	return slices.ContainsFunc(n.Tasks, func(t *book.TaskState) bool {
		return (!t.Suspended || t.SuspendedBy == cluster.HeldByLeveling) && !slices.Contains(r.waiting, t)
	})
}
