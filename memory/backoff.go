package memory

// backoff is Algorithm 1 of the paper (section 4.3.1), backoff-based puffing: the first container that is short grows by φ of its
// limit, those of the next job by φ divided by the number of candidates, and so on; none by more than half of what is left.
// If nothing is left the last is killed for the first.
var backoff = strategy{reclaims: true, limitSuspensions: (*Manager).killOverdue, grow: (*Manager).puff}

// puff is lines 10 to 22 of Algorithm 1, below which killLast is lines 4 to 9.
func (m *Manager) puff() {
	candidates := m.candidates()
	if len(candidates) == 0 {
		return
	}
	m.lastPuff = moment{m.now, true}
	left := m.left()
	if left/2 <= candidates[0].minGrowth() {
		if first := candidates[0]; first.wants() {
			m.killLast(first, candidates[len(candidates)-1])
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
		if c.ready(m.now) && c.state.suspended() {
			left -= m.grow(c, ratio, left, Reason{Code: RoomToGrow, A: int64(left)})
		}
	}
}

// candidates are the containers that are out of memory or were not long ago, the first first.
func (m *Manager) candidates() []*container {
	m.short = m.short[:0]
	for _, c := range m.ordered {
		if c.wants() || c.flex() && c.limit < c.Max && c.keeps(m.now, m.p.Hold) {
			m.short = append(m.short, c)
		}
	}
	return m.short
}

// killLast is lines 4 to 9 of Algorithm 1: if the first container is short and the node has no memory left, the last is killed.
func (m *Manager) killLast(first, last *container) {
	switch patient := m.now.Sub(first.shortSince) < m.p.KillPatience; {
	case m.comingFree() > 0:
	case first == last:
		m.resumeToPage(first)
	case !patient && last.ready(m.now):
		m.order(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// killOverdue kills containers that have been suspended for longer than they may be (section 4.3.3), which is also what keeps a
// consumer from waiting for ever for a suspended producer. After half of that time one comes before the job before its own.
func (m *Manager) killOverdue() {
	for i, c := range m.ordered {
		may := m.tolerance(c)
		if !c.state.suspended() || may <= 0 {
			continue
		}
		long := m.now.Sub(c.suspendedAt)
		switch {
		case long >= may && !c.doing(Kill) && m.now >= c.retryAt:
			m.order(Kill, c, 0, Reason{Code: TooLong, A: int64(long), B: int64(may)})
		case long >= may/2 && c.place == m.p.ranked(&c.Envelope):
			if above := m.jobAbove(i); above != nil {
				at := m.p.ranked(&above.Envelope)
				at.standing = promoted
				m.move(c, at)
			}
		}
	}
	m.sort()
}

// jobAbove returns a container of the job that comes before that of ordered[i].
func (m *Manager) jobAbove(i int) *container {
	for k := i - 1; k >= 0; k-- {
		above := m.ordered[k]
		before := comparePlaces(m.p.ranked(&above.Envelope), m.p.ranked(&m.ordered[i].Envelope)) < 0
		if above.flex() && above.place.standing != onTurn && before {
			return above
		}
	}
	return nil
}
