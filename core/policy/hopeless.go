package policy

import (
	"iter"

	"github.com/bellows-rm/bellows/core/cluster"
)

// hopeless yields the reserved nodes without enough room. If only coordinators run, their reservations must end: no
// running task has a known end for which the nodes could wait. (The YARN-ME authors' simulator deadlocks there.)
func hopeless(p *cluster.Plan) iter.Seq[*cluster.NodeState] {
	return func(yield func(*cluster.NodeState) bool) {
		for _, n := range p.Nodes {
			if n.ReservedFor != nil && !n.Gone && !n.ReservedNeed().FitsIn(n.Free) && !yield(n) {
				return
			}
		}
	}
}
