package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// misses are needs that fit on no node. During one decision room only shrinks, unless a reservation ends: a need that
// is at least as large as a miss does not fit either.
type misses []resource.Vector

// firstFit is Plan.FirstFit that remembers what did not fit. The slice is bounded: a longer one would cost more than it
// saves.
func (m *misses) firstFit(p *book.Plan, need resource.Vector) (*book.NodeState, bool) {
	for _, v := range *m {
		if v.FitsIn(need) {
			return nil, false
		}
	}
	n, ok := p.FirstFit(need)
	if !ok && len(*m) < 64 {
		*m = append(*m, need)
	}
	return n, ok
}

func (m *misses) forget() { *m = (*m)[:0] }
