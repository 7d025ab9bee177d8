package memory

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// suspend notes that c is suspended from now on.
func (c *container) suspend(now timeline.Time, why Reason) {
	c.state, c.stateReason = c.state.to(suspend), why
	c.changedAt, c.suspendedAt, c.breathedAt = now, now, now
	if !c.short {
		c.shortSince = now
	}
}

// resume notes that c runs from now on.
func (c *container) resume(now timeline.Time, why Reason) {
	c.state, c.stateReason = c.state.to(resume), why
	c.changedAt, c.lastSuspension = now, now.Sub(c.suspendedAt)
}

// settled reports whether c may be suspended or resumed again.
func (m *Manager) settled(c *container) bool { return m.now.Sub(c.changedAt) >= m.p.Settle }

// tolerance is how long c may be suspended before limitSuspensions acts; 0: without a limit.
func (m *Manager) tolerance(c *container) time.Duration {
	if m.p.Tolerance > 0 && c.Duration > 0 {
		return time.Duration(m.p.Tolerance * float64(c.Duration))
	}
	return m.p.LongestSuspension
}

// findAtRisk finds the containers that have nearly filled their limit with memory that cannot be swapped out, because
// swap is full or their programs locked it: the kernel would kill for the next page. Before that, a container that
// has recently grown gets more memory or is suspended.
func (m *Manager) findAtRisk() {
	if m.p.Ahead <= 0 {
		return
	}
	var swapped resource.Amount
	for _, c := range m.ordered {
		swapped += c.swap
	}
	for _, c := range m.ordered {
		margin := resource.Amount(m.p.Ahead * float64(c.limit))
		swappable := c.anonymous - c.locked
		if m.node.SwapFull {
			swappable = 0
		}
		was, grows := c.atRisk, c.state.suspended() || c.climbed.within(m.now, m.p.Hold)
		// More memory would help, or what others have in swap.
		helps := c.limit < c.Max || m.node.SwapFull && swapped > c.swap && c.demand() >= c.limit
		c.atRisk = grows && helps && c.flex() && c.known && swappable < margin && c.anonymous >= c.limit-margin
		if c.atRisk && !was && !c.short && !c.state.suspended() {
			c.shortSince = m.now
		}
		if c.atRisk {
			c.lastShort = moment{m.now, true}
		}
	}
}

// suspendShort suspends containers that are short or at risk and were not helped in this step. A container with less
// than its Min, because it was found so or an answer was lost, is suspended at once: the kernel may find nothing to
// swap out, and kill.
func (m *Manager) suspendShort() {
	if !m.strategy.reclaims {
		return
	}
	for _, c := range m.ordered {
		if c.state.suspended() || !c.ready(m.now) {
			continue
		}
		switch {
		case c.belowMin():
			m.order(Suspend, c, 0, Reason{Code: BelowLeast, A: int64(c.limit), B: int64(c.Min)})
		case c.atRisk && !c.runsOn:
			m.order(Suspend, c, 0, m.whyShort(c, m.riskReason(c)))
		case c.held && c.demand() >= c.limit:
			m.order(Suspend, c, 0, m.whyShort(c, Reason{Code: HeldBack, A: int64(c.demand()), B: int64(c.limit)}))
		case c.short && c.demand() >= c.limit && !c.mayPage && !c.runsOn && c.limit < c.Max && m.settled(c) &&
			!m.isOwed(c):
			m.order(Suspend, c, 0, m.whyShort(c, Reason{Code: OutOfMemory, A: int64(c.demand()), B: int64(c.limit)}))
		}
	}
}

// riskReason says why c would be killed.
func (m *Manager) riskReason(c *container) Reason {
	if m.node.SwapFull {
		return Reason{Code: SwapFull, A: int64(c.demand()), B: int64(c.limit)}
	}
	return Reason{Code: Locked, A: int64(c.locked), B: int64(c.limit)}
}

// resumeFitting resumes containers that hold no more than their limit, because they have grown or gave memory back
// themselves, whether or not they have anything in swap. A container at its maximum is resumed whatever it holds.
func (m *Manager) resumeFitting() {
	for _, c := range m.ordered {
		if !c.state.suspended() || c.atRisk || !c.ready(m.now) || !c.known || !m.settled(c) {
			continue
		}
		if c.demand() <= c.limit && c.limit >= c.Min || c.limit >= c.Max && !c.held {
			m.order(Resume, c, 0, Reason{Code: DemandMet, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}

// resumeToPage resumes a container that is short, if it has nothing to wait for: slow is better than not at all. It
// may page until its limit changes.
func (m *Manager) resumeToPage(c *container) {
	if m.nothingToWaitFor(c) && c.state.suspended() && c.ready(m.now) && m.settled(c) && c.limit >= c.Min {
		c.mayPage = true
		m.order(Resume, c, 0, Reason{Code: NothingToWaitFor, A: int64(c.demand()), B: int64(c.limit)})
	}
}

// nothingToWaitFor reports whether c, which is short, gains nothing by waiting: it has its turn, no other container
// runs, or it has waited long enough. A container at risk waits in any case: the kernel would kill it.
func (m *Manager) nothingToWaitFor(c *container) bool {
	return !c.atRisk && (c.place.standing == onTurn || !m.anotherRuns(c) || m.waitedLong(c))
}

// anotherRuns reports whether a container other than c runs and does not yield.
func (m *Manager) anotherRuns(c *container) bool {
	for _, o := range m.ordered {
		if o != c && !o.inactive() {
			return true
		}
	}
	return false
}

// waitedLong reports whether c has been short for Patience, and no container runs for whose end it could wait
// (REGULAR containers may be services). To run with less than it needs, c must have room in swap.
func (m *Manager) waitedLong(c *container) bool {
	for _, o := range m.ordered {
		if o != c && (o.flex() && !o.inactive() || !o.flex() && m.ends(o)) {
			return false
		}
	}
	if resource.Amount(m.p.Ahead*float64(c.limit)) > m.node.SwapFree {
		return false
	}
	return m.p.Patience > 0 && m.now.Sub(c.shortSince) >= m.p.Patience
}

// willEnd reports whether a container runs, or is about to run, whose end will free memory for first: then first can
// wait. FLEX containers after first do not count, nor do REGULAR containers of unknown duration or that are late:
// they may be services.
func (m *Manager) willEnd(first *container) bool {
	for _, c := range m.ordered {
		runs := !c.state.suspended() || !c.wants()
		if runs && (c.flex() && byPlace(c, first) < 0 || !c.flex() && m.ends(c)) {
			return true
		}
	}
	return false
}

// ends reports whether a container is expected to end, and is not late.
func (m *Manager) ends(c *container) bool {
	return c.Duration > 0 && !c.out && (m.p.Patience == 0 || m.now.Sub(c.firstSeen) < c.Duration+m.p.Patience)
}

// breathe lets suspended programs send their heartbeats.
func (m *Manager) breathe() {
	for _, c := range m.ordered {
		if due, ok := m.breathDue(c); ok && m.now >= due && c.ready(m.now) {
			m.order(Breathe, c, 0, Reason{Code: Alive, A: int64(c.HeartbeatTimeout)})
		}
	}
}

// breathDue returns when c must run for a moment; ok is false if it need not.
func (m *Manager) breathDue(c *container) (at timeline.Time, ok bool) {
	if !c.state.suspended() || c.HeartbeatTimeout <= 0 || m.p.BreathEvery <= 0 {
		return 0, false
	}
	return c.breathedAt.Add(time.Duration(m.p.BreathEvery * float64(c.HeartbeatTimeout))), true
}
