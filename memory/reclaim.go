package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// serveRequests admits containers that are to start, in the order in which they were asked for, and reclaims memory for
// those that do not fit (section 4.3.1, Reclaim; lazily: only now).
func (m *Manager) serveRequests() {
	for len(m.requests) > 0 {
		r := &m.requests[0]
		free := m.node.Memory - m.allocated()
		if short := m.firstShort(); r.Class == cluster.Flex && short != nil && m.p.ReclaimFirst {
			m.answer(Refuse, r.Container, Reason{Code: OthersWait, A: int64(r.Min), B: int64(short.Rank)})
			m.requests = slices.Delete(m.requests, 0, 1)
			continue
		}
		if r.Min <= free {
			m.answer(Admit, r.Container, Reason{Code: Free, A: int64(r.Min)})
			m.add(&Started{Envelope: r.Envelope})
			slices.SortFunc(m.ordered, byRank)
			m.requests = slices.Delete(m.requests, 0, 1)
			continue
		}
		if m.p.Uncoordinated {
			m.answer(Refuse, r.Container, Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(max(0, free))})
			m.requests = slices.Delete(m.requests, 0, 1)
			continue
		}
		need := r.Min - free - m.comingFree()
		if need <= 0 {
			return // under way
		}
		why, possible := m.couldGive(r, need)
		if !possible && m.comingFree() == 0 && !m.busyFlex(r) {
			m.answer(Refuse, r.Container, why)
			m.requests = slices.Delete(m.requests, 0, 1)
			continue
		}
		if possible {
			m.reclaim(need, nil, true, Reason{Code: NeededByOther, A: int64(r.Min)})
		}
		return
	}
}

// fit takes back what the node no longer has.
func (m *Manager) fit() {
	if m.p.Uncoordinated {
		return
	}
	if over := m.allocated() - m.comingFree() - m.node.Memory; over > 0 {
		m.reclaim(over, nil, true, Reason{Code: NodeSmaller, A: int64(m.node.Memory)})
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
func (m *Manager) busyFlex(r *Request) bool {
	for _, c := range m.ordered {
		if r.Class != cluster.Flex && c.flex() && c.pending != nil && c.room() > c.Min {
			return true
		}
	}
	return false
}

// couldGive reports whether FLEX containers could give so much. A FLEX container that is to start does not take from
// others: that would be meaningless (section 4.3.2).
func (m *Manager) couldGive(r *Request, need resource.Amount) (why Reason, possible bool) {
	var most, swapped resource.Amount
	if r.Class != cluster.Flex {
		for _, c := range m.ordered {
			gives, swaps := c.gives(m.now, 0, c.limit)
			most, swapped = most+gives, swapped+swaps
		}
	}
	if most < need {
		return Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(most)}, false
	}
	if short := swapped - m.node.SwapFree; short > 0 && most-short < need {
		return Reason{Code: NoSwapLeft, A: int64(r.Min), B: int64(m.node.SwapFree)}, false
	}
	return Reason{}, true
}

// gives returns how much c could give beside what it gives already, down to its least, and how much would then go to swap in
// all.
func (c *container) gives(now timeline.Time, already, need resource.Amount) (gives, swapped resource.Amount) {
	if !c.flex() || !c.idle(now) || c.limit-already <= c.Min {
		return 0, 0
	}
	gives = min(need, c.limit-already-c.Min)
	return gives, max(0, c.anonymous-(c.limit-already-gives))
}

// slack is what c could give without swapping.
func (c *container) slack() resource.Amount {
	if !c.read {
		return 0
	}
	return max(0, c.limit-max(c.Min, c.anonymous))
}

// gift is what one container gives.
type gift struct {
	from           *container
	bytes, swapped resource.Amount
}

// reclaim lowers limits of FLEX containers until so much comes free: first what nobody uses; then from suspended ones, the
// last of all first; then, if running ones may be suspended for it, from those. It never takes from those before protect,
// if that is not nil, nor from REGULAR ones. It returns what will come free.
func (m *Manager) reclaim(need resource.Amount, protect *container, running bool, why Reason) (freed resource.Amount) {
	gifts := m.donors(protect)
	swapLeft := m.node.SwapFree - m.promisedSwap()
	take := func(which func(c *container) bool, most func(c *container) resource.Amount) {
		for i := range gifts {
			g := &gifts[i]
			if freed >= need || !which(g.from) {
				continue
			}
			more, swapped := g.from.gives(m.now, g.bytes, min(need-freed, most(g.from)))
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
	all := func(c *container) resource.Amount { return c.limit }
	take(func(c *container) bool { return true }, (*container).slack)
	take(func(c *container) bool { return c.suspended }, all)
	if running {
		take(func(c *container) bool { return !c.suspended }, all)
	}
	for _, g := range gifts {
		if g.bytes == 0 {
			continue
		}
		if g.swapped > 0 && !g.from.suspended {
			g.from.why = why
			g.from.suspend(m.now)
		}
		m.ask(Shrink, g.from, g.from.limit-g.bytes, why)
	}
	return freed
}

// donors are the containers that come after protect, the last first.
func (m *Manager) donors(protect *container) []gift {
	var all []gift
	for i := len(m.ordered) - 1; i >= 0; i-- {
		if c := m.ordered[i]; protect == nil || byRank(c, protect) > 0 {
			all = append(all, gift{from: c})
		}
	}
	return all
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
