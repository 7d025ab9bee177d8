package cluster

import (
	"iter"
	"slices"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Where nodes report by heartbeats, a node takes new work only in the step in which it reports, and no more tasks than the
// substrate allows for each heartbeat. Elsewhere a node takes new work at any time. What follows hides the difference from
// policies.

// AtOnce reports whether nodes take new work at any time, rather than when they report.
func (p *Plan) AtOnce() bool { return p.Heartbeats.Every == 0 }

// Takes reports whether n may be given another task in this step, as far as it has room.
func (p *Plan) Takes(n *NodeState) bool {
	switch {
	case n.Gone:
		return false
	case p.AtOnce():
		return true
	case p.Heartbeats.Starts > 0 && p.starts[n.ID] >= p.Heartbeats.Starts:
		return false
	}
	return slices.Contains(p.Changes.Heartbeats, n.ID)
}

// Offers yields the nodes that may be able to start what they could not start before: those that changed or, where nodes
// report by heartbeats, those that report. A node is yielded again for as long as a task was started on it since it was last
// yielded and it takes another. Nodes that change during the loop are yielded, too. Each change is offered once: a second loop
// in the same step yields what has changed since the first. Reserved nodes are yielded like others.
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

// Offered yields the nodes of Offers, each once for each change, whether or not they have been offered and take more.
func (p *Plan) Offered() iter.Seq[*NodeState] {
	return func(yield func(*NodeState) bool) {
		for i := 0; i < len(p.offers()); i++ {
			if !yield(p.Nodes[p.offers()[i]]) {
				return
			}
		}
	}
}

func (p *Plan) offers() []NodeID {
	if p.AtOnce() {
		return p.Changes.Nodes
	}
	return p.Changes.Heartbeats
}

// FirstFit returns the first node that takes new work now, is not reserved, and has need free: by NodeID, or in the order in
// which nodes reported.
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

// NextRoom returns the first node from a NodeID on that is not reserved and has need free, for tasks that could not run
// before: the node need not have changed. There is none where nodes report by heartbeats, because each is offered when it
// reports.
func (p *Plan) NextRoom(need resource.Vector, from NodeID) (*NodeState, bool) {
	if !p.AtOnce() {
		return nil, false
	}
	return p.FirstOpen(need, from)
}

// NextReservedRoom is NextRoom for nodes that are reserved.
func (p *Plan) NextReservedRoom(need resource.Vector, from NodeID) (*NodeState, bool) {
	if !p.AtOnce() {
		return nil, false
	}
	return p.FirstReserved(need, from)
}

// HeardOf returns when the end of a task at the given time is known, at the latest.
func (p *Plan) HeardOf(end timeline.Time) timeline.Time { return end.Add(p.Heartbeats.Every) }
