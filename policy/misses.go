package policy

import (
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// misses are needs that no node has room for. In one decision room only shrinks, unless a node is given back, so that what needs no
// less than one of them need not be looked for.
type misses []resource.Vector

// firstFit is Plan.FirstFit that remembers what did not fit. A slice that is too long would cost more than it saves.
func (m *misses) firstFit(p *cluster.Plan, need resource.Vector) (*cluster.NodeState, bool) {
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
