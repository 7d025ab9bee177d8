package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// DecisionID numbers decisions from 1 in the order in which they were taken.
type DecisionID int64

// DecisionKind says what a policy asks for.
type DecisionKind uint8

const (
	Start     DecisionKind = iota + 1 // run Task on Node with Grant
	Kill                              // end Task
	Reserve                           // keep Node for Job
	Unreserve                         // give Node back
	Wake                              // call again At
	Wait                              // Job's next task does not start; nothing changes but what explain says
)

var decisionNames = [...]string{"", "start", "kill", "reserve", "unreserve", "wake", "wait"}

func (k DecisionKind) String() string {
	if int(k) < len(decisionNames) {
		return decisionNames[k]
	}
	return fmt.Sprintf("decision(%d)", uint8(k))
}

// MarshalText implements encoding.TextMarshaler.
func (k DecisionKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *DecisionKind) UnmarshalText(text []byte) error {
	i := slices.Index(decisionNames[:], string(text))
	if i < 1 {
		return fmt.Errorf("decision kind %q: unknown", text)
	}
	*k = DecisionKind(i)
	return nil
}

// Decision is what a policy wants to happen, and why.
type Decision struct {
	ID       DecisionID      `json:"id"`
	Kind     DecisionKind    `json:"kind"`
	Task     TaskID          `json:"task,omitzero"` // Start, Kill; of Reserve, Unreserve and Wait the Job and Stage
	Node     NodeID          `json:"node"`
	Grant    resource.Vector `json:"grant,omitzero"`
	Duration time.Duration   `json:"duration_ns,omitempty"` // Start: estimated run time with Grant, 0 if unknown
	At       timeline.Time   `json:"at_ns,omitempty"`       // Wake
	Envelope Envelope        `json:"envelope,omitzero"`     // Start: what the node's memory manager may do with the container
	// Preempt says of a Kill that the task gives its room to others: it runs again, and the run is no attempt.
	Preempt bool   `json:"preempt,omitempty"`
	Reason  Reason `json:"reason"`
}
