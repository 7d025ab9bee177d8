package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Progress is how far a running task has come: what an engine knows of the task in addition to its start. A driver
// stores it and hands it to the next engine.
type Progress struct {
	// Phase is the phase of its forecast that was last reported. PhaseSince is when the task entered it or, if it has
	// gone on slower or faster than forecast since, when it would have had to enter it to be, at its usual pace, where
	// it is.
	Phase      int32         `json:"phase,omitempty"`
	PhaseSince timeline.Time `json:"phase_since_ns,omitempty"`
	// SuspendedBy are its holders, 0 if it runs, and SuspendedSince is when it stopped. SuspendedFor is how long it was
	// suspended before, in all.
	SuspendedBy    Holders       `json:"still_by,omitempty"`
	SuspendedSince timeline.Time `json:"still_since_ns,omitempty"`
	SuspendedFor   time.Duration `json:"stood_ns,omitempty"`
	// Ends is when it would end if it went on at its usual pace from Since on; a throttle, or that it stands still, delays
	// that. Ends is 0 if its end is unknown. Since is 0 if the task is not throttled.
	Since timeline.Time `json:"since_ns,omitempty"`
	Ends  timeline.Time `json:"ends_ns,omitempty"`
	Holding
}

// Holding is what is known of the memory that a running task holds, and how its reservation was renewed.
type Holding struct {
	// Held is what its programs held when that was last reported, in memory and in swap, bytes; 0 is unknown.
	Held resource.Amount `json:"held_bytes,omitempty"`
	// Renewed is when its reservation of memory was last renewed, 0 if it never was, and RenewedWhy is why. Raised says
	// that it was raised: the task needs more than was expected, and what is expected of the rest of its run is not
	// believed any more.
	Renewed    timeline.Time `json:"renewed_ns,omitempty"`
	RenewedWhy Reason        `json:"renewed_why,omitzero"`
	Raised     bool          `json:"raised,omitempty"`
}
