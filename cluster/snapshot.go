package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Snapshot is the cluster as the engine knows it. There is one per engine, in its Book; it is not copied for a decision. Policies
// read it, through a Plan, and never write to it. All that lasts between two decisions is in it.
type Snapshot struct {
	// Heartbeats are how nodes and jobs report; the zero Heartbeats are none.
	Heartbeats Heartbeats
	// ContainersPerCore is how many tasks a node may hold for each of its cores, and as many if it has less than one; 0
	// means any number.
	ContainersPerCore int
	// LaunchDelay is what usually passes between a Start decision and the launch; where jobs report by heartbeats, it counts from the
	// job's first one after the decision.
	LaunchDelay time.Duration

	// Nodes are indexed by NodeID. A node that left stays, with Gone set.
	Nodes []*NodeState
	// Jobs that have not ended, by ascending JobID.
	Jobs []*JobState
	// Capacity is the sum of the capacities of the nodes that have not left.
	Capacity resource.Vector
	// Changes names what is new since the last decision.
	Changes Changes
	// Running counts booked and running tasks that are not coordinators.
	Running int
	// Estimates are for policies that estimate when jobs end, Preemption for those that preempt tasks.
	Estimates  Estimates
	Preemption Preemption
	// Synced is false until the substrate has reported what it holds.
	Synced bool

	byJob   map[JobID]*JobState
	byTask  map[TaskID]*TaskState
	byName  map[string]*NodeState
	largest resource.Vector // capacity of the nodes that have not left
	// The indexes are brought up to date when they are asked: where work comes by heartbeats nobody asks.
	open    roomIndex    // nodes that are not reserved
	kept    roomIndex    // nodes that are
	unfiled []*NodeState // changed since
	spare   []*TaskState
}

// Changes names what is new since the policy last decided. Its slices may name a thing twice.
type Changes struct {
	Nodes      []NodeID    // joined, have more free or available than before, or are no longer reserved
	Heartbeats []NodeID    // reported now
	Jobs       []*JobState // new, ended, or with another consumption or other runnable tasks
	Demand     bool        // some job has runnable tasks that it had not before, and nodes that did not change may take them
	Arrived    bool        // a job was submitted or cancelled
	Tasks      bool        // a task was launched or ended
	Woken      bool        // a Wake decision's time has come
}

func (c *Changes) reset() {
	*c = Changes{Nodes: c.Nodes[:0], Heartbeats: c.Heartbeats[:0], Jobs: c.Jobs[:0]}
}

// newSnapshot returns an empty cluster.
func newSnapshot() *Snapshot {
	return &Snapshot{Estimates: Estimates{StaleSince: timeline.Never}, byJob: map[JobID]*JobState{}, byTask: map[TaskID]*TaskState{}, byName: map[string]*NodeState{}}
}

// Job returns the job with the given id if it has not ended.
func (s *Snapshot) Job(id JobID) (*JobState, bool) {
	j, ok := s.byJob[id]
	return j, ok
}

// NodeNamed returns the node of that name, the one that joined last if there were several; ok is false if it is not there.
func (s *Snapshot) NodeNamed(name string) (n *NodeState, ok bool) {
	n = s.byName[name]
	return n, n != nil && !n.Gone
}
