package book

import (
	"iter"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Where nodes report by heartbeats, a node takes new work only in the step in which it reports, and only as many tasks
// as the driver allows per heartbeat. Elsewhere a node takes new work at any time. The functions below hide the
// difference from policies.

// AtOnce reports whether nodes take new work at any time, rather than when they report.
func (s *Snapshot) AtOnce() bool { return s.Heartbeats.Every == 0 }

// Takes reports whether n may be given another task in this step, if the task fits.
func (p *Plan) Takes(n *NodeState) bool {
	switch {
	case n.Gone:
		return false
	case p.AtOnce():
		return true
	case p.Heartbeats.Starts > 0 && n.started >= p.Heartbeats.Starts:
		return false
	}
	return slices.Contains(p.Changes.Heartbeats, n.ID)
}

// Offers yields the nodes that may be able to start more than before: the nodes that changed or, where nodes report by
// heartbeats, the nodes that report. A node is yielded again as long as a task was started on it since it was last
// yielded and it takes another task. Nodes that change during the loop are also yielded. Each change is offered once: a
// second loop in the same step yields what has changed since the first loop. Reserved nodes are yielded like other
// nodes.
func (p *Plan) Offers() iter.Seq[*NodeState] {
	return func(yield func(*NodeState) bool) {
		for p.offered < len(p.offers()) {
			n := p.Nodes[p.offers()[p.offered]]
			p.offered++
			for tasks := -1; tasks < len(n.Tasks) && p.Takes(n); {
				tasks = len(n.Tasks)
				if !yield(n) {
					return
				}
			}
		}
	}
}

// Offered yields the nodes of Offers, each once per change, including nodes that were already offered or take no more
// tasks.
func (p *Plan) Offered() iter.Seq[*NodeState] {
	return func(yield func(*NodeState) bool) {
		for i := 0; i < len(p.offers()); i++ {
			if !yield(p.Nodes[p.offers()[i]]) {
				return
			}
		}
	}
}

func (p *Plan) offers() []cluster.NodeID {
	if p.AtOnce() {
		return p.Changes.Nodes
	}
	return p.Changes.Heartbeats
}

// FirstFit returns the first node that takes new work now, is not reserved, and has need free. The order is by NodeID,
// or the order in which nodes reported.
func (p *Plan) FirstFit(need resource.Vector) (*NodeState, bool) {
	if p.AtOnce() {
		return p.FirstOpen(need, 0)
	}
	for _, id := range p.Changes.Heartbeats {
		if n := p.Nodes[id]; n.ReservedFor == nil && need.FitsIn(n.Free) && p.Takes(n) {
			return n, true
		}
	}
	return nil, false
}

// NextRoom returns the first node, starting at a NodeID, that is not reserved and has need free, for tasks that were
// not runnable before: the node need not have changed. Where nodes report by heartbeats it returns none, because each
// node is offered when it reports.
func (p *Plan) NextRoom(need resource.Vector, from cluster.NodeID) (*NodeState, bool) {
	if !p.AtOnce() {
		return nil, false
	}
	return p.FirstOpen(need, from)
}

// NextReservedRoom is NextRoom for nodes that are reserved.
func (p *Plan) NextReservedRoom(need resource.Vector, from cluster.NodeID) (*NodeState, bool) {
	if !p.AtOnce() {
		return nil, false
	}
	return p.FirstReserved(need, from)
}

// HeardOf returns the latest time at which the end of a task, given by its time, becomes known.
func (p *Plan) HeardOf(end timeline.Time) timeline.Time { return end.Add(p.Heartbeats.Every) }
