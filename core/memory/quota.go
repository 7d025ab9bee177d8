package memory

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// A quota bounds what the containers of one owner take together, beyond the Min that each has in any case. To its
// containers it is a node within the node: one that lacks memory which only the quota keeps from it gets memory of the
// owner's other containers alone, by the rules of the strategy, and no container of another owner waits, is suspended
// or ends for it. See within.
//
// Only InOrder shares a quota among the containers of its owner. Under the strategies of the paper a container does
// not grow beyond it.

// owners are what the manager knows of the owners of containers.
type owners struct {
	quotas  bool            // an owner has a quota
	share   resource.Amount // of each; 0 without shares: see share.go
	unmet   bool            // what is owed cannot be had in this step, and is not withheld
	parts   []part          // of this step
	stakes  []stake         // of each, if they have been counted since a room has changed
	counted bool
}

// stake is what the containers of one owner take, bytes.
type stake struct {
	owner  string
	rooms  resource.Amount // of all
	used   resource.Amount // what FLEX ones use of their rooms: see Manager.used
	least  resource.Amount // that they take in any case
	quota  resource.Amount // of the newest; it may have changed since the others started
	newest int             // the rank of that one
}

// most is what they may take together.
func (s *stake) most() resource.Amount {
	if s.quota == 0 {
		return math.MaxInt64
	}
	return max(s.quota, s.least)
}

// stake returns what the containers of an owner take. They are counted again after the next order.
func (m *Manager) stake(owner string) stake {
	if !m.counted {
		m.stakes, m.counted = m.stakes[:0], true
		for _, c := range m.ordered {
			m.count(c, m.used(c))
		}
	}
	if i := m.find(owner); i >= 0 {
		return m.stakes[i]
	}
	return stake{owner: owner}
}

// find returns the index of the stake of an owner; -1 if there is none.
func (o *owners) find(owner string) int {
	return slices.IndexFunc(o.stakes, func(s stake) bool { return s.owner == owner })
}

// count adds c, which uses that much of its room, to the stake of its owner.
func (o *owners) count(c *container, used resource.Amount) {
	i := o.find(c.Owner)
	if i < 0 {
		o.stakes, i = append(o.stakes, stake{owner: c.Owner, newest: -1}), len(o.stakes)
	}
	s, room := &o.stakes[i], c.room()
	s.rooms += room
	if c.flex() {
		s.used, s.least = s.used+used, s.least+min(room, c.Min)
	} else {
		s.least += room
	}
	if c.Rank >= s.newest {
		s.quota, s.newest = c.Quota, c.Rank
	}
}

// noteQuotas notes whether there are quotas at all.
func (m *Manager) noteQuotas() {
	m.quotas = slices.ContainsFunc(m.ordered, func(c *container) bool { return c.Quota > 0 }) ||
		slices.ContainsFunc(m.requests, func(r request) bool { return r.Quota > 0 })
}

// left is by how much c may grow until the quota of its owner is reached, so that the owner's containers can still end
// one after the other; within, the node is as small as that.
func (m *Manager) left(c *container) resource.Amount {
	if !m.quotas || m.inside {
		return math.MaxInt64
	}
	s := m.stake(c.Owner)
	left := max(0, s.most()-s.rooms)
	if left > 0 && c.Quota > 0 && m.banks() && !c.onCall() {
		m.alone(c.Owner, s.most(), func() { ends := m.endings(); left = min(left, ends.mayGrow(c)) })
	}
	return left
}

// bound reports whether c lacks memory that the quota of its owner keeps from it.
func (m *Manager) bound(c *container) bool {
	return m.quotas && c.wants() && m.left(c) < m.leastGrowth(c)
}

// AtQuota returns the quota of the owner of a container, bytes, if that is what keeps the container from growing; else
// 0. No decision depends on it.
func (m *Manager) AtQuota(id cluster.ContainerID) resource.Amount {
	c := m.containers[id]
	if c == nil || c.Quota == 0 || c.limit >= c.Max && c.Max < c.Quota || m.left(c) > c.minGrowth() {
		return 0
	}
	return c.Quota
}

// foreign reports whether c lacks memory that containers of an owner could not give it: they need not care.
func (m *Manager) foreign(c *container, owner string) bool { return c.Owner != owner && m.bound(c) }

// lacking are those who lack memory: one who could have that of any other, and owners whose quota is in the way.
type lacking struct {
	any    bool
	owners []string
}

func (m *Manager) whoLacks() (l lacking) {
	for _, c := range m.ordered {
		if c.wants() && !m.bound(c) {
			return lacking{any: true}
		} else if c.wants() {
			l.owners = append(l.owners, c.Owner)
		}
	}
	return l
}

// leastGrowth is the least by which c, which wants memory, is to grow so that it wants none.
func (m *Manager) leastGrowth(c *container) resource.Amount {
	if m.dry() {
		return min(max(c.Min, m.calm(c.demand()))-c.limit, c.Max-c.limit)
	}
	return min(c.lacks()+c.minGrowth(), c.Max-c.limit)
}

// serveBound serves containers that a quota keeps from growing, each owner's in turn.
func (m *Manager) serveBound(serve func(*Manager)) {
	if !m.quotas {
		return
	}
	var served []string
	for _, c := range m.ordered {
		if m.bound(c) && !slices.Contains(served, c.Owner) {
			served = append(served, c.Owner)
			m.within(c, serve)
		}
	}
}

// within lets the manager see only the containers of the owner of c, on a node with the memory of the quota, while it
// does something. What of that memory others hold is awaited by one that is to start.
func (m *Manager) within(c *container, do func(*Manager)) {
	l, s := m.ledger(), m.stake(c.Owner)
	bank := m.bank()
	ofNode := min(l.available()-m.withheldFrom(c)-l.owed, bank.mayGrow(c))
	if m.dry() && ofNode < m.leastGrowth(c) && m.goesOn(c) {
		return // it waits for ends of others, too
	}
	m.alone(c.Owner, s.most(), func() {
		if elsewhere := s.most() - s.rooms - ofNode; elsewhere > 0 {
			m.requests = []request{{Envelope: Envelope{Envelope: cluster.Envelope{Min: elsewhere}}}}
		}
		do(m)
	})
}

// alone lets the manager see only the containers of an owner, on a node with the given memory, while it does something.
func (m *Manager) alone(owner string, memory resource.Amount, do func()) {
	node, stop, requests, all, ends, share := m.node, m.p.Stop, m.requests, m.ordered, m.endsBy, m.share
	m.node.Memory, m.p.Stop, m.requests, m.endsBy, m.inside, m.share = memory, 1, nil, nil, true, 0
	m.ordered = nil
	for _, o := range all {
		if o.Owner == owner {
			m.ordered = append(m.ordered, o)
		}
	}
	do()
	m.node, m.p.Stop, m.requests, m.ordered, m.endsBy, m.inside, m.share = node, stop, requests, all, ends, false, share
}

// inOwnWay reports whether containers of the owner of r could not end one after the other within the quota with r.
func (m *Manager) inOwnWay(r *request) (bad bool) {
	if r.Quota == 0 || !m.banks() {
		return false
	}
	s := m.stake(r.Owner)
	m.alone(r.Owner, max(r.Quota, s.least+r.Min), func() { bad = m.inTheWay(r, 0) != nil })
	return bad
}

// beyondQuota is by how much a container that is to start would exceed the quota of its owner, bytes; 0 or less if it
// would not. What it is to start with counts as the Min of those that have started, but for what it has in addition
// because it was requeued.
func (m *Manager) beyondQuota(r *request) resource.Amount {
	if r.Quota == 0 {
		return 0
	}
	s := m.stake(r.Owner)
	least := s.least + r.Min
	if r.reserve > 0 && s.rooms > 0 {
		least = 0
	}
	return s.rooms + r.Min - max(r.Quota, least)
}

// refuseBeyond refuses a container that would exceed the quota of its owner, and has the owner's other containers give
// what they never touched.
func (m *Manager) refuseBeyond(r *request, over resource.Amount) Reason {
	for _, c := range m.ordered {
		if c.Owner != r.Owner {
			continue
		}
		m.within(c, func(m *Manager) {
			if m.dry() {
				m.collectDry(over, 0, nil, nil, false)
			} else {
				m.collect(over, nil, nil, untouchedOnly)
			}
			m.accept(Reason{Code: NeededByOther, A: int64(r.Min)})
		})
		break
	}
	return m.overQuota(r.Owner)
}

// overQuota says what the containers of an owner hold of the owner's quota.
func (m *Manager) overQuota(owner string) Reason {
	s := m.stake(owner)
	return Reason{Code: OverQuota, A: int64(s.most()), B: int64(s.rooms)}
}

// waitsForOwn reports whether a requeued task waits for memory that a request of another owner does not take.
func (m *Manager) waitsForOwn(back *comeback, r *request) bool {
	of := &back.of
	if of.Quota == 0 || of.Owner == r.Owner {
		return false
	}
	short := m.firstShort(of)
	return short != nil && short.Owner == of.Owner || m.stake(of.Owner).rooms+back.reserve > of.Quota
}

// whyShort says why c is suspended, which holds more than it may, or nearly.
func (m *Manager) whyShort(c *container, otherwise Reason) Reason {
	switch least, _ := m.growths(c); {
	case m.bound(c):
		return m.overQuota(c.Owner)
	case m.share > 0 && m.excess(c.Owner)+least > 0:
		return Reason{Code: BeyondShare, A: int64(m.stake(c.Owner).used), B: int64(m.share)}
	}
	return otherwise
}
