package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// growShort lets the strategy grow containers that are short, once Interval has passed since the last puff.
func (m *Manager) growShort() {
	if m.lastPuff.within(m.now, m.p.Interval) {
		return
	}
	m.strategy.grow(m)
}

// raiseToMin gives running containers that have less than their Min the rest of it from memory that is in no room.
func (m *Manager) raiseToMin() {
	unallocated := resource.Amount(-1)
	for _, c := range m.ordered {
		if !c.belowMin() || !c.ready(m.now) {
			continue
		}
		if unallocated < 0 {
			l := m.ledger()
			unallocated = max(0, l.unallocated())
		}
		if more := c.Min - c.limit; more <= unallocated {
			unallocated -= more
			m.order(Grow, c, c.Min, Reason{Code: LeastRaised, A: int64(c.Min), B: int64(c.limit)})
		}
	}
}

// firstShort returns the first container that lacks memory; nil if none does. With an envelope, those do not count
// that cannot have memory of its owner.
func (m *Manager) firstShort(of *Envelope) *container {
	for _, c := range m.ordered {
		if c.wants() && (of == nil || !m.foreign(c, of.Owner)) {
			return c
		}
	}
	return nil
}

// minGrowth is the least growth that is worth a call of the kernel: a hundredth of the limit. Half of what is free,
// and half of the rest, and so on, never come to nothing.
func (c *container) minGrowth() resource.Amount { return c.limit / 100 }

// grow adds a share of its limit to c, but not more than half of what is free, and returns how much.
func (m *Manager) grow(c *container, share float64, free resource.Amount, why Reason) resource.Amount {
	more := min(resource.Amount(float64(c.limit)*share), free/2, c.Max-c.limit, m.left(c))
	if more <= c.minGrowth() && (more <= 0 || c.limit+more != c.Max) {
		return 0
	}
	m.order(Grow, c, c.limit+more, why)
	return more
}

// growAhead grows running containers that are not short, while there is plenty.
func (m *Manager) growAhead() {
	if m.p.Ahead <= 0 && m.p.Lend <= 0 {
		return
	}
	l := m.ledger()
	lack := m.whoLacks()
	available := l.available() - l.owed
	bank := m.bank()
	for _, c := range m.ordered {
		if !c.flex() || !c.known || c.wants() || c.state.suspended() || !c.ready(m.now) || c.limit >= c.Max {
			continue
		}
		short := lack.any || slices.Contains(lack.owners, c.Owner)
		if short && c.place.standing == yielding || !m.fillsSoon(c, available-l.claimed, short) {
			continue
		}
		may := min(available, bank.mayGrow(c), m.left(c))
		more := m.growOneAhead(c, may, min(may, available-l.claimed), short)
		available, bank.stale = available-more, bank.stale || more > 0
	}
}

// fillsSoon reports whether c has so little headroom that growOneAhead may grow it.
func (m *Manager) fillsSoon(c *container, free resource.Amount, short bool) bool {
	if c.thrashes || m.p.Ahead > 0 && c.nearlyFull(m.p.Ahead) {
		return true
	}
	unused := max(0, c.limit-c.demand())
	return !short && m.p.Lend > 0 && unused < m.headroom(free+unused)/2
}

// nearlyFull reports whether c has less than the given share of its limit left.
func (c *container) nearlyFull(ahead float64) bool {
	return c.anonymous+c.mapped >= resource.Amount((1-ahead)*float64(c.limit))
}

// growOneAhead grows c if it has nearly filled its limit, if the files that it has mapped do not fit, or if it has
// less headroom than it may, and returns by how much. short says that a container lacks memory.
func (m *Manager) growOneAhead(c *container, available, free resource.Amount, short bool) resource.Amount {
	if m.p.Ahead > 0 && c.nearlyFull(m.p.Ahead) {
		plenty := free
		if !short {
			plenty = available - m.withheldFrom(c)
		}
		// What is free must be worth more than this one growth: other containers may be short any moment.
		if plenty > c.limit {
			c.lastShort = moment{m.now, true}
			return m.grow(c, m.p.AheadRatio, plenty, Reason{Code: NearLimit, A: int64(c.anonymous + c.mapped),
				B: int64(c.limit)})
		}
	}
	if c.thrashes && !short && free > 0 && m.p.Ahead > 0 {
		return m.grow(c, m.p.AheadRatio, free, Reason{Code: FilesComeBack, A: int64(c.mapped), B: int64(c.limit)})
	}
	unused := max(0, c.limit-c.demand())
	if short || m.p.Lend <= 0 || unused >= m.headroom(free+unused)/2 {
		return 0
	}
	more := min(m.headroom(free+unused)-unused, c.Max-c.limit)
	if more <= c.minGrowth() {
		return 0
	}
	c.lastShort = moment{m.now, true}
	m.order(Grow, c, c.limit+more, Reason{Code: RoomToSpare, A: int64(free)})
	return more
}

// headroom is how far the limit of a container may be above what it holds while no container is short. free includes
// its headroom.
func (m *Manager) headroom(free resource.Amount) resource.Amount {
	return max(0, resource.Amount(m.p.Lend*float64(free)))
}

// shrinkSlack takes back what a container does not use (section 4.3.1) once it has not been short for Hold.
func (m *Manager) shrinkSlack() {
	l := m.ledger()
	free := l.free()
	for _, c := range m.ordered {
		if !c.flex() || !c.grown || !c.known || !c.ready(m.now) || c.state.suspended() || c.keeps(m.now, m.p.Hold) {
			continue
		}
		holds := c.demand() + c.mapped // mapped files cost nothing until another container needs memory
		fits, unused := max(c.Min, m.fits(holds)), c.limit-holds
		// A tenth of the limit is not worth a call.
		if fits < c.limit-c.limit/10 && unused > 2*m.headroom(free+unused) {
			m.order(Shrink, c, fits, Reason{Code: Slack, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}
