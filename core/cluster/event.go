package cluster

import (
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// EventKind says what happened.
type EventKind uint8

const (
	NodeJoined   EventKind = iota + 1 // NewNode
	NodeLeft                          // Node; its tasks end as Lost
	JobSubmitted                      // NewJob
	JobCancelled                      // Job
	Heartbeat                         // Node reports and takes new work now (only where the driver uses heartbeats)
	DecisionDone                      // Decision was carried out; for a Start, Task is running from now on
	// Decision could not be carried out, Detail says why; for a Start, Task never ran
	DecisionFailed
	TaskEnded   // Task, Outcome
	TaskAdopted // Task, Node, Grant, Found: found running when the driver took inventory
	Synced      // the inventory is complete; the engine takes no decisions before
	Woken       // the time of a Wake decision has come
	NodeMemory  // Node, Held: what its containers hold together has changed
	NodePaused  // Node can start nothing for now, Detail says why; its tasks keep running
	NodeResumed // Node may be able to start tasks again
	// Decision was not carried out, because a later decision sets the same field of what is wanted of Task
	DecisionSuperseded
	// Task has entered Phase of its stage's forecast, or entered it at another time than was known; Found says when
	TaskPhase
	TaskSuspended // the programs of Task make no progress from now on; By are all their holders
	TaskResumed   // the programs of Task, which stood still, run again
	// NewJob: the job of that ID, none of whose tasks has been started, with other forecasts
	JobRevised
	// Node, Found: what the node gives of each resource that is pressed, 0 of the other resources
	NodePressed
	// Job, or only Task if that has a job: no task of it starts, and its running tasks are suspended; Found.PageOut,
	// which an event for what is paused already can change
	JobPaused
	JobResumed // Job, or only Task if that has a job: the end of the JobPaused of the same
	Answered   // Node, Answer: to an Ask, Decision
	// Task, Found: how much of its memory has left (Out), and why not all of it (Stays)
	TaskPagedOut
	QuotasSet // Found: the quotas of users and queues from now on
	NodeKept  // Node was found reserved for the stage of Task
	// Job, Found: how the open job grows, that it has more stages, or more tasks in stages, or closes
	JobGrew
	// as Synced, and nothing has changed since the last decisions: the inventory is that of another engine, whose newest
	// was Decision
	Continued
	NodeLeftover // Node, Held: how much of its memory outlives the containers that have used it
	// Task, Found: whether its programs have nothing to do from now on (Idle), or how much CPU they leave (Leaves); it
	// lends its cores, or that much, until the next such event
	TaskIdle
	TaskHolds // Task, Held: the memory that its programs hold now, noticeably more or less than was last reported
	// Node, Job, Found: whether Node keeps something of Job, so that a task of it starts sooner there (Keeps), and whether
	// what Job ran there has failed (Fails)
	NodeSuits
	NodePagedOut // Node, Held: how much memory of its programs is in swap, if that is much of it
)

var eventNames = [...]string{"", "node-joined", "node-left", "job-submitted", "job-cancelled", "heartbeat",
	"decision-done", "decision-failed", "task-ended", "task-adopted", "synced", "woken",
	"node-memory", "node-paused", "node-resumed", "decision-superseded",
	"task-phase", "task-suspended", "task-resumed", "job-revised",
	"node-pressed",
	"job-paused", "job-resumed",
	"answered", "task-paged-out", "quotas-set", "node-reserved", "job-grew", "continued", "node-leftover", "task-idle",
	"task-holds", "node-suits", "node-paged-out"}

// NumEventKinds and NumOutcomes are one more than the last of each.
const (
	NumEventKinds = len(eventNames)
	NumOutcomes   = len(outcomeNames)
)

func (k EventKind) String() string { return NameOf(eventNames[:], k, "event") }

// MarshalText implements encoding.TextMarshaler.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *EventKind) UnmarshalText(text []byte) error {
	return ParseName(k, eventNames[:], 1, text, "event kind")
}

// Outcome is how a task ended.
type Outcome uint8

const (
	Succeeded   Outcome = iota + 1
	Failed              // ended with a non-zero exit code or by a signal that bellows did not send
	OutOfMemory         // the kernel killed it for lack of memory
	Killed              // by a Kill decision or by its owner
	Lost                // its node left, or its end was not observed
	// a Kill decision that makes room for other tasks: it runs again, and the run does not count as an attempt
	Preempted
)

var outcomeNames = [...]string{"", "succeeded", "failed", "out-of-memory", "killed", "lost", "preempted"}

func (o Outcome) String() string { return NameOf(outcomeNames[:], o, "outcome") }

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Outcome) UnmarshalText(text []byte) error {
	return ParseName(o, outcomeNames[:], 0, text, "outcome")
}

// Event is something that happened. Each EventKind says which fields are meaningful. There are many events, so fields
// that few of them have are pointers.
type Event struct {
	Kind     EventKind  `json:"kind"`
	Node     NodeID     `json:"node,omitempty"`
	Job      JobID      `json:"job,omitempty"`
	Task     TaskID     `json:"task,omitzero"`
	Decision DecisionID `json:"decision,omitempty"`
	Outcome  Outcome    `json:"outcome,omitempty"`
	// TaskSuspended; TaskAdopted, between a machine and its driver: all holders. The engine takes those of a TaskAdopted
	// from Progress
	By Holders `json:"by,omitempty"`
	// DecisionFailed: the machine lacked a resource of its own, not of the job
	Short    bool            `json:"short,omitempty"`
	Phase    int32           `json:"phase,omitempty"` // TaskPhase: an index of the phases of its stage
	Grant    resource.Vector `json:"grant,omitzero"`
	Launched timeline.Time   `json:"launched_ns,omitempty"` // TaskAdopted: when it started running
	// TaskAdopted, NodePressed, NodeSuits, TaskPhase, TaskPagedOut, TaskIdle, JobPaused, QuotasSet, JobGrew; nil is the
	// zero Condition
	Found *Condition `json:"found,omitempty"`
	// NodeMemory: the sum of the limits of its containers, without what they never touched and a container that is to
	// start gets at once; NodeLeftover, TaskHolds, NodePagedOut; bytes
	Held   resource.Amount `json:"held_bytes,omitempty"`
	Detail string          `json:"detail,omitempty"`
	// number of the run of Task, with drivers that run containers; see ContainerID
	Run     int     `json:"run,omitempty"`
	Exit    *Exit   `json:"exit,omitempty"` // TaskEnded, with drivers that run containers
	NewNode *Node   `json:"new_node,omitempty"`
	NewJob  *Job    `json:"new_job,omitempty"`
	Answer  *Answer `json:"answer,omitempty"`
}

// Condition returns the condition in which a task, a node or the cluster was found.
func (e *Event) Condition() Condition {
	if e.Found == nil {
		return Condition{}
	}
	return *e.Found
}

// SetCondition sets the condition in which a task or a node was found.
func (e *Event) SetCondition(c Condition) {
	e.Found = nil
	if c != (Condition{}) {
		e.Found = &c
	}
}

// PressedBelow is a share of the speed of a disk or a network. A node that gives less than that of what it could, while
// more is demanded, is pressed: it gives "substantially" less (Prophet, section III.B). Real nodes and simulated ones
// report by it. docs/decisions/0040-pressure.md has what it was chosen by.
const PressedBelow = 0.5

// Condition is how a running task, a node or the cluster was found.
type Condition struct {
	// Bound is what throttles the task, zero if nothing does; or what the node gives of each resource that is pressed.
	Bound   resource.Vector `json:"bound,omitzero"`
	Until   timeline.Time   `json:"until_ns,omitempty"` // when the throttle ends by itself, or has ended
	HeldBy  Holders         `json:"held_by,omitempty"`  // the holders of the task, without the memory manager
	ByPhase bool            `json:"by_phase,omitempty"` // the task is granted resources by phase
	// the grant before the task was resized for the last time, zero if it never was
	Was     resource.Vector `json:"was,omitzero"`
	Why     Reason          `json:"why,omitzero"`         // why it was resized for the last time
	Resized timeline.Time   `json:"resized_ns,omitempty"` // when it was resized for the last time
	// HeldUntil is when leveling ends its hold, and HeldFor is the task that keeps going because of it; zero without
	// leveling.
	HeldUntil timeline.Time `json:"held_until_ns,omitempty"`
	HeldFor   TaskID        `json:"held_for,omitzero"`
	// HeldSince is when leveling began to hold the task, and HeldWhy why; zero unless another engine knew. HoldFailed
	// says that the newest order to hold the task, or to let it go on, failed.
	HeldSince  timeline.Time   `json:"held_since_ns,omitempty"`
	HeldWhy    Reason          `json:"held_why,omitzero"`
	HoldFailed bool            `json:"hold_failed,omitempty"`
	PageOut    bool            `json:"page_out,omitempty"`  // its memory is to be paged out while its owner holds it
	Out        resource.Amount `json:"out_bytes,omitempty"` // memory of its grant that has left
	Stays      string          `json:"stays,omitempty"`     // one clause on why not all of it has left
	Idle       bool            `json:"idle,omitempty"`      // its programs have nothing to do
	// Leaves is the CPU of its grant that its programs leave to others though they have something to do, millicores.
	Leaves resource.Amount `json:"leaves_millicores,omitempty"`
	Keeps  bool            `json:"keeps,omitempty"` // the node keeps something of the job
	Fails  bool            `json:"fails,omitempty"` // what the job ran on the node has failed
	// how far the task had come; nil is unknown. Of a TaskPhase only PhaseSince counts, and nil is now.
	Progress *Progress `json:"progress,omitempty"`
	// MostCPU is as in the envelope of the task.
	MostCPU resource.Amount `json:"most_cpu_millicores,omitempty"`
	Quotas  *Quotas         `json:"quotas,omitempty"`
	Growth  *Growth         `json:"growth,omitempty"`
	// Ended is when the task of a TaskEnded before Synced had ended, from which it pauses before its next attempt;
	// 0: no pause is left.
	Ended timeline.Time `json:"ended_ns,omitempty"`
	// Booked is when the task was booked, if it is still being started; else 0.
	Booked timeline.Time `json:"booked_ns,omitempty"`
}
