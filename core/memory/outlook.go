package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Outlook returns when a suspended container is likely to be resumed: when the expected ends of other containers have
// freed the memory that it and the containers before it lack. ok is false if it is not suspended, or if the expected
// ends that are still to come do not free enough. No decision depends on it.
func (m *Manager) Outlook(id cluster.ContainerID) (at timeline.Time, ok bool) {
	c := m.containers[id]
	if c == nil || !c.state.suspended() || !c.known {
		return 0, false
	}
	lacks := c.lacks()
	for _, o := range m.ordered {
		if o != c && o.wants() && byPlace(o, c) < 0 {
			lacks += o.lacks()
		}
	}
	type end struct {
		of    *container
		at    timeline.Time
		frees resource.Amount
	}
	var ends []end
	for _, o := range m.ordered {
		if at := o.firstSeen.Add(o.Duration); o != c && o.Duration > 0 && !o.state.suspended() && at > m.now {
			ends = append(ends, end{o, at, o.room() + o.lacksIf(byPlace(o, c) < 0)})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return int(max(-1, min(1, a.at-b.at))) })
	l, left := m.ledger(), m.endings()
	free := l.free()
	fits := func() bool { return free >= lacks && (!c.held || left.mayGrow(c) >= c.leastGrown()) }
	if fits() {
		return m.now.Add(m.p.Interval), true
	}
	for _, e := range ends {
		free += e.frees
		left.remove(e.of)
		if fits() {
			return e.at, true
		}
	}
	return 0, false
}

// lacksIf is what c contributes to the sum of the memory that containers lack, if it was counted in the sum.
func (c *container) lacksIf(counted bool) resource.Amount {
	if counted && c.wants() {
		return c.lacks()
	}
	return 0
}
