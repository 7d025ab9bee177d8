package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// DecisionID numbers decisions from 1 in the order in which they were taken.
type DecisionID int64

// DecisionKind says what a policy requests.
type DecisionKind uint8

const (
	Start     DecisionKind = iota + 1 // run Task on Node with Grant
	Kill                              // end Task
	Reserve                           // reserve Node for Job
	Unreserve                         // end the reservation of Node
	Wake                              // request another step At
	Wait                              // Job's next task does not start; only what explain says changes
	Throttle                          // bound what Task uses of each rate, until At; a zero Bound ends it
	// stop the programs of Task on behalf of By, until a Resume; of leveling until At, and For keeps going
	Suspend
	Resume // let the programs of Task go on, unless the memory manager of its node holds them
	Resize // change the grant of Task to Grant
	Ask    // solve the Question of this decision about Node: see book.Plan.Ask
)

var decisionNames = [...]string{"", "start", "kill", "reserve", "unreserve", "wake", "wait", "throttle", "suspend",
	"resume", "resize", "ask"}

// NumDecisionKinds is one more than the last DecisionKind.
const NumDecisionKinds = len(decisionNames)

func (k DecisionKind) String() string { return NameOf(decisionNames[:], k, "decision") }

// MarshalText implements encoding.TextMarshaler.
func (k DecisionKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *DecisionKind) UnmarshalText(text []byte) error {
	return ParseName(k, decisionNames[:], 1, text, "decision kind")
}

// Decision is an action that a policy requests, and why.
type Decision struct {
	ID   DecisionID   `json:"id"`
	Kind DecisionKind `json:"kind"`
	// Suspend: all holders from now on, except the memory manager; Resume: 0
	By Holders `json:"by,omitempty"`
	// Suspend: the memory of the task is to be paged out as far as possible; else it is to be brought back
	PageOut bool `json:"page_out,omitempty"`
	// Start, Kill, Throttle, Suspend, Resume, Resize; Reserve, Unreserve and Wait use its Job and Stage
	Task     TaskID          `json:"task,omitzero"`
	Node     NodeID          `json:"node"`
	Grant    resource.Vector `json:"grant,omitzero"`        // Start, Resize
	Duration time.Duration   `json:"duration_ns,omitempty"` // Start: estimated run time with Grant, 0 if unknown
	// Wake; Throttle: when it ends by itself; Suspend: when leveling ends its hold, 0 if it has none
	At timeline.Time `json:"at_ns,omitempty"`
	// Suspend: the task that keeps going because of leveling; zero if there is none
	For      TaskID          `json:"for,omitzero"`
	Bound    resource.Vector `json:"bound,omitzero"`    // Throttle: the most of each rate, 0 is no bound
	Envelope Envelope        `json:"envelope,omitzero"` // Start, Resize: what the node may do with the container
	// Preempt says of a Kill that the task makes room for other tasks: it runs again, and the run does not count as an
	// attempt.
	Preempt bool `json:"preempt,omitempty"`
	// ByPhase says of a Start that the task is granted what each phase of its forecast demands: Grant is that of the
	// first.
	ByPhase bool   `json:"by_phase,omitempty"`
	Reason  Reason `json:"reason"`
}
