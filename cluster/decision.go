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
)

var decisionNames = [...]string{"", "start", "kill", "reserve", "unreserve", "wake", "wait", "throttle"}

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

// Decision is an action that a policy requests, and why.
type Decision struct {
	ID       DecisionID      `json:"id"`
	Kind     DecisionKind    `json:"kind"`
	Task     TaskID          `json:"task,omitzero"` // Start, Kill, Throttle; Reserve, Unreserve and Wait use its Job and Stage
	Node     NodeID          `json:"node"`
	Grant    resource.Vector `json:"grant,omitzero"`
	Duration time.Duration   `json:"duration_ns,omitempty"` // Start: estimated run time with Grant, 0 if unknown
	At       timeline.Time   `json:"at_ns,omitempty"`       // Wake; Throttle: when it ends by itself
	Bound    resource.Vector `json:"bound,omitzero"`        // Throttle: the most of each rate, 0 is no bound
	Envelope Envelope        `json:"envelope,omitzero"`     // Start: what the node's memory manager may do with the container
	// Preempt says of a Kill that the task makes room for other tasks: it runs again, and the run does not count as an
	// attempt.
	Preempt bool   `json:"preempt,omitempty"`
	Reason  Reason `json:"reason"`
}
