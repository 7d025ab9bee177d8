package memory

import (
	"github.com/bellows-rm/bellows/resource"
)

// puff grows containers that are out of memory (Algorithm 1): the first by φ of its limit, those of the next job that is out
// of memory by φ over the number of candidates, and so on; none by more than half of what is left.
func (m *Manager) puff() {
	if m.p.Interval > 0 && m.puffed && m.now.Sub(m.lastPuff) < m.p.Interval {
		return
	}
	if m.p.Uncoordinated {
		m.puffAlone()
		return
	}
	candidates := m.candidates()
	if len(candidates) == 0 {
		m.puffAhead()
		return
	}
	m.lastPuff, m.puffed = m.now, true
	if m.left()/2 <= candidates[0].least() {
		m.exhausted(candidates)
		return
	}
	ratio := m.p.PuffRatio
	kept := resource.Amount(0) // for the next growth of the first, lest it be taken from the others again
	if candidates[0].wants() {
		kept = resource.Amount(ratio * float64(candidates[0].limit))
	}
	var before *container // the last that was out of memory
	for i, c := range candidates {
		if !c.wants() {
			continue
		}
		if before != nil && before.place != c.place {
			ratio /= float64(len(candidates))
		}
		before = c
		left := m.left()
		if i > 0 && m.p.ReclaimFirst {
			left -= kept
		}
		if !c.idle(m.now) || !m.p.PuffFirst && !c.suspended {
			continue
		}
		m.grow(c, ratio, left, Reason{Code: RoomToGrow, A: int64(left)})
	}
	m.puffAhead()
}

// candidates are the containers that are out of memory or were not long ago, the first first.
func (m *Manager) candidates() []*container {
	var all []*container
	for _, c := range m.ordered {
		if c.wants() || c.flex() && c.limit < c.Max && c.holding(m.now, m.p.Hold) {
			all = append(all, c)
		}
	}
	return all
}

// least is the least growth that is worth a call: a hundredth of the limit. Halves of what is left never come to nothing.
func (c *container) least() resource.Amount { return c.limit / 100 }

// grow adds a share of its limit to c.
func (m *Manager) grow(c *container, ratio float64, left resource.Amount, why Reason) {
	more := min(resource.Amount(float64(c.limit)*ratio), left/2, c.Max-c.limit)
	if more > c.least() || more > 0 && c.limit+more == c.Max {
		m.ask(Grow, c, c.limit+more, why)
	}
}

// puffAhead grows containers that will soon be out of memory, while there is plenty.
func (m *Manager) puffAhead() {
	if m.p.Ahead <= 0 {
		return
	}
	for _, c := range m.ordered {
		if !c.flex() || !c.read || c.short || c.suspended || !c.idle(m.now) || c.limit >= c.Max {
			continue
		}
		near := resource.Amount((1 - m.p.Ahead) * float64(c.limit))
		// What is left must be worth more than this one growth: others may be out of memory any moment.
		if c.anonymous >= near && m.left() > c.limit {
			m.grow(c, m.p.AheadRatio, m.left(), Reason{Code: NearLimit, A: int64(c.anonymous), B: int64(c.limit)})
			c.lastShort, c.everShort = m.now, true
		}
	}
}

// puffAlone is the baseline KILL.
func (m *Manager) puffAlone() {
	for _, c := range m.ordered {
		if !c.wants() || !c.idle(m.now) {
			continue
		}
		m.lastPuff, m.puffed = m.now, true
		more := min(resource.Amount(float64(c.limit)*m.p.PuffRatio), c.Max-c.limit)
		if left := m.left(); more <= left {
			m.ask(Grow, c, c.limit+more, Reason{Code: RoomToGrow, A: int64(left)})
		} else {
			m.ask(Kill, c, 0, Reason{Code: NoRoomToGrow, A: int64(more), B: int64(left)})
		}
	}
}

// exhausted is lines 4 to 9 of Algorithm 1: if the first container is out of memory and the node has none, the last gives
// way. Before it is killed, containers that come later give what swap can take: the suspended at once, running ones when
// patience is at an end.
func (m *Manager) exhausted(candidates []*container) {
	first, last := candidates[0], candidates[len(candidates)-1]
	if !first.wants() {
		return
	}
	patient := m.now.Sub(first.shortSince) < m.p.KillPatience
	if m.p.ReclaimFirst {
		want := resource.Amount(float64(first.limit)*m.p.PuffRatio) - m.comingFree()
		if want <= 0 || m.reclaim(want, first, !patient, Reason{Code: NeededByFirst, A: int64(first.Rank)}) > 0 {
			return
		}
	}
	switch {
	case first == last:
		m.letPage(first)
	case patient || m.comingFree() > 0 || m.p.KillSparingly && m.willEnd(first):
	case m.p.KillSparingly && (!m.wouldHelp(first) || comparePlaces(m.p.usual(&first.Envelope), m.p.usual(&last.Envelope)) >= 0):
		m.letPage(first) // whose place or turn comes of a long suspension kills nobody: the two would kill each other for ever
	case last.idle(m.now):
		m.ask(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// letPage resumes a container for which nothing more can come, because nothing runs that could end or because it was
// suspended for too long already: slow is better than for ever. It is not suspended again until its limit changes.
func (m *Manager) letPage(c *container) {
	if !c.suspended || !c.idle(m.now) || !m.settled(c) || c.place.turn == 0 && m.somethingRuns(c) {
		return
	}
	c.pages = true
	m.ask(Resume, c, 0, Reason{Code: NothingToWaitFor, A: int64(c.demand()), B: int64(c.limit)})
}

func (m *Manager) somethingRuns(beside *container) bool {
	for _, c := range m.ordered {
		if c != beside && !c.suspended {
			return true
		}
	}
	return false
}

// willEnd reports whether something runs, other than what comes after first, whose end will free memory: then first can
// wait. REGULAR containers of unknown duration may be services.
func (m *Manager) willEnd(first *container) bool {
	for _, c := range m.ordered {
		if !c.suspended && (c.flex() && byRank(c, first) < 0 || !c.flex() && c.Duration > 0) {
			return true
		}
	}
	return false
}

// wouldHelp reports whether first could get what it lacks from those that come after it.
func (m *Manager) wouldHelp(first *container) bool {
	could := m.left()
	for _, c := range m.ordered {
		if c.flex() && byRank(c, first) > 0 {
			could += c.room()
		}
	}
	return could >= first.lacks()
}

// comingFree is what the kernel is about to free.
func (m *Manager) comingFree() resource.Amount {
	var a resource.Amount
	for _, c := range m.ordered {
		if c.pending == nil {
			continue
		}
		switch c.pending.Kind {
		case Shrink:
			a += c.limit - c.target
		case Kill:
			a += c.limit
		}
	}
	return a
}
