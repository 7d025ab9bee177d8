package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Envelope is what a node may do with a container without asking the engine: its memory manager may resize and stop
// it, and it may use more CPU than it is granted. It is part of the Start decision, so that simulated and real nodes
// work with the same envelope.
//
// Invariant: Min <= Max, and Min == Max for a REGULAR container.
type Envelope struct {
	Class Class `json:"class"`
	// Min and Max bound the container's limit, in bytes. Min is the granted memory, with which the container starts.
	Min resource.Amount `json:"min_memory_bytes"`
	Max resource.Amount `json:"max_memory_bytes"`
	// Rank orders the containers of a node: the lowest rank is served first. Containers of one job share a rank;
	// containers of different jobs do not.
	Rank int `json:"rank"`
	// Duration is how long a FLEX container is expected to run with enough memory; 0 is unknown.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// HeartbeatTimeout is how long the programs may be silent before their peers consider them dead; 0 is no limit. It
	// applies whoever stops a container: the memory manager (FLEX only), a throttle or a pause.
	HeartbeatTimeout time.Duration `json:"heartbeat_timeout_ns,omitempty"`
	// MostCPU is the most CPU that the container may use while other containers leave it, in millicores, if that is more
	// than it is granted: then its grant of CPU is its weight alone. Otherwise, and if MostCPU is 0, its grant is its
	// limit, too.
	MostCPU resource.Amount `json:"most_cpu_millicores,omitempty"`
}

// Envelope returns the envelope of a container of a stage that is granted the given bytes, on a node with the given
// memory. JobIDs ascend with submission, so that the earliest job has the lowest rank (Pufferfish, section 4.3.3:
// earliest job first).
func (j *Job) Envelope(stage int, granted, node resource.Amount) Envelope {
	s := &j.Stages[stage]
	e := Envelope{Min: granted, Max: granted, Rank: int(j.ID), HeartbeatTimeout: s.HeartbeatTimeout}
	if !j.Resizable(stage) {
		return e
	}
	most := s.MaxMemory
	if most == 0 || most > node {
		most = node
	}
	e.Class, e.Max, e.Duration = Flex, max(granted, most), s.Duration
	return e
}
