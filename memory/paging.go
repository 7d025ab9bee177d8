package memory

import "github.com/bellows-rm/bellows/resource"

// resumeToPage lets a suspended container run for which nothing more can come, because nothing runs that could end or because it
// was suspended for too long already: slow is better than not at all. It is not suspended again until its limit changes.
func (m *Manager) resumeToPage(c *container) {
	if m.mayPage(c) && c.suspended && c.idle(m.now) && m.settled(c) && c.limit >= c.Min {
		c.pages = true
		m.ask(Resume, c, 0, Reason{Code: NothingToWaitFor, A: int64(c.demand()), B: int64(c.limit)})
	}
}

// mayPage reports whether c, which is short, has nothing to wait for: it is its turn, nothing else runs, or it has waited long
// enough. The kernel must be able to swap.
func (m *Manager) mayPage(c *container) bool {
	return !c.tight && (c.place.turn > 0 || !m.somethingRuns(c) || m.waitedAlone(c))
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
