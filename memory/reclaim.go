package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// serveRequests admits containers that are to start, in the order in which they asked first, and reclaims memory for those
// that do not fit (section 4.3.1, Reclaim; lazily: only now).
func (m *Manager) serveRequests() {
	short := m.firstShort()
	if short != nil && short.place.standing == yielding { // only those that yield are: perhaps they wait for what is to start
		short = nil
	}
	free := m.node.Memory - m.Allocated()
	for i := 0; i < len(m.requests); {
		r := &m.requests[i]
		if r.claim {
			i++
			continue
		}
		answer, why := m.consider(r, free, m.requests[:i], short)
		switch answer {
		case Admit:
			m.answer(Admit, r.Container, why)
			m.add(&Started{Envelope: r.Envelope})
			free -= r.Min
			m.requests = slices.Delete(m.requests, i, i+1)
		case Refuse:
			if r.Class == cluster.Flex {
				m.flexRefused = moment{m.now, true}
			}
			if m.refuse(i, why) {
				i++
			}
		default:
			i = len(m.requests) // what it lacks is coming free
		}
	}
	m.sort()
}

// consider says what to answer to a request; nothing, and why has no meaning, if that will be known when the kernel has done
// what it is doing. A claim that what is free would meet comes before it; a FLEX one comes after all claims.
func (m *Manager) consider(r *request, free resource.Amount, before []request, short *container) (answer ActionKind, why Reason) {
	kept := metBy(before, free)
	if r.Class == cluster.Flex {
		if short != nil && m.strategy.shortFirst {
			return Refuse, Reason{Code: OthersWait, A: int64(r.Min), B: int64(short.Rank)}
		}
		if kept = metBy(before, m.node.Memory); kept > 0 && r.Min > free-kept {
			return Refuse, Reason{Code: RegularWaits, A: int64(r.Min), B: int64(kept)}
		}
	}
	if free -= kept; r.Min <= free {
		return Admit, Reason{Code: Free, A: int64(r.Min)}
	}
	if !m.strategy.reclaims {
		return Refuse, Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(max(0, free))}
	}
	m.sort()
	need := r.Min - free - m.comingFree()
	if need <= 0 {
		return 0, Reason{}
	}
	why, possible := m.couldGive(r, need)
	if !possible && m.comingFree() == 0 && !m.busyFlex(r) {
		return Refuse, why
	}
	if possible {
		m.accept(Reason{Code: NeededByOther, A: int64(r.Min)})
	}
	return 0, Reason{}
}

// mayTake says what may be taken for a container that is to start. A FLEX one does not make others swap: that would be
// meaningless (section 4.3.2).
func (m *Manager) mayTake(r *request) reach {
	if r.Class != cluster.Flex {
		return runningToo
	}
	return m.strategy.flexTakes
}

// fitNode takes back what the node no longer has.
func (m *Manager) fitNode() {
	if !m.strategy.reclaims {
		return
	}
	if over := m.Allocated() - m.comingFree() - m.node.Memory; over > 0 {
		m.collect(over, nil, runningToo)
		m.accept(Reason{Code: NodeSmaller, A: int64(m.node.Memory)})
	}
}

// firstShort returns the first container that is out of memory, nil if none is: another FLEX container beside it would
// soon be out of memory too.
func (m *Manager) firstShort() *container {
	for _, c := range m.ordered {
		if c.wants() {
			return c
		}
	}
	return nil
}

// busyFlex reports whether a container that could give is in the middle of an action. What it can give is known when that is
// over, at the latest when its time is; until then nothing grows.
func (m *Manager) busyFlex(r *request) bool {
	for _, c := range m.ordered {
		if r.Class != cluster.Flex && c.flex() && c.pending != nil && c.room() > c.Min {
			return true
		}
	}
	return false
}

// couldGive collects so much from FLEX containers and reports whether they could give it.
func (m *Manager) couldGive(r *request, need resource.Amount) (why Reason, possible bool) {
	far := m.mayTake(r)
	if m.collect(need, nil, far) >= need {
		return Reason{}, true
	}
	var most resource.Amount
	for _, c := range m.ordered {
		switch far {
		case runningToo:
			gives, _ := m.gives(c, 0, c.limit, false)
			most += gives
		case untouchedOnly:
			if gives := m.untouched(c); c.place.standing != yielding {
				most += gives
			} else {
				gives, _ = m.gives(c, 0, c.limit, false)
				most += gives
			}
		}
	}
	if most < need {
		return Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(most)}, false
	}
	return Reason{Code: NoSwapLeft, A: int64(r.Min), B: int64(m.node.SwapFree)}, false
}

// gives returns how much c could give beside what it gives already, and how much would then go to swap in all. It keeps its
// least, unless it is squeezed: then it must stand still until it has that again.
func (m *Manager) gives(c *container, already, need resource.Amount, squeeze bool) (gives, swapped resource.Amount) {
	if !c.flex() || !c.ready(m.now) {
		return 0, 0
	}
	least := c.Min
	if squeeze && c.HeartbeatTimeout == 0 && c.place.standing != yielding {
		least = resource.Amount(m.p.Squeeze * float64(c.Min))
	}
	least = max(least, c.fixed(m.now))
	gives = max(0, min(need, c.limit-already-least))
	return gives, max(0, c.anonymous-(c.limit-already-gives))
}

// fixed is what cannot be taken from c, whatever is done.
func (c *container) fixed(now timeline.Time) resource.Amount {
	if now < c.floor.until {
		return max(c.locked, c.floor.limit)
	}
	return c.locked
}

// slack is what c could give without swapping.
func (c *container) slack() resource.Amount {
	if !c.known {
		return 0
	}
	return max(0, c.limit-max(c.Min, c.anonymous))
}

// untouched is what c could give and most likely not miss: what is above the most that it needed within Hold, and a little more. While swap
// is full who was out of memory lately keeps all: it must not come near its limit.
func (m *Manager) untouched(c *container) resource.Amount {
	if !c.flex() || !c.known || c.state.suspended() || !c.ready(m.now) || m.node.SwapFull && c.keeps(m.now, m.p.Hold) {
		return 0
	}
	return max(0, c.limit-max(c.Min, m.fits(c.peak)))
}

// spare is what c, which comes first, could give to one that stands still: if it was not out of memory within Hold, all but a
// fiftieth that it does not need. If swap is full it must not come near its limit.
func (m *Manager) spare(c *container) resource.Amount {
	if untouched := m.untouched(c); c.state.suspended() || m.node.SwapFull || c.keeps(m.now, m.p.Hold) || !c.flex() || !c.known || !c.ready(m.now) {
		return untouched
	}
	return max(0, c.limit-max(c.Min, c.peak+c.peak/50))
}

// fits is the limit of a container that holds so much: what it keeps above that (section 4.3.1), and what it would be grown
// by at once if it had less.
func (m *Manager) fits(holds resource.Amount) resource.Amount {
	ahead := resource.Amount(float64(holds) * m.p.Ahead / (1 - m.p.Ahead))
	return holds + ahead + min(m.p.SlackBytes, resource.Amount(m.p.SlackShare*float64(holds)))
}

// reach is from whom memory may be taken.
type reach uint8

const (
	nothing       reach = iota
	untouchedOnly       // what containers never touched, and what those hold that yield
	suspendedToo        // and what those hold that stand still already, or yield
	runningToo          // and those that run, which are suspended for it
)

// gift is what one container gives.
type gift struct {
	from           *container
	bytes, swapped resource.Amount
	later          bool // it comes after the one that it is for
}

// collect finds out who would give how much, until so much would come free: first what nobody uses; then the suspended, the
// last of all first; then those that run. It takes only what was never touched from those before the one that it is for, and
// nothing from REGULAR ones. For nil all come after it. It returns what would come free; accept takes it.
func (m *Manager) collect(need resource.Amount, protect *container, far reach) (freed resource.Amount) {
	m.gifts = m.gifts[:0]
	later := true
	for i := len(m.ordered) - 1; i >= 0; i-- {
		if c := m.ordered[i]; c == protect {
			later = false
		} else {
			m.gifts = append(m.gifts, gift{from: c, later: later})
		}
	}
	swapLeft := m.node.SwapFree - m.promisedSwap()
	take := func(squeeze bool, most func(g *gift) resource.Amount) {
		for i := range m.gifts {
			g := &m.gifts[i]
			if freed >= need {
				return
			}
			more, swapped := m.gives(g.from, g.bytes, min(need-freed, most(g)), squeeze && protect != nil)
			if over := swapped - g.swapped - swapLeft; over > 0 {
				more, swapped = more-over, swapped-over
			}
			if more <= 0 {
				continue
			}
			freed, swapLeft = freed+more, swapLeft-(swapped-g.swapped)
			g.bytes, g.swapped = g.bytes+more, swapped
		}
	}
	if far >= untouchedOnly {
		take(false, func(g *gift) resource.Amount {
			switch {
			case g.later && far > untouchedOnly:
				return g.from.slack()
			case protect != nil && protect.state.suspended():
				return m.spare(g.from)
			}
			return m.untouched(g.from)
		})
	}
	if far == untouchedOnly {
		take(false, func(g *gift) resource.Amount { return g.allIf(g.from.place.standing == yielding) })
	}
	if far >= suspendedToo {
		take(true, func(g *gift) resource.Amount { return g.allIf(g.later && g.from.inactive()) })
	}
	if far >= runningToo {
		take(true, func(g *gift) resource.Amount { return g.allIf(g.later && !g.from.inactive()) })
	}
	return freed
}

// allIf is all that the container has, if it may be taken.
func (g *gift) allIf(may bool) resource.Amount {
	if may {
		return g.from.limit
	}
	return 0
}

// accept takes what was collected.
func (m *Manager) accept(why Reason) {
	for _, g := range m.gifts {
		if g.bytes == 0 {
			continue
		}
		if !g.from.state.suspended() && (g.swapped > 0 || g.from.limit-g.bytes < g.from.Min) {
			g.from.suspend(m.now, why)
		}
		m.order(Shrink, g.from, g.from.limit-g.bytes, why)
	}
}

// promisedSwap is what shrinking under way will still write to swap.
func (m *Manager) promisedSwap() resource.Amount {
	var a resource.Amount
	for _, c := range m.ordered {
		if c.pending != nil && c.pending.Kind == Shrink {
			a += max(0, c.anonymous-c.target)
		}
	}
	return a
}
