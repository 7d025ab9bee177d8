package memory

import (
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// fitNode takes memory back when the node has less than the containers hold.
func (m *Manager) fitNode() {
	if !m.strategy.reclaims {
		return
	}
	l, why := m.ledger(), Reason{Code: NodeSmaller, A: int64(m.node.Memory)}
	lost := l.allocated - l.coming - l.memory
	if lost > 0 {
		lost = m.fitExcess(lost, why)
	}
	switch {
	case lost <= 0:
	case m.dry():
		m.fitDry(lost, why)
	default:
		m.collect(lost, nil, nil, runningToo)
		m.accept(why)
	}
}

// gives returns how much of need c could give in addition to what it gives already, and how much would then go to
// swap in total. c keeps its Min, unless it is squeezed: then it must be suspended until it has its Min again.
func (m *Manager) gives(c *container, already, need resource.Amount, squeeze bool) (gives, swapped resource.Amount) {
	if !c.flex() || !c.ready(m.now) {
		return 0, 0
	}
	keeps := c.Min
	if squeeze && c.HeartbeatTimeout == 0 && c.place.standing != yielding {
		keeps = resource.Amount(m.p.Squeeze * float64(c.Min))
	}
	keeps = max(keeps, c.fixed(m.now))
	gives = max(0, min(need, c.limit-already-keeps))
	return gives, max(0, c.anonymous-(c.limit-already-gives))
}

// fixed is the limit below which c cannot be shrunk.
func (c *container) fixed(now timeline.Time) resource.Amount {
	return max(c.locked, c.floor.now(now))
}

// slack is what c could give without swapping anything out.
func (c *container) slack() resource.Amount {
	if !c.known {
		return 0
	}
	return max(0, c.limit-max(c.Min, c.anonymous))
}

// untouched is what c could give and most likely not miss, once no action of it is under way.
func (m *Manager) untouched(c *container) resource.Amount {
	if !c.ready(m.now) {
		return 0
	}
	return m.neverTouched(c)
}

// neverTouched is the limit of c above the most that it needed within Hold, with headroom. While swap is full, a
// container that was recently short keeps everything: it must not come near its limit.
func (m *Manager) neverTouched(c *container) resource.Amount {
	if !c.flex() || !c.known || c.state.suspended() || m.node.SwapFull && c.keeps(m.now, m.p.Hold) {
		return 0
	}
	return max(0, c.limit-max(c.Min, m.fits(c.peak)))
}

// Untouched is how much of Allocated containers never touched of late and are not about to touch, bytes: a container
// that is to start gets it as it gets free memory. A container that grew within Hold is expected to grow as much again:
// others that start on its memory would make both of them page. It is 0 where nothing is lent, or not taken back for a
// start.
func (m *Manager) Untouched() (sum resource.Amount) {
	if m.p.Lend <= 0 || m.strategy.flexTakes == none || m.dry() {
		return 0
	}
	for _, c := range m.ordered {
		sum += max(0, m.neverTouched(c)-c.grew())
	}
	return sum
}

// spare is what c could give to a suspended container that comes after it: if c was not short within Hold, its limit
// above the most that it needed and a fiftieth more. While swap is full, c must not come near its limit.
func (m *Manager) spare(c *container) resource.Amount {
	if untouched := m.untouched(c); c.state.suspended() || m.node.SwapFull || c.keeps(m.now, m.p.Hold) || !c.flex() ||
		!c.known || !c.ready(m.now) {
		return untouched
	}
	return max(0, c.limit-max(c.Min, c.peak+c.peak/50))
}

// fits is the limit that suits a container which holds the given memory: with the slack that it keeps (section
// 4.3.1), and with the headroom without which it would at once be grown ahead of need.
func (m *Manager) fits(holds resource.Amount) resource.Amount {
	ahead := resource.Amount(float64(holds) * m.p.Ahead / (1 - m.p.Ahead))
	return holds + ahead + min(m.p.SlackBytes, resource.Amount(m.p.SlackShare*float64(holds)))
}

// reach says from which containers memory may be taken.
type reach uint8

const (
	none          reach = iota
	untouchedOnly       // what containers never touched, and what yielding containers hold
	suspendedToo        // what containers never touched, and what later inactive containers hold
	runningToo          // the same, and what later running containers hold, which are suspended for it
)

// gift is what is to be taken from one container.
type gift struct {
	from           *container
	bytes, swapped resource.Amount // in all, and how much of what it holds then goes to swap
	later          bool            // it comes after the container that the gift is for, or is held back
}

// collect plans from which containers memory is taken until need is met, the last container first: first unused
// memory, then the memory of inactive containers, then that of running ones. protect is the container that the memory
// is for: containers before it give only what they never touched. If protect is nil, all containers count as later.
// REGULAR containers give nothing. collect returns how much would come free; accept carries out the plan of the last
// call. Owners give to a container of another owner, of, what they take beyond their share; without of, all.
func (m *Manager) collect(need resource.Amount, protect *container, of *Envelope, far reach) (freed resource.Amount) {
	m.gifts = m.gifts[:0]
	shares := m.excessesFor(of)
	later := true
	for i := len(m.ordered) - 1; i >= 0; i-- {
		if c := m.ordered[i]; c == protect {
			later = false
		} else {
			m.gifts = append(m.gifts, gift{from: c, later: (later || c.held && c.state.suspended()) && shares.left(c, 1) > 0})
		}
	}
	swapLeft := m.swapRoom() - m.promisedSwap()
	take := func(squeeze bool, shares excesses, most func(g *gift) resource.Amount) {
		for i := range m.gifts {
			g := &m.gifts[i]
			if freed >= need {
				return
			}
			more, swapped := m.gives(g.from, g.bytes, shares.left(g.from, min(need-freed, most(g))), squeeze && protect != nil)
			if over := swapped - g.swapped - swapLeft; over > 0 {
				more, swapped = more-over, swapped-over
			}
			if more <= 0 {
				continue
			}
			freed, swapLeft = freed+more, swapLeft-(swapped-g.swapped)
			g.bytes, g.swapped = g.bytes+more, swapped
			shares.take(g.from, more)
		}
	}
	unused := func(g *gift) resource.Amount {
		switch {
		case shares.bounds(g.from) && g.from.keeps(m.now, m.p.Hold): // it was given that lately
			return 0
		case g.later && far > untouchedOnly && !shares.bounds(g.from):
			return g.from.slack()
		case protect != nil && protect.state.suspended() && !shares.bounds(g.from):
			return m.spare(g.from)
		}
		return m.untouched(g.from)
	}
	switch far {
	case untouchedOnly:
		take(false, nil, unused)
		take(false, shares, func(g *gift) resource.Amount { return g.allIf(g.from.place.standing == yielding) })
	case suspendedToo, runningToo:
		take(false, nil, unused)
		take(true, shares, func(g *gift) resource.Amount { return g.allIf(g.later && g.from.inactive()) })
		if far == runningToo {
			take(true, shares, func(g *gift) resource.Amount { return g.allIf(g.later && !g.from.inactive()) })
		}
	}
	return freed
}

// allIf is the whole limit of the container if that may be taken, else nothing.
func (g *gift) allIf(may bool) resource.Amount {
	if may {
		return g.from.limit
	}
	return 0
}

// accept carries out the plan of collect or collectDry. Containers are suspended that must swap for it or, if they
// cannot, would be at risk, or would have less than their Min.
func (m *Manager) accept(why Reason) {
	dry := m.dry()
	for _, g := range m.gifts {
		if g.bytes == 0 {
			continue
		}
		c, to := g.from, g.from.limit-g.bytes
		if !c.state.suspended() && (g.swapped > 0 || dry && to < m.calm(c.anonymous) || to < c.Min) {
			c.suspend(m.now, why)
		}
		m.order(Shrink, c, to, why)
	}
}

// promisedSwap is what the resizes under way will still write to swap.
func (m *Manager) promisedSwap() resource.Amount {
	var a resource.Amount
	for _, c := range m.ordered {
		if c.doing(Shrink) {
			a += max(0, c.anonymous-c.target)
		}
	}
	return a
}
