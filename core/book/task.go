package book

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// TaskState is a task that is booked or running. Fields that loops over many tasks read are adjacent: with 10,000
// nodes, memory accesses dominate the cost of such a loop.
type TaskState struct {
	// Grant is what the task is granted now; while its memory changes, the larger amount: see Plan.Resize.
	Grant resource.Vector
	// end is when the task should end; Never is unknown.
	end        timeline.Time
	Job        *JobState
	ID         cluster.TaskID
	Running    bool // launched
	UnderSized bool // granted less than ideal memory
	Steers     bool // is its job's coordinator
	// Killing is set when a Kill decision for the task has been taken, Preempting if that decision makes room for
	// others.
	Killing, Preempting bool
	// lendsAny says that Lent or PagedOutLent is not zero: few tasks lend, and these are far away.
	lendsAny bool
	// ByPhase says that the task is granted what each phase of its forecast demands, and is resized from phase to phase.
	ByPhase bool

	inNode, inJob int32 // positions in Node.Tasks and Job.Tasks

	Node *NodeState
	// MostCPU is as that of its envelope, throughout its run: the MaxCPU of its stage if that is more than it requests,
	// and else what it requests if it was started by a policy that grants CPU as a weight; at most what its node has.
	MostCPU resource.Amount
	// Duration is the estimated run time with this grant; 0 is unknown.
	Duration time.Duration
	Booked   timeline.Time
	// Launched is when the task began to run; meaningful if Running.
	Launched timeline.Time
	// Decision is the Start decision that booked the task.
	Decision cluster.DecisionID
	// Mark is the note of a policy that preempts tasks.
	Mark Mark
	Orders
	Suspension
	Reached
	PagedOut
	Lending
}

// Reached is what a running task is known to have come to.
type Reached struct {
	// Phase is an index of the Phases of its stage, and PhaseSince is when it entered that phase, at first Launched.
	Phase      int32
	PhaseSince timeline.Time
	// Waits says that it cannot leave its first phase yet, because parents of its stage have not ended.
	Waits bool
	cluster.Holding
}

// enter records that a task entered a phase at a time.
func (r *Reached) enter(phase int32, at timeline.Time) { r.Phase, r.PhaseSince = phase, at }

// Suspension says whether holders keep a task from making progress, and for how long.
type Suspension struct {
	// Suspended says that the programs of the task make no progress.
	Suspended bool
	// SuspendedBy are its holders, and SuspendedSince is when it stopped; zero unless it is suspended.
	SuspendedBy    cluster.Holders
	SuspendedSince timeline.Time
	// SuspendedFor is how long it was suspended before, in all.
	SuspendedFor time.Duration
}

// begin suspends a task that is not suspended.
func (s *Suspension) begin(now timeline.Time, by cluster.Holders) {
	s.Suspended, s.SuspendedSince, s.SuspendedBy = true, now, by
}

// end ends a suspension.
func (s *Suspension) end(now timeline.Time) {
	s.SuspendedFor += now.Sub(s.SuspendedSince)
	s.Suspended, s.SuspendedSince, s.SuspendedBy = false, 0, 0
}

// PagedOut says how much of its memory a task does not have, bytes.
type PagedOut struct {
	// Out is how much memory of its grant has left its node, because its owner wants that while the task is paused.
	// PagedOutLent is the part others may use; all of it until page-in is ordered.
	Out, PagedOutLent resource.Amount
}

// left returns how much of a grant of memory has left the node.
func (o *PagedOut) left(grant resource.Amount) resource.Amount { return min(o.Out, grant) }

// Orders are the newest orders about a running task, by the field of what is wanted of it.
type Orders struct {
	// Hold is the newest order to stop the task or to let it go on; nil if there was none.
	Hold *Hold
	// Throttled is what bounds the task's use of rates; nil if it was never throttled. Bounded returns it while it lasts.
	Throttled *Throttled
	// Resized is the newest change of Grant while the task runs; nil if there was none.
	Resized *Resized
}

// Holds returns what the task takes of its node: its grant, or its memory alone while it lends the rest. Memory that
// has left and is lent does not count.
func (t *TaskState) Holds() resource.Vector {
	if !t.lendsAny {
		return t.Grant
	}
	holds := t.Grant.Sub(t.Lent)
	holds[resource.Memory] -= t.PagedOutLent
	return holds
}

// lend sets what others may use of the grant, and of its memory.
func (t *TaskState) lend(lent resource.Vector, memory resource.Amount) {
	t.Lent, t.PagedOutLent = lent, memory
	t.lendsAny = memory != 0 || lent != resource.Vector{}
}

// Lending says what a task does not use of its grant.
type Lending struct {
	// Leaves is how much CPU of its grant the programs of the task leave to others, millicores; Everything if they have
	// nothing to do.
	Leaves resource.Amount
	// Lent is what others may use of its grant while its programs leave it, or while it is suspended. Memory is lent
	// apart: see PagedOutLent.
	Lent resource.Vector
}

// Everything is what a task leaves whose programs have nothing to do.
const Everything = resource.Amount(math.MaxInt64)

// Idle reports whether the programs of the task have nothing to do.
func (l *Lending) Idle() bool { return l.Leaves == Everything }

// Lends reports whether others may use something of its grant, beside memory.
func (l *Lending) Lends() bool { return l.Lent != resource.Vector{} }

// lends is what others may use of the grant: all but memory while the task stands still or has nothing to do, since
// nothing but memory keeps its content; else the CPU that its programs leave.
func (t *TaskState) lends() resource.Vector {
	if t.Idle() || t.Suspended && !t.resumesSoon() {
		return t.Grant.With(resource.Memory, 0)
	}
	return resource.Vector{}.With(resource.CPU, min(t.Leaves, t.Grant[resource.CPU]))
}

// Stage returns the stage of the task.
func (t *TaskState) Stage() *cluster.Stage { return &t.Job.Stages[t.ID.Stage] }
