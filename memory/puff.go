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
	switch {
	case m.p.Uncoordinated:
		m.puffAlone()
		return
	case m.p.ReclaimFirst:
		m.serveInOrder()
		return
	}
	candidates := m.candidates()
	if len(candidates) == 0 {
		return
	}
	m.lastPuff, m.puffed = m.now, true
	left := m.left()
	if left/2 <= candidates[0].least() {
		if first := candidates[0]; first.wants() {
			m.exhausted(first, candidates[len(candidates)-1])
		}
		return
	}
	ratio := m.p.PuffRatio
	var before *container // the last that was out of memory
	for _, c := range candidates {
		if !c.wants() {
			continue
		}
		if before != nil && before.place != c.place {
			ratio /= float64(len(candidates))
		}
		before = c
		if c.idle(m.now) && c.suspended {
			left -= m.grow(c, ratio, left, Reason{Code: RoomToGrow, A: int64(left)})
		}
	}
}

// candidates are the containers that are out of memory or were not long ago, the first first.
func (m *Manager) candidates() []*container {
	m.wanting = m.wanting[:0]
	for _, c := range m.ordered {
		if c.wants() || c.flex() && c.limit < c.Max && c.holding(m.now, m.p.Hold) {
			m.wanting = append(m.wanting, c)
		}
	}
	return m.wanting
}

// least is the least growth that is worth a call: a hundredth of the limit. Halves of what is left never come to nothing.
func (c *container) least() resource.Amount { return c.limit / 100 }

// grow adds a share of its limit to c, but not more than half of what is left, and returns how much.
func (m *Manager) grow(c *container, ratio float64, left resource.Amount, why Reason) resource.Amount {
	more := min(resource.Amount(float64(c.limit)*ratio), left/2, c.Max-c.limit)
	if more <= c.least() && (more <= 0 || c.limit+more != c.Max) {
		return 0
	}
	m.ask(Grow, c, c.limit+more, why)
	return more
}

// puffAhead grows containers that will soon be out of memory, while there is plenty, and lends what nobody asks for.
func (m *Manager) puffAhead() {
	if m.p.Ahead <= 0 && m.p.Lend <= 0 {
		return
	}
	unkept, kept, short := m.unkept(), m.claimed(), m.firstShort() != nil
	for _, c := range m.ordered {
		if !c.flex() || !c.read || c.wants() || c.suspended || !c.idle(m.now) || c.limit >= c.Max || short && c.place.yields {
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
			c.lastShort, c.everShort = m.now, true
		} else if c.thrashes && !short && left > 0 && m.p.Ahead > 0 {
			unkept -= m.grow(c, m.p.AheadRatio, left, Reason{Code: FilesComeBack, A: int64(c.mapped), B: int64(c.limit)})
		} else if spare := max(0, c.limit-c.demand()); m.p.Lend > 0 && !short && spare < m.lent(left+spare)/2 {
			more := min(m.lent(left+spare)-spare, c.Max-c.limit)
			if more > c.least() {
				m.ask(Grow, c, c.limit+more, Reason{Code: RoomToSpare, A: int64(left)})
				c.lastShort, c.everShort = m.now, true
				unkept -= more
			}
		}
	}
}

// lent is what a container may have above what it holds, of what is left and what it has so already, while nobody is out of
// memory.
func (m *Manager) lent(left resource.Amount) resource.Amount {
	return max(0, resource.Amount(m.p.Lend*float64(left)))
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

// exhausted is lines 4 to 9 of Algorithm 1: if the first container is out of memory and the node has none, the last is
// killed.
func (m *Manager) exhausted(first, last *container) {
	patient := m.now.Sub(first.shortSince) < m.p.KillPatience
	// Whose place or turn comes of a long suspension kills nobody: the two would kill each other for ever.
	// Nor is anybody killed for having waited.
	sparing := m.p.KillSparingly && (first.place.turn > 0 || m.willEnd(first) || last.place.yields || !m.wouldHelp(first))
	switch {
	case m.comingFree() > 0:
	case first == last || sparing:
		m.letPage(first)
	case patient:
		if m.p.KillSparingly {
			m.letPage(first)
		}
	case last.idle(m.now):
		m.ask(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// letPage lets a container run for which nothing more can come, because nothing runs that could end or because it was
// suspended for too long already: slow is better than not at all. It is not suspended again until its limit changes.
func (m *Manager) letPage(c *container) {
	switch {
	case c.tight || c.place.turn == 0 && m.somethingRuns(c) && !m.waitedAlone(c):
	case c.suspended && c.idle(m.now) && m.settled(c) && c.limit >= c.Min:
		c.pages = true
		m.ask(Resume, c, 0, Reason{Code: NothingToWaitFor, A: int64(c.demand()), B: int64(c.limit)})
	case !c.suspended && m.p.ReclaimFirst:
		c.pages = true
	}
}

func (m *Manager) somethingRuns(beside *container) bool {
	for _, c := range m.ordered {
		if c != beside && !c.suspended && !c.place.yields {
			return true
		}
	}
	return false
}

// waitedAlone reports whether c has lacked memory for so long, and nothing gets on whose end it could wait for, that it waits no
// longer: REGULAR containers may be services. But it needs room in swap to run with less than it needs.
func (m *Manager) waitedAlone(c *container) bool {
	for _, o := range m.ordered {
		if o != c && (o.flex() && !o.suspended && !o.place.yields || !o.flex() && m.ends(o)) {
			return false
		}
	}
	if resource.Amount(m.p.Ahead*float64(c.limit)) > m.node.SwapFree {
		return false
	}
	return m.p.Patience > 0 && m.now.Sub(c.shortSince) >= m.p.Patience
}

// willEnd reports whether something runs or is about to, other than what comes after first, whose end will free memory: then first can
// wait. REGULAR containers of unknown duration may be services, as may those that are late.
func (m *Manager) willEnd(first *container) bool {
	for _, c := range m.ordered {
		if runs := !c.suspended || !c.wants(); runs && (c.flex() && byRank(c, first) < 0 || !c.flex() && m.ends(c)) {
			return true
		}
	}
	return false
}

// ends reports whether a container is expected to end, and is not late.
func (m *Manager) ends(c *container) bool {
	return c.Duration > 0 && (m.p.Patience == 0 || m.now.Sub(c.began) < c.Duration+m.p.Patience)
}

// wouldHelp reports whether first could get what it lacks from those that come after it, beside the claims that would be met.
func (m *Manager) wouldHelp(first *container) bool {
	could := m.unkept()
	for _, c := range m.ordered {
		if c.flex() && byRank(c, first) > 0 {
			could += c.room()
		}
	}
	return could-metBy(m.requests, could) >= first.lacks()
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
