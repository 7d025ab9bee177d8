package memory

// backoff is Algorithm 1 of the paper (section 4.3.1), backoff-based puffing: the first container that is short grows
// by φ of its limit, the containers of the next job by φ divided by the number of candidates, and so on; none by more
// than half of the free memory. If no memory is free, the last candidate is killed for the first. Decision 10 lists
// the places where the paper can be read in several ways.
var backoff = strategy{reclaims: true, limitSuspensions: (*Manager).killOverdue, grow: (*Manager).puff}

// puff is Algorithm 1. The numbers are the lines of the paper.
func (m *Manager) puff() {
	candidates := m.candidates() // 1-3
	if len(candidates) == 0 {
		return
	}
	m.lastPuff = moment{m.now, true}
	l := m.ledger()
	free := l.free()
	if free/2 <= candidates[0].minGrowth() { // 4: A >= M
		if first := candidates[0]; first.wants() { // 5
			m.killLast(first, candidates[len(candidates)-1]) // 6
		}
		return // 7
	}
	ratio := m.p.PuffRatio
	var before *container          // the last that was short
	for _, c := range candidates { // 10
		if !c.wants() { // 14
			continue
		}
		if before != nil && before.place != c.place {
			ratio /= float64(len(candidates)) // 20, once for all containers of a job (section 4.3.3)
		}
		before = c
		if c.ready(m.now) && c.state.suspended() { // one that runs is suspended first, in this step
			free -= m.grow(c, ratio, free, Reason{Code: RoomToGrow, A: int64(free)}) // 11 and 17-19
		}
	}
}

// candidates is the set C of Algorithm 1: the containers that are short, or were within Hold, in order.
func (m *Manager) candidates() []*container {
	m.short = m.short[:0]
	for _, c := range m.ordered {
		if c.wants() || c.flex() && c.limit < c.Max && c.keeps(m.now, m.p.Hold) {
			m.short = append(m.short, c)
		}
	}
	return m.short
}

// killLast kills the last candidate for the first, which is short while nothing is free, once it has been short for
// KillPatience. A single candidate runs with what it has.
func (m *Manager) killLast(first, last *container) {
	switch patient := m.now.Sub(first.shortSince) < m.p.KillPatience; {
	case m.ledger().coming > 0:
	case first == last:
		m.resumeToPage(first)
	case !patient && last.ready(m.now):
		m.order(Kill, last, 0, Reason{Code: Exhausted, A: int64(first.Rank)})
	}
}

// killOverdue kills containers that have been suspended for longer than they may be (section 4.3.3), which is also
// what keeps a consumer from waiting for ever for a suspended producer. After half of that time a container moves
// before the job that precedes its own.
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
