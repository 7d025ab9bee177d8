package ecs

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/leveling"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Leveler is the part of a policy that grants running tasks what each phase demands, and levels their nodes. When a
// task enters another phase, its CPU is resized, even beyond what its node has. If the forecasts of the tasks of a
// node exceed its cores at some time, and fluctuate enough, the policy asks which tasks should stop when, and carries
// out the answer. Which tasks start, and where, is up to the policy: see Grant.
type Leveler struct {
	// Renews says that what is reserved of memory for running tasks is renewed, where it is learned: see renewAll.
	Renews bool

	detector          leveling.Detector
	levels            bool
	suspension, delay float64 // α and β, of a core or of a node
	eta               float64
	perCore           bool
	interval          time.Duration // the shortest
	sets, states      int

	phased phased
	watch  watch
	demand demands
	float  float
	line   []inLine      // of the node that was looked at last
	now    timeline.Time // of this decision
	free   bool          // memory leaves and comes back at once and at no cost
}

// NewLeveler returns a Leveler with the default settings of ecs, except for the given ones: names as in "ecs.cpu" and
// values. It panics if one of them is wrong.
func NewLeveler(settings map[string]string) *Leveler {
	s := contract.Settings{Policy: "ecs", Values: settings}
	e := &Leveler{}
	if e.declare(&s); s.Err != nil {
		panic(s.Err)
	}
	return e
}

func (e *Leveler) declare(s *contract.Settings) {
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
	e.phased.weighs = weighs && !e.phased.off
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
}

// Begin does what is due in a decision before tasks are started: it resizes tasks that have entered another phase,
// and stops and resumes tasks as the newest solutions say.
func (e *Leveler) Begin(now timeline.Time, p *book.Plan) {
	e.now = now
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
		if e.Renews && e.renewAll(now, p, n) {
			e.watch.change(n)
		}
	}
}

// End asks about the nodes that have changed in a decision, and requests the step in which something is due.
func (e *Leveler) End(now timeline.Time, p *book.Plan) {
	e.phased.watchStarted(&e.watch)
	for _, n := range e.watch.nodes {
		if e.levels && e.watch.changed(n) {
			e.ask(now, p, n)
		}
		e.watch.plan(n, e.next(now, p.Snapshot, n))
	}
	e.watch.wake(now, p)
}

// Levels reports whether it stops tasks ahead of a collision.
func (e *Leveler) Levels() bool { return e.levels }

// DropCaches discards what can be computed again from the plan.
func (e *Leveler) DropCaches() { e.watch = watch{} }

// next returns the earliest time after now at which a task of n enters a phase in which it is granted another amount,
// or at which it is to stop; Never if there is none.
func (e *Leveler) next(now timeline.Time, s *book.Snapshot, n *book.NodeState) timeline.Time {
	at := e.phased.next(now, s, n)
	if e.phased.memory {
		at = min(at, e.nextForMemory(now, s, n))
	}
	if e.Renews {
		at = min(at, e.nextRenewal(now, n))
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

// Grant returns what the next task of a stage is granted when it starts, and why.
func (e *Leveler) Grant(j *book.JobState, stage int) (need resource.Vector, why cluster.Reason) {
	need, why, _ = e.phased.grant(j, stage)
	return need, why
}

// Start starts the next task of a stage with a grant. By phase, the Leveler resizes the task from then on.
func (e *Leveler) Start(p *book.Plan, j *book.JobState, stage int, n *book.NodeState, grant resource.Vector,
	byPhase bool, why cluster.Reason) {
	e.phased.start(p, j, stage, n, grant, byPhase, why)
}
