package memory

import (
	"github.com/bellows-rm/bellows/resource"
)

// growShort lets the strategy grow containers that are short, once Interval has passed since the last puff.
func (m *Manager) growShort() {
	if m.lastPuff.within(m.now, m.p.Interval) {
		return
	}
	m.strategy.grow(m)
}

// least is the least growth that is worth a call: a hundredth of the limit. Halves of what is left never come to nothing.
func (c *container) minGrowth() resource.Amount { return c.limit / 100 }

// grow adds a share of its limit to c, but not more than half of what is left, and returns how much.
func (m *Manager) grow(c *container, ratio float64, left resource.Amount, why Reason) resource.Amount {
	more := min(resource.Amount(float64(c.limit)*ratio), left/2, c.Max-c.limit)
	if more <= c.minGrowth() && (more <= 0 || c.limit+more != c.Max) {
		return 0
	}
	m.order(Grow, c, c.limit+more, why)
	return more
}

// growAhead grows containers that will soon be out of memory, while there is plenty, and lends what nobody asks for.
func (m *Manager) growAhead() {
	if m.p.Ahead <= 0 && m.p.Lend <= 0 {
		return
	}
	unkept, kept, short := m.unkept(), m.claimed(), m.firstShort() != nil
	for _, c := range m.ordered {
		if !c.flex() || !c.known || c.wants() || c.state.suspended() || !c.ready(m.now) || c.limit >= c.Max || short && c.place.standing == yielding {
			continue
		}
		left := unkept - kept
		near, plenty := m.p.Ahead > 0 && c.anonymous+c.mapped >= resource.Amount((1-m.p.Ahead)*float64(c.limit)), left
		if near && !short {
			plenty = unkept - m.keptFrom(c)
		}
		// What is left must be worth more than this one growth: others may be out of memory any moment.
		if near && plenty > c.limit {
			unkept -= m.grow(c, m.p.AheadRatio, plenty, Reason{Code: NearLimit, A: int64(c.anonymous + c.mapped), B: int64(c.limit)})
			c.lastShort = moment{m.now, true}
		} else if c.thrashes && !short && left > 0 && m.p.Ahead > 0 {
			unkept -= m.grow(c, m.p.AheadRatio, left, Reason{Code: FilesComeBack, A: int64(c.mapped), B: int64(c.limit)})
		} else if spare := max(0, c.limit-c.demand()); m.p.Lend > 0 && !short && spare < m.headroom(left+spare)/2 {
			more := min(m.headroom(left+spare)-spare, c.Max-c.limit)
			if more > c.minGrowth() {
				m.order(Grow, c, c.limit+more, Reason{Code: RoomToSpare, A: int64(left)})
				c.lastShort = moment{m.now, true}
				unkept -= more
			}
		}
	}
}

// lent is what a container may have above what it holds, of what is left and what it has so already, while nobody is out of
// memory.
func (m *Manager) headroom(left resource.Amount) resource.Amount {
	return max(0, resource.Amount(m.p.Lend*float64(left)))
}

// shrinkSlack takes back what a puffed container does not use (section 4.3.1), once it has not needed more for a while.
func (m *Manager) shrinkSlack() {
	left := m.left()
	for _, c := range m.ordered {
		if !c.flex() || !c.grown || !c.known || !c.ready(m.now) || c.state.suspended() || c.keeps(m.now, m.p.Hold) {
			continue
		}
		// Mapped files cost nobody anything until somebody asks.
		holds := c.demand() + c.mapped
		fits := max(c.Min, m.fits(holds))
		// What is not worth the trouble stays: a tenth of what it holds already.
		if fits < c.limit-c.limit/10 && c.limit-holds > 2*m.headroom(left+c.limit-holds) {
			m.order(Shrink, c, fits, Reason{Code: Slack, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}
