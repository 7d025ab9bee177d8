package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// rooms find nodes by what they have free. The indexes are updated when they are read: where nodes report by
// heartbeats, policies do not read them.
type rooms struct {
	open    roomIndex       // nodes that are not reserved
	kept    roomIndex       // nodes that are reserved
	unfiled []*NodeState    // nodes changed since the last update
	largest resource.Vector // of the nodes that have not left: see Largest
}

// FirstOpen returns the node with the lowest NodeID >= from that is not reserved and has need free, in O(log nodes).
func (s *Snapshot) FirstOpen(need resource.Vector, from cluster.NodeID) (*NodeState, bool) {
	return s.first(&s.rooms.open, need, from)
}

// FirstReserved is FirstOpen for nodes that are reserved.
func (s *Snapshot) FirstReserved(need resource.Vector, from cluster.NodeID) (*NodeState, bool) {
	return s.first(&s.rooms.kept, need, from)
}

func (s *Snapshot) first(x *roomIndex, need resource.Vector, from cluster.NodeID) (*NodeState, bool) {
	s.rooms.file()
	n, ok := x.first(need, from)
	if !ok {
		return nil, false
	}
	return s.Nodes[n], true
}

// someHas reports whether any node that accepts new work has an amount of a resource free, reserved or not. Nodes
// that have changed are asked themselves. Mostly the indexes need not be brought up to date then: what they still say
// of such nodes can only be too much.
func (r *rooms) someHas(k resource.Kind, amount resource.Amount) bool {
	for _, n := range r.unfiled {
		if !n.Gone && n.Free[k] >= amount {
			return true
		}
	}
	if r.open.top().free[k] < amount && r.kept.top().free[k] < amount {
		return false
	}
	r.file()
	return r.open.top().free[k] >= amount || r.kept.top().free[k] >= amount
}

// MostAvailable returns the node with the most memory available, among the nodes that are not reserved and have need
// free. Ties go to the lowest NodeID. It takes O(log nodes), unless many nodes have much memory but too little of
// another resource.
func (s *Snapshot) MostAvailable(need resource.Vector) (*NodeState, bool) {
	s.rooms.file()
	n, ok := s.rooms.open.most(need)
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
		s.rooms.unfiled = append(s.rooms.unfiled, n)
	}
}

// file brings the indexes up to date.
func (r *rooms) file() {
	for _, n := range r.unfiled {
		n.unfiled = false
		free := room{n.Free, n.Available()}
		open, kept := &closed, &closed
		switch {
		case n.Gone:
		case n.ReservedFor != nil:
			kept = &free
		default:
			open = &free
		}
		r.open.set(n.ID, open)
		r.kept.set(n.ID, kept)
	}
	r.unfiled = r.unfiled[:0]
}
