package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Snapshot is the cluster as the engine knows it. Each engine has one, in its Book; it is not copied for a decision.
// Policies read it, through a Plan, and never write to it. It contains all state that outlives a step.
type Snapshot struct {
	// Heartbeats are how nodes and jobs report; the zero value means that they do not.
	Heartbeats Heartbeats
	// ContainersPerCore is the most tasks a node may have for each of its cores; a node with less than one core counts
	// as one. 0 means any number.
	ContainersPerCore int
	// Lends says that a task that stands still or is idle lends its cores and its bandwidths: only its memory stays
	// taken. When the task goes on, its node may have granted more than it has, and starts nothing before enough tasks
	// have ended.
	Lends bool
	// Weighs says that the policy grants CPU as a weight: see TaskState.MostCPU.
	Weighs bool
	// LaunchDelay is the usual time between a Start decision and the launch; where jobs report by heartbeats, it counts
	// from the job's first heartbeat after the decision.
	LaunchDelay time.Duration

	// Nodes are indexed by NodeID. A node that left stays, with Gone set.
	Nodes []*NodeState
	// Present counts the nodes that have not left.
	Present int
	// Jobs that have not ended, by ascending JobID.
	Jobs []*JobState
	// Capacity is the sum of the capacities of the nodes that have not left. Unknown are the kinds of which one of these
	// nodes has no number: then there is no sum, Capacity is 0, and no job has a share of it.
	Capacity resource.Vector
	Unknown  resource.Kinds
	// Changes names what has changed since the last decision.
	Changes Changes
	// Running counts booked and running tasks that are not coordinators.
	Running int
	// Waits are how long jobs have waited so far.
	Waits Waits
	// Estimates belong to policies that estimate when jobs end, Preemption to policies that preempt tasks.
	Estimates  Estimates
	Preemption Preemption
	// Synced is false until the driver has reported its inventory.
	Synced bool

	byJob   map[cluster.JobID]*JobState
	byTask  taskTable
	byName  map[string]*NodeState
	rooms   rooms
	leveled leveled
	retries retries
	gate    gate
	slots   slots
	wake    timeline.Time // the newest step that Plan.WakeBy has requested
}

// Changes names what has changed since the policy last decided. Its slices may name an item more than once.
type Changes struct {
	Nodes      []cluster.NodeID // joined, have more free or available than before, or are no longer reserved
	Heartbeats []cluster.NodeID // reported now
	Pressed    []cluster.NodeID // their pressure has changed
	Answered   []cluster.NodeID // a question about them was answered
	// on which a task was launched, resized, entered a phase, stopped or went on, or was ordered to stop or go on
	Progress []cluster.NodeID
	Holds    []cluster.NodeID // on which a task holds more or less memory than was known
	Jobs     []*JobState      // new, ended, or with a different consumption or different runnable tasks
	Demand   bool             // some job has new runnable tasks, and nodes that did not change may take them
	Arrived  bool             // a job was submitted or cancelled
	Tasks    bool             // a task was launched or ended
	Woken    bool             // the time of a Wake decision has come
}

// reset empties c. The lists one by one only get another length, which is faster than a new Changes with the same
// lists.
func (c *Changes) reset() {
	c.Nodes = c.Nodes[:0]
	c.Heartbeats = c.Heartbeats[:0]
	c.Pressed = c.Pressed[:0]
	c.Answered = c.Answered[:0]
	c.Progress = c.Progress[:0]
	c.Holds = c.Holds[:0]
	c.Jobs = c.Jobs[:0]
	c.Demand, c.Arrived, c.Tasks, c.Woken = false, false, false, false
}

// newSnapshot returns an empty cluster.
func newSnapshot() *Snapshot {
	return &Snapshot{Estimates: Estimates{StaleSince: timeline.Never, Latest: timeline.Never},
		byJob: map[cluster.JobID]*JobState{}, byName: map[string]*NodeState{}}
}

// Job returns the job with the given id if it has not ended.
func (s *Snapshot) Job(id cluster.JobID) (*JobState, bool) {
	j, ok := s.byJob[id]
	return j, ok
}

// NodeNamed returns the node with that name, the last to join if several had it; ok is false if it is not in the
// cluster.
func (s *Snapshot) NodeNamed(name string) (n *NodeState, ok bool) {
	n = s.byName[name]
	return n, n != nil && !n.Gone
}
