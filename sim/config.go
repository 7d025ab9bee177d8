package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Config is the cluster to simulate and how it acquires work.
type Config struct {
	// Nodes are the nodes as the engine sees them, and the truth. In truth, a capacity of 0 of disk or network bandwidth
	// bounds nothing, whether it is unknown or none; of none, the engine grants nothing.
	Nodes []cluster.Node

	// Heartbeat is the interval at which a node reports ended tasks and takes new work, as in YARN; the first
	// heartbeats are spread evenly over one second. 0: nodes report at once and take work at any time, as bellows does
	// on one machine.
	Heartbeat time.Duration
	// StartsPerHeartbeat is the largest number of tasks that may start on a node per heartbeat; 0: no limit. YARN's
	// default is 1.
	StartsPerHeartbeat int
	// CoordinatorHeartbeat is the interval at which a job's coordinator (YARN's application master) collects the job's
	// grants. 0: jobs have no coordinator. It needs Heartbeat.
	CoordinatorHeartbeat time.Duration
	// Coordinator is the grant of a coordinator for as long as its job lasts.
	Coordinator resource.Vector
	// LaunchDelay is the time from a task's start decision to its launch in a cluster without coordinators.
	LaunchDelay time.Duration

	// Startup is the delay on a node between the order to run a task and its run. It follows LaunchDelay or the
	// heartbeats.
	Startup Startup

	// Flex says how the memory of FLEX containers is managed, in workloads with FLEX jobs.
	Flex Flex
	// Machine says how a node behaves when more is demanded than it has.
	Machine Machine
	// Caps are the contended resources of which a task uses no more than it was granted. On a real machine that is the
	// CPU: a container gets its grant as a quota, or what its envelope permits if that is more
	// (cluster.Envelope.MostCPU). Nothing limits containers to their grants of disk and network. A grant of 0 caps
	// nothing.
	Caps resource.Kinds
	// Lends says that a task whose programs stand still lends its cores and bandwidths, as on a real machine: see
	// book.Snapshot.
	Lends bool
	// KillDelay is how long a task lives on after a kill decision.
	KillDelay time.Duration
	// ResizeDelay is how long a task keeps its grant after a decision to change it, and HoldDelay how long its programs
	// run or stand still after a decision to stop them or to let them go on: see ECSResizeDelay and ECSHoldDelay.
	ResizeDelay, HoldDelay time.Duration
	// PageOutSpeed is the speed at which the memory of paused tasks goes to swap and comes back, where their owners want
	// that, bytes per second; 0: at once. All of a grant goes out, and swap has room for it. With FLEX jobs, the memory
	// of FLEX tasks alone goes out, at Machine.SwapSpeed and as far as swap has room, also where a policy wants that.
	PageOutSpeed resource.Amount
	// Incidents happen to the cluster from outside, in the order of their times.
	Incidents []Incident
	// Quotas are those of users and queues; nil: none. With Begin, they are those that were found.
	Quotas *cluster.Quotas
	// Begin is the cluster with which the simulation begins; nil is one in which nothing has happened.
	Begin *Begin
	// Until, if not 0, is a time after which the simulation ends, whether or not all jobs have ended.
	Until timeline.Time

	// History is what the runs of applications teach: it fills in the forecasts of jobs that have an App, when they are
	// submitted and while they wait, and takes in their runs when they end. It belongs to one simulation at a time, which
	// changes it. nil: nothing is learned.
	History *profile.History

	// Solver says how questions of the policy are answered.
	Solver Solver

	// KeepTasks keeps every task in the result.
	KeepTasks bool
	// Series says at what resolution grants and use are recorded.
	Series SeriesOptions
	Observers
}

// Observers watch a simulation.
type Observers struct {
	// Observe, if not nil, is called with every step. The slices are valid during the call.
	Observe func(now timeline.Time, events []cluster.Event, decisions []cluster.Decision)
	// ObserveMemory, if not nil, is called with every action of the memory managers. ObserveContainers, if not nil, is
	// called with every change of the limit or use of a container on a node with a memory manager.
	ObserveMemory     func(now timeline.Time, node cluster.NodeID, a memory.Action)
	ObserveContainers func(ContainerMemory)
	// Progress, if not nil, is called now and then with the number of jobs that have ended.
	Progress func(ended, jobs int, now timeline.Time)
}

func (o *Observers) step(now timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
	if o.Observe != nil {
		o.Observe(now, events, decisions)
	}
}

func (o *Observers) action(now timeline.Time, node cluster.NodeID, a *memory.Action) {
	if o.ObserveMemory != nil {
		o.ObserveMemory(now, node, *a)
	}
}

func (o *Observers) container(now timeline.Time, c *container) {
	if o.ObserveContainers != nil {
		o.ObserveContainers(ContainerMemory{At: now, Node: c.task.node, Container: c.id(), Class: c.envelope.Class,
			Limit: c.limit, WorkingSet: c.set, Resident: c.resident, Swapped: c.swapped, Suspended: c.stopped})
	}
}

func (o *Observers) jobEnded(ended, jobs int, now timeline.Time) {
	if o.Progress != nil {
		o.Progress(ended, jobs, now)
	}
}

// Uniform returns n equal nodes named node1, node2, …
func Uniform(n int, capacity resource.Vector) []cluster.Node {
	nodes := make([]cluster.Node, n)
	for i := range nodes {
		nodes[i] = cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprintf("node%d", i+1), Capacity: capacity}
	}
	return nodes
}

// Pool returns one node with the capacities of all nodes together, unknown where one of them is unknown: the Meganode
// of YARN-ME section 6.2, on which memory is not fragmented.
func Pool(nodes []cluster.Node) []cluster.Node {
	all := Uniform(1, resource.Vector{})
	for _, n := range nodes {
		all[0].Unknown |= n.Unknown
		all[0].Capacity = all[0].Unknown.In(all[0].Capacity.Add(n.Capacity), 0)
	}
	return all
}

// Check returns an error that names the first field that is out of range.
func (c *Config) Check() error {
	switch {
	case len(c.Nodes) == 0:
		return fmt.Errorf("nodes: there must be at least one")
	case c.Heartbeat < 0:
		return fmt.Errorf("heartbeat %v: must not be negative", c.Heartbeat)
	case c.CoordinatorHeartbeat < 0:
		return fmt.Errorf("coordinator heartbeat %v: must not be negative", c.CoordinatorHeartbeat)
	case c.CoordinatorHeartbeat > 0 && c.Heartbeat == 0:
		return fmt.Errorf("coordinator heartbeat %v: needs a node heartbeat", c.CoordinatorHeartbeat)
	case c.LaunchDelay < 0:
		return fmt.Errorf("launch delay %v: must not be negative", c.LaunchDelay)
	case c.KillDelay < 0:
		return fmt.Errorf("kill delay %v: must not be negative", c.KillDelay)
	case c.ResizeDelay < 0:
		return fmt.Errorf("resize delay %v: must not be negative", c.ResizeDelay)
	case c.HoldDelay < 0:
		return fmt.Errorf("hold delay %v: must not be negative", c.HoldDelay)
	case c.StartsPerHeartbeat < 0:
		return fmt.Errorf("starts per heartbeat %d: must not be negative", c.StartsPerHeartbeat)
	}
	for i, n := range c.Nodes {
		if n.ID != cluster.NodeID(i) {
			return fmt.Errorf("node %q id %d: must be its position, %d", n.Name, n.ID, i)
		}
		if err := checkNode(&c.Nodes[i]); err != nil {
			return err
		}
	}
	if err := checkIncidents(c.Incidents); err != nil {
		return err
	}
	if err := c.Begin.check(c); err != nil {
		return err
	}
	if c.Caps.Has(resource.Memory) {
		return fmt.Errorf("caps %s: must be of resources for which tasks compete, memory is always kept to its grant", c.Caps)
	}
	if err := c.Solver.check(); err != nil {
		return err
	}
	if err := c.Machine.check(); err != nil {
		return err
	}
	if err := c.Flex.check(); err != nil {
		return err
	}
	if err := c.Series.check(); err != nil {
		return err
	}
	if k, bad := c.Coordinator.Negative(); bad {
		return fmt.Errorf("coordinator %s %d: must not be negative", k, c.Coordinator[k])
	}
	if err := checkPageOut(c.PageOutSpeed); err != nil {
		return err
	}
	return c.Startup.check()
}

func checkNode(n *cluster.Node) error {
	if n.Capacity[resource.CPU] <= 0 || n.Capacity[resource.Memory] <= 0 {
		return fmt.Errorf("node %q capacity %v: CPU and memory must be positive", n.Name, n.Capacity)
	}
	return n.Check()
}

// describe fills in what the policy must know about how tasks are launched.
func (c *Config) describe(s *book.Snapshot) {
	s.Heartbeats.Every, s.Heartbeats.Starts = c.Heartbeat, c.StartsPerHeartbeat
	if c.CoordinatorHeartbeat > 0 {
		// A task granted before one heartbeat of the coordinator is launched by the next.
		s.Heartbeats.Launch, s.LaunchDelay = c.CoordinatorHeartbeat, c.CoordinatorHeartbeat
	} else {
		s.LaunchDelay = c.LaunchDelay
	}
	s.LaunchDelay += c.Startup.Container + c.Startup.Executor
	s.Lends = c.Lends
	if c.Begin != nil {
		s.ContainersPerCore = c.Begin.ContainersPerCore
	}
}

// caps is the most that a task may use of each contended resource, by its grant and its envelope; 0 is no bound.
func (r *run) caps(t *task) (most resource.Vector) {
	for _, k := range contended {
		if r.config.Caps.Has(k) {
			most[k] = t.grant[k]
		}
	}
	if most[resource.CPU] > 0 {
		most[resource.CPU] = max(most[resource.CPU], t.mostCPU)
	}
	return most
}
