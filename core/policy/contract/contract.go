// Package contract says what a policy is: the interface that the engine calls, what callers must know about a policy,
// and the settings that users may change.
package contract

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Policy decides what should change now. Decide neither blocks nor reads a clock, draws random numbers, or keeps p: the
// same now and the same p give the same decisions with every driver. A policy must be able to recompute from p
// whatever it caches.
type Policy interface {
	Name() string
	Traits() Traits
	Decide(now timeline.Time, p *book.Plan)
}

// Traits are what callers must know about a policy. They never change. The zero Traits describe a policy that starts
// tasks only with their ideal memory, as room permits, can run every job that fits on a node, and caches nothing.
type Traits struct {
	// UnderSizes: it may start tasks with less than their ideal memory.
	UnderSizes bool
	// Resizes: it may give containers sizes that neither the stage nor its profile allows.
	Resizes bool
	// Together: it starts all tasks of a stage in one step where the stage says so.
	Together bool
	// Deadlines: a job that has not started by its deadline comes before others.
	Deadlines bool
	// LooksAhead: it decides by forecasts, and wants to know how tasks come along: which phase they have reached, and when
	// they stand still.
	LooksAhead bool
	// ByPhase: it may grant tasks what each phase of their forecast demands, instead of their ideal need.
	ByPhase bool
	// Weighs: what it grants of CPU is the weight of a task and not its limit. The task may use what the others of its
	// node leave, up to what its stage requests: see book.TaskState.
	Weighs bool
	// Stops: it may stop running tasks for a while: see book.Plan.SuspendUntil.
	Stops bool
	// FreePageOut: it counts on memory that leaves and comes back at once and at no cost, as only a simulator can have it.
	FreePageOut bool
	// Renews: it renews reservations of memory that are learned while tasks run, and wants to know what these hold: see
	// cluster.TaskHolds.
	Renews bool
	// Quotas: something other than room on a node, such as a quota, limits what may run. The end of a task can
	// therefore let another task start on a different node that had room all the time.
	Quotas bool
	// Drives: it serves jobs that start their own tasks, and asks them for executors: see cluster.Demand.
	Drives bool
	// Admit returns an error that says why the policy can never run a job; nil admits every job.
	Admit func(s *book.Snapshot, j *cluster.Job) error
	// Why says why a job waits, if the policy knows more than that other jobs come first or that no node has room; nil if
	// it does not.
	Why book.Why
	// Divisions is how often the policy has divided executors among jobs anew; nil if it divides none.
	Divisions func() int64
	// DropCaches discards everything that can be recomputed from the plan, which changes no decision; nil if nothing is
	// cached.
	DropCaches func()
}
