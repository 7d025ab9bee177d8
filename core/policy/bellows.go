package policy

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/policy/ecs"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// bellows is one policy of the parts of several papers. Each part is a stage of every decision, and each can be
// switched off. docs/policy.md says which part yields to which, and what was measured.
//
//   - order: which job comes next. Weighted dominant shares (DRF), in queues; past its deadline a job comes first, and
//     for the first job that has waited for long a node is kept.
//   - size: what its task is granted. Its need, or less memory if it then ends no later than its job (YARN-ME).
//   - place: which of the first jobs starts, and where. Alignment and remaining work (Tetris), and over-allocation and
//     fragmentation of what is forecast (Prophet). A FLEX container starts where its memory is available (Pufferfish).
//   - renew: what is reserved of memory for running tasks. What the rest of their runs needs, where that is learned.
//   - level: what running tasks are granted. CPU by phase, as a weight, and stops ahead of a collision (ECS).
//   - back off: tasks on a node under pressure take turns (Prophet).
type bellows struct {
	order lineup
	underSizing
	ends    sum // of jobs, which size and reservations need
	elastic bool
	foresight
	foresees bool
	window   int     // how many jobs compete for a place
	longest  bool    // the longest job comes first if it would end last
	part     float64 // of its CPU that must be free where a program starts of whose use of CPU nothing is known
	level    *ecs.Leveler
	backoff  backoff

	// The rest belongs to one decision.
	demand  offering
	gap     gap
	spans   []timeline.Span
	options []option
	ranks   []rank
}

func newBellows(s *contract.Settings) Policy {
	b := &bellows{foresight: foresight{eta: 0.3, kinds: peakKinds, unknown: time.Minute},
		underSizing: underSizing{granularity: 100 * resource.MB, diskShare: 1, interval: time.Second}}
	b.order.declare(s, b.leastOf)
	b.elastic = s.Declare("size", "elastic",
		"what a task is granted. elastic: less memory than it needs where that is not free and the task still ends no "+
			"later than its job; ideal: never less").OneOf("elastic", "ideal") == "elastic"
	place := s.Declare("place", "forecast",
		"which of the jobs that compete starts, and where. forecast: by alignment, remaining work and what is forecast "+
			"of disks and networks; tetris: without forecasts; first: the first job in order, on the first "+
			"node").OneOf("forecast", "tetris", "first")
	b.foresees = place == "forecast"
	b.window = s.Declare("window", "16",
		"how many jobs, the first in order whose tasks fit, compete for a place").Count(1 << 20)
	if place == "first" {
		b.window = 0
	}
	b.longest = s.Declare("longest", "on",
		"on: of the jobs that compete, one that would end last even if it started now starts first, unless more jobs are to "+
			"be expected; off: less remaining work comes first").OneOf("on", "off") == "on"
	b.part = s.Declare("part", "0.5",
		"from 0 to 1: the part of its core that must be free where a program starts of whose use of CPU nothing is known "+
			"or stated: it is granted what is free of it, as a weight; 1: all of it").Share()
	levels := s.Declare("level", "on",
		"on: a task is granted the CPU that its phase demands, as a weight, and tasks that have time stop ahead of a "+
			"collision; off: a task is granted the CPU that it needs").OneOf("on", "off") == "on"
	b.level = ecs.NewLeveler(map[string]string{"ecs.cpu": "weight", "ecs.short": "false", "ecs.states": "40000"})
	if !levels {
		b.level = ecs.NewLeveler(map[string]string{"ecs.overcommit": "false", "ecs.leveling": "false"})
	}
	b.level.Renews = s.Declare("renew", "on",
		"on: where what is reserved of memory is learned, it follows what the rest of a run needs, and what the task "+
			"holds; off: it stays as at its start").OneOf("on", "off") == "on"
	b.declareBackoff(s)
	b.dropCaches()
	return b
}

func (b *bellows) declareBackoff(s *contract.Settings) {
	how := s.Declare("backoff", "turns",
		"what becomes of the tasks on a node that gives much less of a resource than it could. turns: some go on and the "+
			"others wait for their turn; share: all get bounds that add up to what the node has; off: "+
			"nothing").OneOf("turns", "share", "off")
	b.backoff.turns = how == "turns"
	b.backoff.told = true
	if how != "off" {
		b.backoff.lasts, _ = time.ParseDuration(usualBackoff)
	}
}

func (*bellows) Name() string { return "bellows" }

// Traits sets Quotas because a task may be granted more than its least need, so that an end changes what starts
// elsewhere.
func (b *bellows) Traits() Traits {
	levels := b.level.Levels()
	return Traits{UnderSizes: b.elastic, Deadlines: true, LooksAhead: levels || b.foresees || b.backoff.lasts > 0,
		ByPhase: levels, Weighs: levels, Stops: levels, Renews: b.level.Renews, Quotas: true, Admit: b.order.admit,
		Why: b.why, DropCaches: b.dropCaches}
}

func (b *bellows) dropCaches() {
	b.order.drop()
	b.underSizing.best = nil
	b.ends.DropCaches()
	b.foresight.forget()
	b.level.DropCaches()
}

func (b *bellows) Decide(now timeline.Time, p *book.Plan) {
	b.order.follow(now, p)                           // order
	b.renew(now, p, &b.ends, b.order.first() != nil) // size
	b.backoff.relieve(now, p, &b.ahead)              // back off
	b.level.Begin(now, p)                            // level: what runs
	b.startAll(now, p)                               // order, size, place
	b.level.End(now, p)                              // level: what will collide
	wakeForDeadlines(now, p)
}

// startAll offers every node that may be able to start something.
func (b *bellows) startAll(now timeline.Time, p *book.Plan) {
	if p.Running == 0 && b.order.first() != nil {
		for n := range hopeless(p) {
			p.Unreserve(n, cluster.Because(cluster.ReservationHopeless))
		}
	}
	offer := func(n *book.NodeState) {
		for b.offer(now, p, n) {
		}
	}
	b.demand.offerAll(p, offer, func() {
		least := leastNeed(p, func(j *book.JobState, _ int) resource.Vector { return b.leastOf(j) })
		for n, ok := p.NextRoom(least, 0); ok; n, ok = p.NextRoom(least, n.ID+1) {
			offer(n)
		}
		for n, ok := p.NextReservedRoom(least, 0); ok; n, ok = p.NextReservedRoom(least, n.ID+1) {
			offer(n)
		}
	})
}

// offer starts one task of the jobs that come next: on n, or on a node that suits the task better. It returns false if
// none starts on n.
func (b *bellows) offer(now timeline.Time, p *book.Plan, n *book.NodeState) bool {
	if !p.Takes(n) {
		return false
	}
	until := timeline.Never
	if n.ReservedFor != nil {
		if !n.ReservationNeeded() {
			p.Unreserve(n, cluster.Because(cluster.ReservationNotNeeded))
		} else if g, _, ok := b.size(now, p.Snapshot, n, n.ReservedFor, n.ReservedStage); ok {
			b.start(p, n, option{n.ReservedFor, n.ReservedStage, g})
			return true
		} else if until, ok = b.keptUntil(now, p, n); !ok {
			return false
		}
	} else if b.keep(now, p, n) {
		return true
	}
	b.gather(now, p, n, until)
	for len(b.options) > 0 {
		at := b.choose(now, p, n)
		o := b.options[at]
		if b.reclaims(p, n, &o) {
			b.options = slices.Delete(b.options, at, at+1)
			continue
		}
		if n.ReservedFor == nil {
			if n, o = b.where(now, p, n, o); b.yields(now, p, n, o.job) {
				return true
			}
		}
		b.start(p, n, o)
		return true
	}
	return false
}

// gather finds the jobs that compete for a place on n, where their tasks must end by a time.
func (b *bellows) gather(now timeline.Time, p *book.Plan, n *book.NodeState, until timeline.Time) {
	b.options = b.options[:0]
	b.order.each(n.Free, func(j *book.JobState) bool {
		if o, why, ok := b.suits(now, p, n, j, until); ok {
			b.options = append(b.options, o)
		} else if why.Code != 0 {
			stage, _ := j.NextStage()
			p.Wait(j, stage, n.ID, why)
		}
		return len(b.options) < max(1, b.window) && !(len(b.options) > 0 && b.order.urgent(b.options[0].job))
	})
}

// start starts the next task of a job as an option says.
func (b *bellows) start(p *book.Plan, n *book.NodeState, o option) {
	j := o.job
	b.level.Start(p, j, o.stage, n, o.grant, o.byPhase, o.why)
	b.order.update(j)
	if n.ReservedFor == j && n.ReservedStage == o.stage {
		p.Unreserve(n, cluster.Because(cluster.ReservationUsed))
	}
	for i := 0; i < len(p.Nodes) && j.Reservations > 0; i++ {
		if kept := p.Nodes[i]; kept.ReservedFor == j && kept.ReservedStage == o.stage {
			p.Unreserve(kept, cluster.Because(cluster.ReservationNotNeeded))
		}
	}
}

// why says why the next task of a job does not start where there is room for the least that it could be granted.
func (b *bellows) why(now timeline.Time, s *book.Snapshot, j *book.JobState, stage int) (cluster.Reason, bool) {
	if b.order.tree.Home(j.Job) == nil {
		return cluster.Because(cluster.NoSuchQueue), true
	}
	need, _ := b.level.Grant(j, stage)
	need = b.partOf(need, &j.Stages[stage])
	if _, room := s.FirstOpen(need, 0); !room {
		if n, ok := s.FirstOpen(b.least(j, stage), 0); ok {
			_, why, ok := b.size(now, s, n, j, stage)
			return why, !ok
		}
		return s.NoRoom(need)
	}
	n, room := s.MostAvailable(need)
	if !room {
		return cluster.Reason{}, false
	}
	_, why, ok := b.size(now, s, n, j, stage)
	if kept, some := s.FirstReserved(need, 0); !ok && some {
		switch {
		case kept.ReservedFor != j:
			return cluster.BecauseNodeReserved(kept.ReservedFor.ID), true
		case kept.Available() > n.Available():
			_, why, ok = b.size(now, s, kept, j, stage)
		}
	}
	return why, !ok
}
