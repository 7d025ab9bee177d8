package memory

import (
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// request is a container that is to start. A REGULAR container that was refused leaves a claim: memory that is or
// becomes free is kept for it until it asks again. Without a claim, growing containers would take that memory again
// and again, and the REGULAR container would wait for ever.
type request struct {
	Envelope
	asked timeline.Time // the last time
	claim bool          // it was refused then
	// reserve is what it starts with because it was requeued, which Min includes; 0 otherwise.
	reserve resource.Amount
	owed    resource.Amount // see share.go
}

// takeRequests takes in requests. A container that asks again keeps its place.
func (m *Manager) takeRequests(all []Request) {
	for i := range all {
		r := request{Envelope: all[i].Envelope, asked: m.now}
		if m.hasEnded(r.Container) {
			continue
		}
		if c, here := m.containers[r.Container]; here && c.out {
			// It has the rest, and a right to its Min, like a REGULAR container that is to start: it gets what others have
			// above theirs.
			r.Min, r.Class = max(0, r.Min-c.limit), cluster.Regular
		}
		m.comesBack(&r)
		at := slices.IndexFunc(m.requests, func(old request) bool { return old.Container == r.Container })
		if at < 0 {
			m.requests = append(m.requests, r)
		} else {
			m.requests[at] = r
		}
	}
}

// expireRequests drops the claims of containers that do not ask again, and forgets early ends after which no news came.
func (m *Manager) expireRequests() {
	m.requests = slices.DeleteFunc(m.requests, func(r request) bool {
		return r.claim && m.now.Sub(r.asked) >= m.p.ClaimFor
	})
	maps.DeleteFunc(m.endedEarly, func(_ cluster.ContainerID, told timeline.Time) bool {
		return m.now.Sub(told) >= m.p.ActionTimeout
	})
}

// refuse refuses a request. It stays as a claim if it is one of a REGULAR container.
func (m *Manager) refuse(i int, why Reason) (stays bool) {
	r := &m.requests[i]
	m.answer(Refuse, r.Container, r.reserve, why)
	if back := m.requeued[r.Container.Task]; back != nil {
		back.asked = moment{m.now, true}
	}
	if r.Class == cluster.Flex || m.p.ClaimFor == 0 || why.Code == OverQuota {
		m.requests = slices.Delete(m.requests, i, i+1)
		return false
	}
	r.claim = true
	return true
}

// serveRequests admits containers that are to start, in the order of their first requests, and reclaims memory for
// the first one that does not fit (section 4.3.1, Reclaim; lazily: only now). Later requests wait with it for the
// memory that is coming.
func (m *Manager) serveRequests() {
	l := m.ledger()
	unallocated := l.unallocated()
	for i := 0; i < len(m.requests); {
		r := &m.requests[i]
		if r.claim {
			i++
			continue
		}
		answer, why := m.consider(r, unallocated, m.requests[:i])
		switch answer {
		case Admit:
			begins := resource.Amount(0)
			if c, here := m.containers[r.Container]; here && c.out {
				m.comeBack(c, r.Min)
			} else {
				m.add(&Started{Envelope: r.Envelope})
				begins = m.beginDry(r, unallocated)
			}
			m.counted = false
			if back := m.requeued[r.Container.Task]; back != nil {
				back.asked = moment{} // it does not wait any more
			}
			m.answer(Admit, r.Container, begins, why)
			unallocated -= max(r.Min, begins)
			m.requests = slices.Delete(m.requests, i, i+1)
		case Refuse:
			if r.Class == cluster.Flex && why.Code != OverQuota {
				m.flexRefused = moment{m.now, true}
			}
			if m.refuse(i, why) {
				i++
			}
		default: // it is awaited
			i = len(m.requests)
		}
	}
	m.sort()
}

// consider returns the answer to a request: Admit or Refuse, or 0, without a reason, if the answer depends on what
// the kernel is doing. Earlier claims that the unallocated memory would meet come before a REGULAR container, all
// earlier claims before a FLEX container.
func (m *Manager) consider(r *request, unallocated resource.Amount, before []request) (answer ActionKind,
	why Reason) {
	claimed := metBy(before, unallocated)
	if r.Class == cluster.Flex {
		// One that yields does not count: perhaps its programs wait for what is to start.
		if short := m.shortBefore(r); short != nil && short.place.standing != yielding && m.strategy.shortFirst {
			if m.bound(short) {
				return Refuse, m.overQuota(r.Owner)
			}
			return Refuse, Reason{Code: OthersWait, A: int64(r.Min), B: int64(short.Rank)}
		}
		if claimed = metBy(before, m.node.Memory); claimed > 0 && r.Min > unallocated-claimed {
			return Refuse, Reason{Code: RegularWaits, A: int64(r.Min), B: int64(claimed)}
		}
	}
	if over := m.beyondQuota(r); over > 0 {
		return Refuse, m.refuseBeyond(r, over)
	}
	if m.inOwnWay(r) {
		return Refuse, m.overQuota(r.Owner)
	}
	free := unallocated - claimed - m.owedBefore(r)
	mustWait, bad := m.refuseDry(r, free)
	if bad && (r.Min <= free || m.dry()) {
		return Refuse, mustWait
	}
	if r.Min <= free {
		return Admit, Reason{Code: Free, A: int64(r.Min)}
	}
	if !m.strategy.reclaims {
		return Refuse, Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(max(0, free))}
	}
	m.sort()
	coming := m.ledger().coming
	need := r.Min - free - coming
	if need <= 0 {
		return 0, Reason{}
	}
	why, possible := m.couldGive(r, need)
	if !possible && coming == 0 && !m.giverBusy(r) {
		return Refuse, why
	}
	if possible && !bad {
		mustWait, bad = m.refuseTaken(r)
	}
	if possible && bad {
		return Refuse, mustWait
	}
	if possible {
		m.accept(Reason{Code: NeededByOther, A: int64(r.Min)})
	}
	return 0, Reason{}
}

// mayTake says from which containers memory may be taken for a container that is to start. A FLEX container does not
// make others swap: that would be meaningless (section 4.3.2).
func (m *Manager) mayTake(r *request) reach {
	if r.Class != cluster.Flex {
		return runningToo
	}
	return m.strategy.flexTakes
}

// giverBusy reports whether a container from which memory could be taken for a REGULAR container has an action under
// way. How much it can give is known when the action is over, after ActionTimeout at the latest.
func (m *Manager) giverBusy(r *request) bool {
	for _, c := range m.ordered {
		if r.Class != cluster.Flex && c.flex() && c.pending != nil && c.room() > c.Min {
			return true
		}
	}
	return false
}

// couldGive collects memory from FLEX containers for a request and reports whether they could give what it needs. If
// not, why says what is missing.
func (m *Manager) couldGive(r *request, need resource.Amount) (why Reason, possible bool) {
	far, of := m.mayTake(r), &r.Envelope
	if r.Class != cluster.Flex {
		of = nil // what it asks for is reserved
	}
	if m.dry() {
		got := m.collectDry(need, 0, nil, of, false)
		return Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(got)}, got >= need
	}
	if m.collect(need, nil, of, far) >= need {
		return Reason{}, true
	}
	var most resource.Amount
	for _, c := range m.ordered {
		if far == runningToo || far == untouchedOnly && c.place.standing == yielding {
			gives, _ := m.gives(c, 0, c.limit, false)
			most += gives
		} else if far == untouchedOnly {
			most += m.untouched(c)
		}
	}
	if most < need {
		return Reason{Code: NoFlexLeft, A: int64(r.Min), B: int64(most)}, false
	}
	return Reason{Code: NoSwapLeft, A: int64(r.Min), B: int64(m.node.SwapFree)}, false
}
