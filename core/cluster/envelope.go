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
	// Requeue says that the memory manager may end the container where no memory can be had otherwise, because its task
	// runs again: see Job.MayRequeue. FLEX only.
	Requeue bool `json:"requeue,omitempty"`
	// Need is the most memory that the container is known to need, bytes; 0 is unknown, and counts as Max. FLEX only.
	Need resource.Amount `json:"need_bytes,omitempty"`
	// Owner is the user whose container it is; it may be empty for a REGULAR one. Quota is the most memory that the
	// containers of the owner may grow to together on the node, bytes; 0 is no bound. Each has its Min in any case.
	Owner string          `json:"owner,omitempty"`
	Quota resource.Amount `json:"quota_bytes,omitempty"`
}

// Within returns e for a node on which the containers of its owner may grow to the given bytes together.
func (e Envelope) Within(owner string, quota resource.Amount) Envelope {
	e.Owner, e.Quota, e.Max = owner, quota, max(e.Min, min(e.Max, quota))
	return e
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
	e.Class, e.Owner, e.Max, e.Duration = Flex, j.Owner, max(granted, most), s.Duration
	e.Requeue = j.MayRequeue(stage)
	if s.Reserved != nil && s.Reserved.Known() {
		e.Need = granted
	}
	return e
}

// MayRequeue reports whether a task of a stage may be ended for the memory that it holds, and run again: one of several
// tasks, or of a job that may fail and run again, unless none of its programs may start twice. A job of one task that
// runs once may if Requeue says so.
func (j *Job) MayRequeue(stage int) bool {
	return !j.AtMostOnce && !j.Drives && (j.Requeue || j.MaxAttempts > 1 || j.Stages[stage].Tasks > 1)
}
