package policy

import (
	"iter"

	"github.com/bellows-rm/bellows/core/book"
)

// hopeless yields the reserved nodes without enough room. If only coordinators run, their reservations must end: no
// running task has a known end for which the nodes could wait. (The YARN-ME authors' simulator deadlocks there.)
func hopeless(p *book.Plan) iter.Seq[*book.NodeState] {
	return func(yield func(*book.NodeState) bool) {
		for _, n := range p.Nodes {
			if n.ReservedFor != nil && !n.Gone && !n.ReservedNeed().FitsIn(n.Free) && !yield(n) {
				return
			}
		}
	}
}
