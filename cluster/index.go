package cluster

import "github.com/bellows-rm/bellows/resource"

// roomIndex finds the first node, by NodeID, with enough free of every resource, in O(log nodes). It is a complete binary
// tree of component-wise maxima over the nodes.
type roomIndex struct {
	leaves int // a power of two
	tree   []resource.Vector
}

// closed is the room of a node that takes no new work.
var closed = resource.Vector{-1, -1, -1, -1}

// set stores what node n offers, growing the tree as needed.
func (x *roomIndex) set(n NodeID, r resource.Vector) {
	for int(n) >= x.leaves {
		x.grow()
	}
	i := x.leaves + int(n)
	if x.tree[i] == r {
		return
	}
	x.tree[i] = r
	for i >>= 1; i >= 1; i >>= 1 {
		m := x.tree[2*i].Max(x.tree[2*i+1])
		if x.tree[i] == m {
			return
		}
		x.tree[i] = m
	}
}

func (x *roomIndex) grow() {
	old := x.tree
	oldLeaves := x.leaves
	x.leaves = max(1, 2*x.leaves)
	x.tree = make([]resource.Vector, 2*x.leaves)
	for i := range x.tree {
		x.tree[i] = closed
	}
	for n := range oldLeaves {
		x.tree[x.leaves+n] = old[oldLeaves+n]
	}
	for i := x.leaves - 1; i >= 1; i-- {
		x.tree[i] = x.tree[2*i].Max(x.tree[2*i+1])
	}
}

// first returns the lowest node >= from with at least need; ok is false if there is none.
func (x *roomIndex) first(need resource.Vector, from NodeID) (n NodeID, ok bool) {
	if from < 0 {
		from = 0
	}
	if int(from) >= x.leaves {
		return 0, false
	}
	return x.search(1, 0, x.leaves, need, from)
}

// search looks below tree node i, which covers leaves [low, low+width). The maxima of two resources may come from
// different nodes, so that a promising subtree can still hold nothing.
func (x *roomIndex) search(i, low, width int, need resource.Vector, from NodeID) (NodeID, bool) {
	if low+width <= int(from) || !need.FitsIn(x.tree[i]) {
		return 0, false
	}
	if width == 1 {
		return NodeID(low), true
	}
	half := width / 2
	if n, ok := x.search(2*i, low, half, need, from); ok {
		return n, true
	}
	return x.search(2*i+1, low+half, half, need, from)
}
