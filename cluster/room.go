package cluster

import (
	"github.com/bellows-rm/bellows/resource"
)

// FirstOpen returns the node with the lowest NodeID >= from that is not reserved and has need free, in O(log nodes).
func (s *Snapshot) FirstOpen(need resource.Vector, from NodeID) (*NodeState, bool) {
	return s.first(&s.open, need, from)
}

// FirstReserved is FirstOpen for nodes that are reserved.
func (s *Snapshot) FirstReserved(need resource.Vector, from NodeID) (*NodeState, bool) {
	return s.first(&s.kept, need, from)
}

func (s *Snapshot) first(x *roomIndex, need resource.Vector, from NodeID) (*NodeState, bool) {
	s.file()
	n, ok := x.first(need, from)
	if !ok {
		return nil, false
	}
	return s.Nodes[n], true
}

// mostFree is, per resource, the most that any node that accepts new work has free, reserved or not. The maxima may
// belong to different nodes.
func (s *Snapshot) mostFree() resource.Vector {
	s.file()
	return s.open.top().free.Max(s.kept.top().free)
}

// MostAvailable returns the node with the most memory available, among the nodes that are not reserved and have need
// free. Ties go to the lowest NodeID. It takes O(log nodes), unless many nodes have much memory but too little of
// another resource.
func (s *Snapshot) MostAvailable(need resource.Vector) (*NodeState, bool) {
	s.file()
	n, ok := s.open.most(need)
	if !ok {
		return nil, false
	}
	return s.Nodes[n], true
}

// touch notes that n has more resources free or available, or is no longer reserved, and adds n to the changes.
func (s *Snapshot) touch(n *NodeState) {
	s.reindex(n)
	s.Changes.Nodes = append(s.Changes.Nodes, n.ID)
}

// reindex notes that n.Free, n.Available, n.Gone or the reservation of n changed.
func (s *Snapshot) reindex(n *NodeState) {
	n.Version++
	if !n.unfiled {
		n.unfiled = true
		s.unfiled = append(s.unfiled, n)
	}
}

// file brings the indexes up to date.
func (s *Snapshot) file() {
	for _, n := range s.unfiled {
		n.unfiled = false
		open, kept := closed, closed
		switch {
		case n.Gone:
		case n.ReservedFor != nil:
			kept = room{n.Free, n.Available()}
		default:
			open = room{n.Free, n.Available()}
		}
		s.open.set(n.ID, open)
		s.kept.set(n.ID, kept)
	}
	s.unfiled = s.unfiled[:0]
}
