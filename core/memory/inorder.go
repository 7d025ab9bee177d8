package memory

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// inOrder is our strategy. In the order of places, a container that is short gets all memory that it lacks, or none.
// The memory comes from what is free, then from what other containers never touched, then from inactive containers
// that come later. For the first container that runs it also comes from running containers that come later, the last
// one first; they are suspended for it. Memory is not divided among containers that could not run with their part of
// it. Nor is the swap device: one container at a time is brought back from swap, so that the first one runs as soon
// as possible.
//
// A container is killed only if the first container could then have what it lacks, and no container runs for whose
// end the first could wait. A container that was suspended for too long is not killed, but has its turn: it comes
// before all others for a while.
var inOrder = strategy{reclaims: true, shortFirst: true, flexTakes: untouchedOnly,
	limitSuspensions: (*Manager).takeTurns, grow: (*Manager).serveInOrder}

// round is the memory that can still be given while containers are served in one step.
type round struct {
	available resource.Amount // claimed + free, as in the ledger
	claimed   resource.Amount
	coming    resource.Amount // without what was promised to containers in this round
	owed      resource.Amount // as in the ledger
	swapBusy  bool            // the swap device is busy with one container

	// Of the containers that were passed over because they are not short:
	spare  resource.Amount // what they could give
	growth resource.Amount // what the running ones are likely to need next

	fromLater resource.Amount // what containers after the present one could give without any being suspended

	searches int // for memory of other containers
}

// mostSearches bounds the work of one step. Containers that are not served are served in a later step, when the
// searches have freed memory.
const mostSearches = 16

// serveInOrder gives containers that are short all that they lack, or nothing.
func (m *Manager) serveInOrder() {
	serve := (*Manager).serveSwapping
	if m.dry() {
		serve = (*Manager).serveDry
	}
	serve(m)
	m.serveBound(serve)
}

// serveSwapping is serveInOrder where memory can be swapped out.
func (m *Manager) serveSwapping() {
	m.sumLater()
	l := m.ledger()
	r := round{available: l.available(), claimed: l.claimed, coming: l.coming, owed: l.owed,
		swapBusy: m.swapBusy()}
	anyRuns, anyShort := false, false
	bank := m.bank()
	for i, c := range m.ordered {
		if !c.flex() || m.bound(c) {
			continue
		}
		r.fromLater = m.later[i]
		firstToRun, firstShort := !anyRuns, !anyShort
		if c.fillsSwap(m.now, m.p.Hold) {
			if _, c.held = bank.lets(c, !anyShort || c.owed > 0); c.held {
				continue
			}
		}
		if !c.wants() {
			anyRuns = anyRuns || !c.state.suspended()
			r.spare += m.spare(c)
			r.growth += m.growth(c)
			continue
		}
		most, waits := bank.lets(c, !anyShort || c.owed > 0)
		if c.held = waits; waits {
			c.mayPage = false
			continue
		}
		anyRuns = anyRuns || !c.state.suspended()
		anyShort, c.mayPage = true, c.mayPage && c.place.standing == yielding
		if !c.ready(m.now) || c.state.suspended() && r.swapBusy {
			continue
		}
		withheld := r.claimed
		if firstShort || c.owed > 0 {
			withheld = m.withheldFrom(c)
		}
		if c.owed == 0 {
			withheld += r.owed
		}
		owed := c.owed
		served, found := m.serve(c, &r, withheld, most, firstToRun)
		r.owed -= owed - c.owed
		bank.stale = bank.stale || served
		switch {
		case served || !firstShort:
		case withheld == 0 && r.coming == 0 && (c.place.standing == onTurn && firstToRun || !m.willEnd(c)):
			// There is nothing that it could wait for, or it is its turn.
			m.makeDo(c, min(r.available, most), min(found, most))
			r.available = 0
		case m.waitedLong(c):
			m.letPage(c)
		}
	}
}

// serve gives c all that it lacks from one of three sources, if the source has enough beyond what is withheld from c.
// found is what a search in other containers has found; it is taken only if c is served. c may grow by may.
func (m *Manager) serve(c *container, r *round, withheld, may resource.Amount, firstToRun bool) (served bool,
	found resource.Amount) {
	if c.state.suspended() {
		withheld += r.growth // or it would soon be taken from c again
	}
	least := m.leastGrowth(c)
	most := min(c.lacks()+resource.Amount(m.p.PuffRatio*float64(c.limit)), c.Max-c.limit, may, m.left(c))

	// 1. What is available.
	if r.available >= least+withheld {
		more := min(most, r.available-withheld)
		m.order(Grow, c, c.limit+more, Reason{Code: RoomToGrow, A: int64(r.available)})
		r.available, r.swapBusy = r.available-more, r.swapBusy || c.pagesIn()
		return true, 0
	}

	// 2. What is coming: it is promised to c, which grows in a later step.
	if r.available+r.coming >= least+withheld {
		r.coming -= max(0, least-max(0, r.available))
		r.available = max(0, r.available-least)
		return true, 0
	}

	if c.owed > 0 && m.ledger().coming > 0 {
		return false, 0 // other owners are about to give it
	}

	// 3. What other containers hold. Running containers are suspended only for the first one that could run: to run
	// another one in their place gains nothing, and costs the way to swap and back.
	far := suspendedToo
	if firstToRun {
		far = runningToo
	}
	soon := r.available + r.coming
	if r.searches == mostSearches || !firstToRun && soon+r.spare+r.fromLater < least+withheld {
		return false, 0
	}
	r.searches++
	if found = m.collect(most+withheld-soon, c, &c.Envelope, far); found < least+withheld-soon {
		return false, found
	}
	m.accept(Reason{Code: NeededByFirst, A: int64(c.Rank)})
	r.available, r.coming = 0, 0
	return true, found
}

// makeDo gives c, the first container that is short, the memory that there is, because c can never have all that it
// lacks. found is what collect has planned.
func (m *Manager) makeDo(c *container, available, found resource.Amount) {
	switch {
	case c.belowMin(): // what there is would not bring it to its Min: it is about to be suspended
	case available > c.minGrowth():
		m.order(Grow, c, c.limit+min(available, c.Max-c.limit, m.left(c)), Reason{Code: RoomToGrow, A: int64(available)})
	case found > c.minGrowth():
		m.accept(Reason{Code: NeededByFirst, A: int64(c.Rank)})
	default:
		m.killSparingly(c, m.lastFlex())
	}
}

// killSparingly kills last for first if first could then have what it lacks, and no container runs for whose end
// first could wait; otherwise first runs with what it has. No container is killed for one that has its turn: the two
// would kill each other for ever. A container that yields is not killed. Where the manager banks, none is killed, but
// once swap has no room left, the youngest is requeued that may be.
func (m *Manager) killSparingly(first, last *container) {
	switch patient := m.now.Sub(first.shortSince) < m.p.KillPatience; {
	case m.ledger().coming > 0:
	case m.banks():
		if victim := m.requeueable(first); victim != nil && !patient && !m.willEnd(first) {
			m.requeue(victim, Reason{Code: Requeued, A: int64(first.Rank)})
		} else {
			m.letPage(first)
		}
	case first == last || first.place.standing == onTurn || m.willEnd(first) || last.place.standing == yielding ||
		!m.wouldHelp(first) || patient:
		m.letPage(first)
	case last.ready(m.now):
		m.order(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// requeueable returns the youngest container that may be requeued for first, where swap has no room left; nil if there
// is none.
func (m *Manager) requeueable(first *container) *container {
	if m.swapRoom() > 0 {
		return nil
	}
	l := m.ledger()
	return m.youngest(first, first.lacks()-l.available(), !m.goesOn(first))
}

// wouldHelp reports whether first could get what it lacks from the FLEX containers that come after it, beyond the
// claims that their rooms would meet.
func (m *Manager) wouldHelp(first *container) bool {
	l := m.ledger()
	could := l.available()
	for _, c := range m.ordered {
		if c.flex() && byPlace(c, first) > 0 {
			could += c.room()
		}
	}
	return could-metBy(m.requests, could) >= first.lacks()
}

// letPage lets a container that is short page, whether it runs or is suspended, if it has nothing to wait for.
func (m *Manager) letPage(c *container) {
	if !c.state.suspended() && m.nothingToWaitFor(c) {
		c.mayPage = true
		return
	}
	m.resumeToPage(c)
}

// growth is what a container that runs is likely to need soon if it was short lately.
func (m *Manager) growth(c *container) resource.Amount {
	if c.state.suspended() || !c.keeps(m.now, m.p.Hold) {
		return 0
	}
	return max(0, min(c.Max, m.fits(c.peak))-c.limit)
}

// pagesIn reports whether more memory lets c come back from swap.
func (c *container) pagesIn() bool { return c.state.suspended() && c.swap > 0 }

// swapBusy reports whether the swap device is bringing a container back or taking one in.
func (m *Manager) swapBusy() bool {
	for _, c := range m.ordered {
		if c.doing(Grow) && c.pagesIn() || c.doing(Shrink) && c.anonymous > c.pending.Limit {
			return true
		}
	}
	return false
}

// sumLater notes for each container, as ordered, what the containers after it could give: inactive ones all, running
// ones their slack.
func (m *Manager) sumLater() {
	m.later = slices.Grow(m.later[:0], len(m.ordered))[:len(m.ordered)]
	var sum resource.Amount
	for i := len(m.ordered) - 1; i >= 0; i-- {
		c := m.ordered[i]
		m.later[i] = sum
		if c.inactive() {
			gives, _ := m.gives(c, 0, c.limit, true)
			sum += gives
		} else if c.flex() {
			sum += c.slack()
		}
	}
}

// lastFlex is the last FLEX container; there is one.
func (m *Manager) lastFlex() *container {
	for i := len(m.ordered) - 1; ; i-- {
		if m.ordered[i].flex() {
			return m.ordered[i]
		}
	}
}

// takeTurns gives containers their turn that have been suspended for longer than they may be. Turns that are over end
// before, or their containers would still come first.
func (m *Manager) takeTurns() {
	m.endTurns()
	if m.dry() { // a turn would free nothing
		return
	}
	for _, c := range m.ordered {
		may := m.tolerance(c)
		if !c.state.suspended() || may <= 0 || m.now.Sub(c.suspendedAt) < may || c.place.standing == onTurn {
			continue
		}
		m.turns++
		at := m.p.ranked(&c.Envelope)
		at.standing, at.turn = onTurn, m.turns
		m.move(c, at)
	}
	m.sort()
}

// turn is how long the turn of c takes: as long as it may be suspended, and at least as long as it was, or what it
// takes to swap others out for it and back would leave no time to get on.
func (m *Manager) turn(c *container) time.Duration { return max(m.tolerance(c), c.lastSuspension) }

// endTurns ranks containers again whose turn is over.
func (m *Manager) endTurns() {
	for _, c := range m.ordered {
		if c.place.standing == onTurn && !c.state.suspended() && m.now.Sub(c.changedAt) >= m.turn(c) {
			m.move(c, m.p.ranked(&c.Envelope))
		}
	}
}
