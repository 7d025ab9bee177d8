package cluster

import (
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// NodeID numbers nodes from 0 in the order in which they joined. It is never given twice in a run.
type NodeID int32

// Node is a machine that runs containers.
type Node struct {
	ID       NodeID          `json:"id"`
	Name     string          `json:"name"`
	Capacity resource.Vector `json:"capacity"`
}

// NodeState is a node as the engine knows it. Policies read it and never write to it.
type NodeState struct {
	Node
	Gone bool // left the cluster; it holds nothing any more

	// Free is what may be granted: Capacity less the grants of Tasks, or nothing while the node is paused, or if there are as
	// many tasks as the node may hold. Invariant: no component is negative.
	Free resource.Vector
	// Paused says that the node can start nothing for now. What runs there goes on. Doubtful says that it was paused, and
	// nothing has started there since.
	Paused, Doubtful bool
	// Tasks are booked or running here, in no particular order.
	Tasks []*TaskState
	// ElasticDisk is the disk bandwidth (bytes per second) that under-sized tasks here were started with.
	ElasticDisk resource.Amount
	// Held is how much memory the containers here may hold, in bytes, as the substrate last reported: the sum of their
	// limits, which exceeds the grants when FLEX containers have grown. 0 until it reports.
	Held resource.Amount

	// ReservedFor is the job that alone may start regular work here, nil if none; ReservedStage and ReservedSince go
	// with it.
	ReservedFor   *JobState
	ReservedStage int
	ReservedSince timeline.Time

	// Version changes whenever Tasks, a launch among them, the reservation or Held does: what a policy has worked out for
	// a node holds until then.
	Version uint64

	// LastHeartbeat is the time of the newest Heartbeat event. Meaningful when the snapshot's Heartbeat is not 0.
	LastHeartbeat timeline.Time

	booked   resource.Amount // memory granted to tasks that do not run yet, bytes
	most     int             // tasks that it may hold; 0 is any number
	withheld resource.Vector // what is not granted, while it may not be
	unfiled  bool            // the snapshot's indexes do not know its newest version
}

// Unused is Capacity less the grants of Tasks, whether or not it may be granted.
func (n *NodeState) Unused() resource.Vector { return n.Free.Add(n.withheld) }

// Full reports whether n holds as many tasks as it may.
func (n *NodeState) Full() bool { return n.most > 0 && len(n.Tasks) >= n.most }

// setUnused records what is not granted, once n.Tasks are those that hold the rest.
func (n *NodeState) setUnused(unused resource.Vector) {
	n.Free, n.withheld = unused, resource.Vector{}
	if n.Paused || n.Full() {
		n.Free, n.withheld = resource.Vector{}, unused
	}
}

// Available is how much memory is neither held nor granted, in bytes: the capacity less Held, or the grants of what runs if
// they are more, and less the grants of what is booked. What is booked may wait until others have given memory back, so that
// Held does not count it; between that and its launch it can count twice. Never negative, nor more than is free.
func (n *NodeState) Available() resource.Amount {
	if n.Paused || n.Full() {
		return 0
	}
	granted := n.Capacity[resource.Memory] - n.Free[resource.Memory] - n.booked
	return max(0, n.Capacity[resource.Memory]-max(n.Held, granted)-n.booked)
}
