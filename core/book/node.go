package book

import (
	"math"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// NodeState is a node as the engine knows it. Policies read it and never write to it.
type NodeState struct {
	cluster.Node
	Gone bool // left the cluster; it has no tasks any more

	// Free is what may be granted: Room less what Tasks hold and less Leftover, or nothing while the node is paused or
	// has as many tasks as it may have. Of an unknown kind, Unbounded stays Unbounded. Invariant: no component is
	// negative.
	Free resource.Vector
	// Paused says that the node can start nothing for now; its tasks keep running. Doubtful says that the node was
	// paused, and no task has been launched on it since.
	Paused, Doubtful bool
	// Pressed is what the node gives of each resource that is under pressure, as its driver last reported: tasks demand
	// more of it than the node has, and the node gives well below its capacity. 0 for a resource that is not pressed.
	Pressed resource.Vector
	// Tasks are booked or running here, in no particular order.
	Tasks []*TaskState
	// UnderSizedDisk is the disk bandwidth (bytes per second) promised to the under-sized tasks on the node.
	UnderSizedDisk resource.Amount
	// Held is what the containers of the node hold, bytes, as the driver last reported it: the sum of their limits,
	// without what is lent to them and they never touched, which a container that is to start gets at once. It exceeds
	// the grants when FLEX containers have grown. 0 until the driver reports.
	Held resource.Amount

	// Leftover is memory that outlives the containers that have used it, bytes, as the driver last reported it: files in
	// memory, and segments that programs shared.
	Leftover resource.Amount
	// Out is memory of programs on the node that must come back from swap before they work as usual, bytes, as the driver
	// last reported it. It bounds nothing: a policy can prefer other nodes.
	Out resource.Amount

	// ReservedFor is the only job that may start regular work here, nil if none; ReservedStage is the stage for which it
	// is reserved.
	ReservedFor   *JobState
	ReservedStage int
	// KeptUntil is until when a policy keeps n reserved though nothing runs there, 0 if it does not: see Plan.KeepUntil.
	KeptUntil timeline.Time

	// Version changes whenever Tasks, the launch, the phase, the stillness or the throttle of a task, the reservation,
	// Pressed, Held or Leftover changes. A policy can cache what it computed for a node until then.
	Version uint64

	// Asked is the newest question about the node, nil if there was none. Leveled is the newest answer that was not
	// stale when it came; the node may have changed since. Neither changes Version.
	Asked   *Asked
	Leveled *cluster.Answer

	// LastHeartbeat is the time of the newest Heartbeat event. Meaningful if the snapshot's Heartbeats.Every is not 0.
	LastHeartbeat timeline.Time

	booked resource.Amount // memory granted to booked tasks that are not running yet, bytes
	ended  endedNow
	most   int // the most tasks that it may have; 0 is any number
	// tasks started since LastHeartbeat; meaningful in the step of the heartbeat, in which alone the node takes tasks
	started int
	// Room less what Tasks hold, and less Free: not zero if the node is paused, full or overdrawn, or has a Leftover
	withheld resource.Vector
	unfiled  bool // the snapshot's indexes lack its newest version
}

// ReservedNeed is the need of the stage for which n is reserved. n must be reserved.
func (n *NodeState) ReservedNeed() resource.Vector {
	return n.ReservedFor.Stages[n.ReservedStage].Ideal
}

// ReservationNeeded reports whether the job that reserved n would start its next task from the reserved stage. n must
// be reserved.
func (n *NodeState) ReservationNeeded() bool {
	stage, ok := n.ReservedFor.NextStage()
	return ok && stage == n.ReservedStage
}

// Unused is Room less what Tasks hold, even while the node is paused or full. A component is negative while
// the node is Overdrawn.
func (n *NodeState) Unused() resource.Vector { return n.Free.Add(n.withheld) }

// Spare is Unused less Leftover: what may be granted, now or once tasks have ended.
func (n *NodeState) Spare() resource.Vector {
	spare := n.Unused()
	spare[resource.Memory] -= n.Leftover
	return spare
}

// PressedMost returns the resource that is under pressure of which n gives the smallest share of its capacity.
func (n *NodeState) PressedMost() resource.Kind {
	most, least := resource.Disk, math.Inf(1)
	for k := range resource.NumKinds {
		if share := float64(n.Pressed[k]) / float64(max(1, n.Capacity[k])); n.Pressed[k] > 0 && share < least {
			most, least = k, share
		}
	}
	return most
}

// Full reports whether n has as many tasks as it may have.
func (n *NodeState) Full() bool { return n.most > 0 && len(n.Tasks) >= n.most }

// setUnused records the unused resources of n, after n.Tasks has changed.
func (n *NodeState) setUnused(unused resource.Vector) {
	n.Free, n.withheld = unused, resource.Vector{}
	if n.Unknown != 0 {
		n.Free = n.Unknown.In(unused, resource.Unbounded)
	}
	if n.Paused || n.Full() {
		n.Free, n.withheld = resource.Vector{}, n.Free
		return
	}
	if n.Leftover == 0 && (resource.Vector{}).FitsIn(n.Free) {
		return
	}
	kept := min(n.Leftover, max(0, n.Free[resource.Memory]))
	n.Free[resource.Memory] -= kept
	n.withheld[resource.Memory] += kept
	for k, free := range n.Free {
		if free < 0 { // overdrawn
			n.Free[k], n.withheld[k] = 0, n.withheld[k]+free
		}
	}
}

// Overdrawn is what the tasks of n hold beyond what it has, never memory: a task that lent its grant has gone on, or
// a task was resized to more than was free.
func (n *NodeState) Overdrawn() resource.Vector {
	return resource.Vector{}.Sub(n.Unused()).Max(resource.Vector{})
}

// endedNow is the memory that tasks were granted which ended on a node at a time, bytes.
type endedNow struct {
	at     timeline.Time
	memory resource.Amount
}

// add adds the memory of a task that ends now.
func (e *endedNow) add(now timeline.Time, memory resource.Amount) {
	if e.at != now {
		*e = endedNow{at: now}
	}
	e.memory += memory
}

// Grown is the memory by which Held exceeds all grants, in bytes: FLEX containers have grown by that. It is less what
// was granted to tasks that end now, which the node may not have noticed yet.
func (n *NodeState) Grown(now timeline.Time) resource.Amount {
	grown := n.Held - (n.Capacity[resource.Memory] - n.Unused()[resource.Memory])
	if n.ended.at == now {
		grown -= n.ended.memory
	}
	return max(0, grown)
}

// Available is the memory that is neither held nor granted, in bytes: the capacity, less the larger of Held and the
// grants of running tasks, less the grants of booked tasks, and less Leftover. A booked task may wait until other
// containers have returned memory, so that Held does not include it yet; while it is being launched it may be counted
// twice. The result is between 0 and what is free.
func (n *NodeState) Available() resource.Amount {
	if n.Paused || n.Full() {
		return 0
	}
	granted := n.Capacity[resource.Memory] - n.Unused()[resource.Memory] - n.booked
	return max(0, n.Capacity[resource.Memory]-max(n.Held, granted)-n.booked-n.Leftover)
}
