package pool

import (
	"context"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Pressed says what the machine gives, per second, of each resource that is pressed, and which executors use much of
// it. It replaces the previous call: zero, or no executors, ends the pressure. The policy mira then lets the
// applications that they work for have fewer executors for a while (Prophet, section III.B); other policies change
// nothing.
func (p *Pool) Pressed(ctx context.Context, gives resource.Vector, executors map[int]bool) error {
	return p.do(ctx, func() error {
		for _, number := range slices.Sorted(maps.Keys(p.members)) {
			m := p.members[number]
			now := resource.Vector{}
			if executors[number] {
				now = gives
			}
			if m.presses || !now.IsZero() {
				m.presses = !now.IsZero()
				p.loop.Event(cluster.Event{Kind: cluster.NodePressed, Node: m.node, Found: &cluster.Condition{Bound: now}})
			}
		}
		return nil
	})
}
