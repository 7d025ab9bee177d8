package memory

import "github.com/bellows-rm/bellows/core/resource"

// uncoordinated is the baseline KILL of section 5.3: each container puffs on its own, and is killed when the node has
// too little memory for one whole puff. Nothing is suspended or reclaimed; slack is still taken back.
var uncoordinated = strategy{limitSuspensions: (*Manager).killOverdue, grow: (*Manager).growAlone}

// growAlone lets each container that is short grow by φ of its limit, or kills it.
func (m *Manager) growAlone() {
	for _, c := range m.ordered {
		if !c.wants() || !c.ready(m.now) {
			continue
		}
		m.lastPuff = moment{m.now, true}
		more := min(resource.Amount(float64(c.limit)*m.p.PuffRatio), c.Max-c.limit)
		l := m.ledger()
		if free := min(l.free(), m.left(c)); more <= free {
			m.order(Grow, c, c.limit+more, Reason{Code: RoomToGrow, A: int64(free)})
		} else {
			m.order(Kill, c, 0, Reason{Code: NoRoomToGrow, A: int64(more), B: int64(free)})
		}
	}
}
