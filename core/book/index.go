package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// roomIndex finds nodes with enough free of every resource: the first by NodeID, or the one with the most memory
// available, in O(log nodes). It is a complete binary tree of component-wise maxima over the nodes.
type roomIndex struct {
	leaves int // a power of two
	tree   []room
}

// room is what a node has free, and how much memory is available there.
type room struct {
	free      resource.Vector
	available resource.Amount
}

// setMax makes r the component-wise maximum of two rooms, and reports whether that changes it. It works in place,
// because a large simulation spends most of its time here.
func (r *room) setMax(a, b *room) (changed bool) {
	for k := range r.free {
		if m := max(a.free[k], b.free[k]); m != r.free[k] {
			r.free[k], changed = m, true
		}
	}
	if m := max(a.available, b.available); m != r.available {
		r.available, changed = m, true
	}
	return changed
}

// is compares two rooms: the compiler would call a function for ==.
func (r *room) is(o *room) bool {
	return r.available == o.available && r.free[resource.CPU] == o.free[resource.CPU] &&
		r.free[resource.Memory] == o.free[resource.Memory] &&
		r.free[resource.Disk] == o.free[resource.Disk] && r.free[resource.Network] == o.free[resource.Network]
}

// closed is the room of a node that accepts no new work.
var closed = room{resource.NoRoom(), -1}

// set stores the room of node n, growing the tree as needed.
func (x *roomIndex) set(n cluster.NodeID, r *room) {
	for int(n) >= x.leaves {
		x.grow()
	}
	i := x.leaves + int(n)
	if x.tree[i].is(r) {
		return
	}
	x.tree[i] = *r
	for i >>= 1; i >= 1; i >>= 1 {
		if !x.tree[i].setMax(&x.tree[2*i], &x.tree[2*i+1]) {
			return
		}
	}
}

func (x *roomIndex) grow() {
	old := x.tree
	oldLeaves := x.leaves
	x.leaves = max(1, 2*x.leaves)
	x.tree = make([]room, 2*x.leaves)
	for i := range x.tree {
		x.tree[i] = closed
	}
	for n := range oldLeaves {
		x.tree[x.leaves+n] = old[oldLeaves+n]
	}
	for i := x.leaves - 1; i >= 1; i-- {
		x.tree[i].setMax(&x.tree[2*i], &x.tree[2*i+1])
	}
}

// top is the most of each resource that any node has.
func (x *roomIndex) top() *room {
	if x.leaves == 0 {
		return &closed
	}
	return &x.tree[1]
}

// first returns the lowest node >= from with at least need; ok is false if there is none.
func (x *roomIndex) first(need resource.Vector, from cluster.NodeID) (n cluster.NodeID, ok bool) {
	if from < 0 {
		from = 0
	}
	if int(from) >= x.leaves {
		return 0, false
	}
	return x.search(1, 0, x.leaves, need, from)
}

// search looks below tree node i, which covers leaves [low, low+width). The maxima of two resources may belong to
// different nodes, so that no leaf of a promising subtree may fit.
func (x *roomIndex) search(i, low, width int, need resource.Vector, from cluster.NodeID) (cluster.NodeID, bool) {
	if low+width <= int(from) || !need.FitsIn(x.tree[i].free) {
		return 0, false
	}
	if width == 1 {
		return cluster.NodeID(low), true
	}
	half := width / 2
	if n, ok := x.search(2*i, low, half, need, from); ok {
		return n, true
	}
	return x.search(2*i+1, low+half, half, need, from)
}

// each visits the nodes below tree node i that have at least need, by NodeID.
func (x *roomIndex) each(i int, need resource.Vector, visit func(cluster.NodeID)) {
	switch {
	case i >= len(x.tree) || !need.FitsIn(x.tree[i].free):
	case i >= x.leaves:
		visit(cluster.NodeID(i - x.leaves))
	default:
		x.each(2*i, need, visit)
		x.each(2*i+1, need, visit)
	}
}

// most returns the node with the most memory available among those with at least need, the lowest among equals; ok is
// false if there is none.
func (x *roomIndex) most(need resource.Vector) (n cluster.NodeID, ok bool) {
	if x.leaves == 0 {
		return 0, false
	}
	best := -1
	x.improve(1, need, &best)
	return cluster.NodeID(best - x.leaves), best >= 0
}

// improve replaces best, the index of a leaf or -1, by a better leaf below tree node i, if there is one. It visits the
// half with more memory available first, so that the other half can usually be skipped.
func (x *roomIndex) improve(i int, need resource.Vector, best *int) {
	t := &x.tree[i]
	if !need.FitsIn(t.free) || *best >= 0 && !x.better(i, *best) {
		return
	}
	if i >= x.leaves {
		*best = i
		return
	}
	first, second := 2*i, 2*i+1
	if x.tree[second].available > x.tree[first].available {
		first, second = second, first
	}
	x.improve(first, need, best)
	x.improve(second, need, best)
}

// better reports whether a leaf below tree node i may be better than the leaf best; i is no ancestor of best.
func (x *roomIndex) better(i, best int) bool {
	if x.tree[i].available != x.tree[best].available {
		return x.tree[i].available > x.tree[best].available
	}
	for i < x.leaves {
		i *= 2
	}
	return i < best
}
