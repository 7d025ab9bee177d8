package sim

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// NodeSeries is a node over time, exactly: it has a step for each change.
type NodeSeries struct {
	Name  string
	Steps []NodeStep // ascend strictly in time
}

// NodeStep is the state of a node from At until the next step.
type NodeStep struct {
	At timeline.Time
	// Capacity is zero once the node has left. Granted is as in Sample.
	Capacity, Granted resource.Vector
	// Demand is what the tasks of the node would use now if it had enough for all of them, as far as their grants and
	// throttles let them; of memory, what they use. Used is what they get.
	Demand, Used resource.Vector
}

// recordNode records the present state of a node.
func (r *run) recordNode(id cluster.NodeID) {
	here, n := &r.nodes[id], &r.result.Nodes[id]
	now := NodeStep{At: r.now, Granted: here.granted, Demand: here.demand}
	if !here.left {
		now.Capacity = here.capacity
	}
	for _, t := range here.tasks {
		now.Used = now.Used.Add(r.useNow(t))
	}
	now.Demand[resource.Memory] = now.Used[resource.Memory]
	if last := len(n.Steps) - 1; last >= 0 && n.Steps[last].At == r.now {
		n.Steps[last] = now
	} else {
		n.Steps = append(n.Steps, now)
	}
}

// Areas compares what a node has of a resource with what is demanded of it, from one time until another. idle is the
// integral of max(0, capacity - demand), the fragmentation area FA of Prophet (section III.B). over is the integral of
// max(0, demand - capacity), its over-allocation area OA. A resource of which a node has 0, which stands for unlimited,
// has neither.
func (n *NodeSeries) Areas(k resource.Kind, from, until timeline.Time) (idle, over timeline.Area) {
	for i, s := range n.Steps {
		begin, end := max(s.At, from), until
		if i+1 < len(n.Steps) {
			end = min(until, n.Steps[i+1].At)
		}
		if s.Capacity[k] == 0 || end <= begin {
			continue
		}
		idle = idle.Add(timeline.AreaOf(max(0, s.Capacity[k]-s.Demand[k]), end-begin))
		over = over.Add(timeline.AreaOf(max(0, s.Demand[k]-s.Capacity[k]), end-begin))
	}
	return idle, over
}
