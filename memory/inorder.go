package memory

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// inOrder replaces the shares of Algorithm 1. A container that is short gets all that it lacks or nothing, in order: of what is
// free, of what others never touched, of what those after it hold that are suspended already; the first that runs also of those
// after it that run, which are suspended for it, the last first. One at a time is brought back from swap. Nobody is killed unless
// the first could then have what it lacks, and nothing runs whose end it could wait for. Who was suspended for too long has its
// turn: it comes before all others for a while.
var inOrder = strategy{reclaims: true, shortFirst: true, flexTakes: untouchedOnly, limitSuspensions: (*Manager).takeTurns,
	grow: (*Manager).serveInOrder}

// round is what is still to be given in one step.
type round struct {
	left   resource.Amount // free now
	kept   resource.Amount // of that and what comes free, for REGULAR containers that were refused
	coming resource.Amount // about to be freed, and promised to nobody
	before resource.Amount // what those that were passed could spare
	growth resource.Amount // what those of them that run are likely to need next
	paging bool            // the swap device is busy with one container
	tries  int             // how often others were asked to give
}

// mostTries bounds the work of one step: what is left over is done when these have given.
const mostTries = 16

// serveInOrder gives containers that are out of memory all that they lack, or nothing: what is free, what is about to become
// free, and what can be taken from others. Memory is not spread over containers of which none could run with it; nor is the
// swap device: one at a time is brought back from it, so that the first runs as soon as it can.
func (m *Manager) serveInOrder() {
	m.sumLater()
	r := round{left: m.unkept(), kept: m.claimed(), coming: m.comingFree(), paging: m.paging()}
	runs, wanted := false, false
	for _, c := range m.ordered {
		if !c.flex() {
			continue
		}
		firstToRun, firstToWant := !runs, !wanted
		runs = runs || !c.state.suspended()
		if !c.wants() {
			r.before += m.spare(c)
			r.growth += m.growth(c)
			continue
		}
		wanted, c.mayPage = true, c.mayPage && c.place.standing == yielding
		if !c.ready(m.now) || c.state.suspended() && r.paging {
			continue
		}
		kept := r.kept
		if firstToWant {
			kept = m.keptFrom(c)
		}
		served, freed := m.serve(c, &r, kept, firstToRun)
		switch {
		case served || !firstToWant:
		// While something is kept from it for claims, it waits until those are met.
		case kept == 0 && r.coming == 0 && (c.place.standing == onTurn && firstToRun || !m.willEnd(c)):
			m.makeDo(c, r.left, freed)
			r.left = 0
		case m.waitedLong(c):
			m.letPage(c)
		}
	}
}

// serve gives c all that it lacks, now or when it has come free, if that can be had beside what is kept from it. freed is
// what others could give.
func (m *Manager) serve(c *container, r *round, kept resource.Amount, firstToRun bool) (served bool, freed resource.Amount) {
	if c.state.suspended() {
		kept += r.growth // lest it is taken again
	}
	least := min(c.lacks()+c.minGrowth(), c.Max-c.limit)
	most := min(c.lacks()+resource.Amount(m.p.PuffRatio*float64(c.limit)), c.Max-c.limit)
	if r.left >= least+kept {
		more := min(most, r.left-kept)
		m.order(Grow, c, c.limit+more, Reason{Code: RoomToGrow, A: int64(r.left)})
		r.left, r.paging = r.left-more, r.paging || c.pagesIn()
		return true, 0
	}
	if r.left+r.coming >= least+kept {
		r.coming -= max(0, least-max(0, r.left))
		r.left = max(0, r.left-least)
		return true, 0
	}
	// Programs are stopped only for the first that could run: that another runs instead of them gains nothing, and costs the
	// way to swap and back.
	far := suspendedToo
	if firstToRun {
		far = runningToo
	}
	free := r.left + r.coming
	if r.tries == mostTries || !firstToRun && free+r.before+c.fromLater < least+kept {
		return false, 0
	}
	r.tries++
	if freed = m.collect(most+kept-free, c, far); freed < least+kept-free {
		return false, freed
	}
	m.accept(Reason{Code: NeededByFirst, A: int64(c.Rank)})
	r.left, r.coming = 0, 0
	return true, freed
}

// makeDo gives the first that is out of memory what there is if it can never have all.
func (m *Manager) makeDo(c *container, left, collected resource.Amount) {
	switch {
	case c.belowMin() && c.limit+left < c.Min: // it is about to stand still
	case left > c.minGrowth():
		m.order(Grow, c, c.limit+min(left, c.Max-c.limit), Reason{Code: RoomToGrow, A: int64(left)})
	case collected > c.minGrowth():
		m.accept(Reason{Code: NeededByFirst, A: int64(c.Rank)})
	default:
		m.killSparingly(c, m.lastFlex())
	}
}

// growth is what a container that runs is likely to need soon if it was out of memory lately.
func (m *Manager) growth(c *container) resource.Amount {
	if c.state.suspended() || !c.keeps(m.now, m.p.Hold) {
		return 0
	}
	return max(0, min(c.Max, m.fits(c.peak))-c.limit)
}

// pagesIn reports whether more memory lets c come back from swap.
func (c *container) pagesIn() bool { return c.state.suspended() && c.swap > 0 }

// paging reports whether the swap device is bringing a container back or taking one in.
func (m *Manager) paging() bool {
	for _, c := range m.ordered {
		if c.pending == nil {
			continue
		}
		if c.pending.Kind == Grow && c.pagesIn() || c.pending.Kind == Shrink && c.anonymous > c.pending.Limit {
			return true
		}
	}
	return false
}

// sumLater notes for each container what those behind it could give without being stopped, or are stopped already.
func (m *Manager) sumLater() {
	var sum resource.Amount
	for i := len(m.ordered) - 1; i >= 0; i-- {
		c := m.ordered[i]
		c.fromLater = sum
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

// killSparingly kills the last for the first if the first could then have what it lacks, and nothing runs whose end it could wait
// for; meanwhile the first runs with what it has. Whose place or turn comes of a long suspension kills nobody: the two would kill
// each other for ever. Nor is anybody killed for having yielded.
func (m *Manager) killSparingly(first, last *container) {
	switch patient := m.now.Sub(first.shortSince) < m.p.KillPatience; {
	case m.comingFree() > 0:
	case first == last || first.place.standing == onTurn || m.willEnd(first) || last.place.standing == yielding || !m.wouldHelp(first) || patient:
		m.letPage(first)
	case last.ready(m.now):
		m.order(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// letPage lets a container run, or go on, for which nothing more can come.
func (m *Manager) letPage(c *container) {
	if !c.state.suspended() && m.nothingToWaitFor(c) {
		c.mayPage = true
		return
	}
	m.resumeToPage(c)
}

// wouldHelp reports whether first could get what it lacks from those that come after it, beside the claims that would be met.
func (m *Manager) wouldHelp(first *container) bool {
	could := m.unkept()
	for _, c := range m.ordered {
		if c.flex() && byPlace(c, first) > 0 {
			could += c.room()
		}
	}
	return could-metBy(m.requests, could) >= first.lacks()
}

// takeTurns gives containers their turn that have been suspended for longer than they may be.
func (m *Manager) takeTurns() {
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

// turn is how long the turn of c takes: as long as it may be suspended, and at least as long as it was, or what it takes to swap
// others out for it and back would leave no time to get on.
func (m *Manager) turn(c *container) time.Duration { return max(m.tolerance(c), c.lastSuspension) }

// endTurns ranks containers again whose turn is over.
func (m *Manager) endTurns() {
	for _, c := range m.ordered {
		if c.place.standing == onTurn && !c.state.suspended() && m.now.Sub(c.changedAt) >= m.turn(c) {
			m.move(c, m.p.ranked(&c.Envelope))
		}
	}
	m.sort()
}
