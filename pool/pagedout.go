package pool

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// PagedOut says how much memory of an executor is in swap, bytes. The policy mira then gives applications rather others
// that serve them as well. Less than a quarter of all that the executor has counts as nothing: it comes back while
// another one connects to an application.
func (p *Pool) PagedOut(ctx context.Context, executor int, swapped, all int64) error {
	return p.do(ctx, func() error {
		if m := p.members[executor]; m != nil {
			if swapped < all/4 {
				swapped = 0
			}
			p.pagedOut(m, swapped)
		}
		return nil
	})
}

// pagedOut tells the engine how much memory of an executor is in swap, unless it knows.
func (p *Pool) pagedOut(m *member, bytes int64) {
	known, out := resource.Amount(0), resource.Amount(bytes)
	if nodes := p.loop.Engine().Snapshot().Nodes; int(m.node) < len(nodes) {
		known = nodes[m.node].Out
	}
	if known != out {
		p.loop.Event(cluster.Event{Kind: cluster.NodePagedOut, Node: m.node, Held: out})
	}
}
