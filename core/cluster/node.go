package cluster

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
)

// NodeID numbers nodes from 0 in the order in which they joined. The ID of a node that left may be used again by one
// that joins.
type NodeID int32

// Node is a machine that runs containers.
type Node struct {
	ID       NodeID          `json:"id"`
	Name     string          `json:"name"`
	Capacity resource.Vector `json:"capacity"`
	// Unknown are the kinds of which the node has no number: it was neither measured nor stated. Every need of such a kind
	// fits. Invariant: Capacity is 0 there, and no kind is Stated. In other kinds, a capacity of 0 means none.
	Unknown resource.Kinds `json:"unknown,omitempty"`
	// Swap is the swap space that its FLEX containers could use when it joined, bytes; 0 is none, or unknown.
	Swap resource.Amount `json:"swap_bytes,omitempty"`
}

// Check returns an error if a field is out of range.
func (n *Node) Check() error {
	if k, bad := n.Capacity.Negative(); bad {
		return fmt.Errorf("node %q %s %d: must not be negative", n.Name, k, n.Capacity[k])
	}
	if n.Swap < 0 || n.Swap > resource.MostMemory {
		return fmt.Errorf("node %q swap %d: must be 0 to %d", n.Name, n.Swap, resource.MostMemory)
	}
	for k := range resource.NumKinds {
		switch {
		case !n.Unknown.Has(k):
		case k.Stated():
			return fmt.Errorf("node %q %s: must not be unknown", n.Name, k)
		case n.Capacity[k] != 0:
			return fmt.Errorf("node %q %s %s: must be 0 if it is unknown", n.Name, k, k.Format(n.Capacity[k]))
		}
	}
	return nil
}

// Room is what fits on n when nothing runs there: Capacity, and Unbounded of the unknown kinds.
func (n *Node) Room() resource.Vector {
	if n.Unknown == 0 {
		return n.Capacity
	}
	return n.Unknown.In(n.Capacity, resource.Unbounded)
}
