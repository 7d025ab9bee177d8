package memory

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Each owner of FLEX containers has a share of the node: an equal part of the memory that no REGULAR container has.
//
//  1. A container that lacks memory, or is to start, is within the share if what the containers of its owner take
//     together would not exceed the share with what it needs. What it needs is then owed to it.
//  2. What is owed is withheld from all others. As far as it is neither free nor coming, it is taken from owners who
//     take more than the share, from the one who exceeds it by most first, down to the share: as if the node had lost
//     that memory, and ran no containers but theirs. So slack is taken first, then what can be swapped out, and if that
//     is not enough, the owner's youngest container that may be requeued is.
//  3. For a container that is not within the share nothing is taken from other owners but what they take beyond the
//     share, and what containers hold that wait for memory beyond it, too: those are served in order.
//  4. If the node has less memory than containers hold, it takes that from what no container uses, and from owners who
//     exceed what is then the share; only what these cannot give, from all.
//
// So what an owner does not need is for the others: the share is no limit. A container that can neither be swapped out
// nor requeued gives nothing: then a container within the share waits for its end, and where nothing goes on, it may be
// requeued itself. With one owner nothing changes.

// divide finds the share, and what is owed to whom in this step.
func (m *Manager) divide() {
	divided := m.share > 0
	m.share, m.unmet, m.parts = 0, false, m.parts[:0]
	if !m.p.Shares || m.p.Strategy != InOrder || !divided && !m.severalOwners() {
		return
	}
	rest := resource.Amount(m.p.Stop * float64(m.node.Memory))
	for _, c := range m.ordered {
		if c.owed = 0; c.flex() {
			m.partOf(c.Owner).takes += m.used(c)
		} else {
			rest -= c.room()
		}
	}
	for i := range m.requests {
		r := &m.requests[i]
		if r.owed = 0; r.starts() {
			m.partOf(r.Owner)
		}
	}
	for _, back := range m.requeued {
		if back.asked.within(m.now, m.p.ClaimFor) {
			m.partOf(back.of.Owner)
		}
	}
	if len(m.parts) > 1 {
		m.share = max(1, rest/resource.Amount(len(m.parts)))
		m.owe()
	}
}

// severalOwners reports whether containers that are here, or are to come, may belong to several owners.
func (m *Manager) severalOwners() bool {
	if len(m.requests) > 0 || len(m.requeued) > 0 {
		return true
	}
	for _, c := range m.ordered {
		if c.Owner != m.ordered[0].Owner {
			return true
		}
	}
	return false
}

// owe finds what is owed to whom: nothing to one that waits for something else than memory of others.
func (m *Manager) owe() {
	bank := m.bank()
	for _, c := range m.ordered {
		if !c.wants() || m.bound(c) || c.leaving() {
			continue
		}
		least, most := m.growths(c)
		if may, waits := bank.lets(c, true); !waits && may >= least {
			c.owed = m.partOf(c.Owner).owes(m.share, least, min(most, may))
		}
	}
	for i := range m.requests {
		r := &m.requests[i]
		if !r.starts() {
			continue
		}
		p := m.partOf(r.Owner)
		r.owed = p.owes(m.share, r.Min, r.Min)
		if _, waits := m.refuseDry(r, 0); waits || m.beyondQuota(r) > 0 || m.inOwnWay(r) {
			p.takes, r.owed = p.takes-r.owed, 0
		}
	}
}

// starts reports whether r is a FLEX container that is to start.
func (r *request) starts() bool { return r.Class == cluster.Flex && !r.claim }

// part is what the containers of one owner take, with what is owed to them, or what is to be taken from them, bytes.
type part struct {
	owner string
	takes resource.Amount
}

// partOf returns the part of an owner.
func (o *owners) partOf(owner string) *part {
	i := slices.IndexFunc(o.parts, func(p part) bool { return p.owner == owner })
	if i < 0 {
		o.parts, i = append(o.parts, part{owner: owner}), len(o.parts)
	}
	return &o.parts[i]
}

// owes returns what is owed to a container that needs the given bytes, and can use most at once; 0 if it would exceed
// the share with what it needs.
func (p *part) owes(share, needs, most resource.Amount) resource.Amount {
	if needs <= 0 || p.takes+needs > share {
		return 0
	}
	owed := min(most, share-p.takes)
	p.takes += owed
	return owed
}

// growths are the least and the most by which a container that wants memory is to grow beyond what it takes already.
func (m *Manager) growths(c *container) (least, most resource.Amount) {
	more := c.room() - c.limit
	least = m.leastGrowth(c) - more
	most = min(c.lacks()+resource.Amount(m.p.PuffRatio*float64(c.limit)), c.Max-c.limit) - more
	return least, max(least, most)
}

// used is what c uses of its room: not what is coming, nor what it never touched.
func (m *Manager) used(c *container) resource.Amount {
	stays := c.room() - c.coming()
	if !c.known || c.state.suspended() {
		return stays
	}
	return min(stays, max(c.Min, m.fits(c.peak)))
}

// unused is what may be taken from containers that do not use it, of all owners.
func (m *Manager) unused(c *container) resource.Amount {
	if unused := c.limit - m.used(c); c.flex() && c.ready(m.now) && c.owed == 0 && unused > c.minGrowth() {
		return unused
	}
	return 0
}

// excess is by how much an owner exceeds the share, bytes; 0 or less if not.
func (m *Manager) excess(owner string) resource.Amount { return m.stake(owner).used - m.share }

// fitShares takes what is owed, and is neither free nor coming, from what no container uses and from owners who exceed
// the share: all of it, or what is owed to the first, or else nothing, which would be taken to and fro.
func (m *Manager) fitShares() {
	if m.divide(); m.share == 0 {
		return
	}
	l := m.ledger()
	if l.owed == 0 {
		return
	}
	d := m.debt()
	if d.first != nil {
		l.claimed = m.withheldFrom(d.first)
	}
	free := l.unallocated() - l.reserve - l.claimed + l.coming
	lacks := d.all - free
	if lacks <= 0 || l.coming > 0 && lacks < d.all/4 { // the next step will see whether that suffices
		return
	}
	if d.more = l.owed - d.all; !m.takeFor(&d, lacks) && (d.needs <= free || !m.takeFor(&d, d.needs-free)) {
		m.unmet = !m.goesOn(nil)
	}
}

// debt is what is owed, bytes.
type debt struct {
	first      *container      // to which something is owed; nil: it is to start
	needs, all resource.Amount // what the first needs, and all together
	more       resource.Amount // what they can use at once beyond that
	why        Reason
}

// debt sums up what is owed.
func (m *Manager) debt() (d debt) {
	for _, c := range m.ordered {
		if c.owed == 0 {
			continue
		}
		least, _ := m.growths(c)
		if d.all += least; d.first == nil {
			d.first, d.needs = c, least
			d.why = Reason{Code: WithinShare, A: int64(c.Rank), B: int64(m.share)}
		}
	}
	for i := range m.requests {
		r := &m.requests[i]
		if d.all += r.owed; d.needs == 0 && r.owed > 0 {
			d.needs, d.why = r.owed, Reason{Code: WithinShare, A: int64(r.Rank), B: int64(m.share)}
		}
	}
	return d
}

// takeFor takes back what is needed, and reports whether that can be had.
func (m *Manager) takeFor(d *debt, need resource.Amount) bool {
	unused := m.sumUnused(nil)
	if unused >= need {
		m.takeUnused(need+d.more, Reason{Code: NeededByFirst, A: d.why.A})
		return true
	}
	var sum resource.Amount
	givers := m.exceeding()
	for i := range givers {
		g := &givers[i]
		unused -= m.sumUnused(&g.owner)
		g.takes = min(max(0, need+d.more-sum), g.takes)
		sum += m.giveBack(g, d, false)
	}
	if sum+unused < need {
		return false
	}
	for i := range givers {
		m.giveBack(&givers[i], d, true)
	}
	m.takeUnused(need-sum, Reason{Code: NeededByFirst, A: d.why.A})
	return true
}

// fitExcess takes what the node has lost from what no container uses and from owners who exceed what the share is now,
// down to it. It returns what is to be taken from the others, too: nothing as long as the kernel is about to tell how
// much more those owners can give.
func (m *Manager) fitExcess(lost resource.Amount, why Reason) (rest resource.Amount) {
	if m.divide(); m.share == 0 {
		return lost
	}
	if m.sumUnused(nil) < lost {
		for _, g := range m.exceeding() {
			if g.takes = max(0, min(lost, g.takes)); m.dry() {
				lost -= m.giveBack(&g, &debt{why: why}, true)
			} else {
				m.alone(g.owner, m.node.Memory, func() { lost -= m.collect(g.takes, nil, nil, runningToo) })
				m.accept(why)
			}
		}
	}
	lost -= m.takeUnused(lost, why)
	for _, c := range m.ordered {
		if p := c.pending; p != nil && !c.leaving() && m.now.Sub(p.at) < m.p.Settle && m.excess(c.Owner) > 0 {
			return 0
		}
	}
	return lost
}

// sumUnused is what may be taken from containers that do not use it: of an owner, or of all.
func (m *Manager) sumUnused(owner *string) (sum resource.Amount) {
	for _, c := range m.ordered {
		if owner == nil || c.Owner == *owner {
			sum += m.unused(c)
		}
	}
	return sum
}

// takeUnused takes what containers do not use, from the last first, and returns how much.
func (m *Manager) takeUnused(need resource.Amount, why Reason) (taken resource.Amount) {
	for i := len(m.ordered) - 1; i >= 0 && need > taken; i-- {
		if c := m.ordered[i]; m.unused(c) > 0 {
			more := min(m.unused(c), need-taken)
			taken += more
			m.order(Shrink, c, c.limit-more, why)
		}
	}
	return taken
}

// exceeding returns the owners who exceed the share, the one who does by most first, with what may be taken from them:
// what they use beyond it, and what they do not use.
func (m *Manager) exceeding() (all []part) {
	for i := range m.parts {
		if owner := m.parts[i].owner; m.excess(owner) > 0 {
			all = append(all, part{owner, m.excess(owner) + m.sumUnused(&owner)})
		}
	}
	slices.SortFunc(all, func(a, b part) int {
		return cmp.Or(cmp.Compare(m.excess(b.owner), m.excess(a.owner)), cmp.Compare(a.owner, b.owner))
	})
	return all
}

// giveBack returns how much of what is to be taken from an owner can be, and with act has it done. Where it cannot be
// swapped out, the youngest container that may be requeued is, one in a step.
func (m *Manager) giveBack(from *part, d *debt, act bool) (freed resource.Amount) {
	if from.takes == 0 {
		return 0
	}
	m.alone(from.owner, m.node.Memory, func() {
		if m.dry() {
			freed = m.collectDry(from.takes, 0, nil, nil, true)
		} else {
			freed = m.collect(from.takes, d.first, nil, runningToo)
		}
		last := m.wouldGive(from.takes)
		switch {
		case freed >= from.takes || last == nil:
			if act {
				m.accept(d.why)
			}
		case m.busy():
			freed = 0
		default:
			freed = 0
			for _, c := range m.ordered {
				if c.mayRequeue() {
					freed += c.room()
				}
			}
			if act {
				m.requeue(last, d.why)
			}
		}
	})
	return freed
}

// wouldGive returns the youngest container that may be requeued and would free the given memory, or else the one that
// would free most; nil if there is none.
func (m *Manager) wouldGive(need resource.Amount) (best *container) {
	for _, c := range m.ordered {
		if !c.mayRequeue() || m.now < c.retryAt {
			continue
		}
		if best == nil || min(c.room(), need) > min(best.room(), need) ||
			min(c.room(), need) == min(best.room(), need) && m.byRank(c, best) > 0 {
			best = c
		}
	}
	return best
}

// busy reports whether the kernel is doing something whose end will tell how much containers can give.
func (m *Manager) busy() bool {
	return slices.ContainsFunc(m.ordered, func(c *container) bool { return c.pending != nil && !c.leaving() })
}

// excesses are what owners may give to another owner's container beyond what they never touched, bytes.
type excesses map[string]resource.Amount

// excessesFor finds them; nil if there is no bound.
func (m *Manager) excessesFor(e *Envelope) excesses {
	if m.share == 0 || e == nil {
		return nil
	}
	all := excesses{}
	for i := range m.parts {
		if owner := m.parts[i].owner; owner != e.Owner {
			all[owner] = max(0, m.excess(owner))
		}
	}
	return all
}

// bounds reports whether only the excess of its owner may be taken from c.
func (all excesses) bounds(c *container) bool {
	_, other := all[c.Owner]
	return other && !c.beyond()
}

// beyond reports whether c lacks memory beyond the share of its owner.
func (c *container) beyond() bool { return c.wants() && c.owed == 0 }

// left is how much may be taken from c.
func (all excesses) left(c *container, want resource.Amount) resource.Amount {
	if all.bounds(c) {
		return min(want, all[c.Owner])
	}
	return want
}

// take notes that memory is taken from c.
func (all excesses) take(c *container, bytes resource.Amount) {
	if all.bounds(c) {
		all[c.Owner] -= bytes
	}
}

// protects reports whether the share of the owner of o keeps it from being requeued, or ended, for c.
func (m *Manager) protects(o, c *container) bool {
	return m.share > 0 && c != nil && o.Owner != c.Owner && m.excess(o.Owner) <= 0 && !o.beyond()
}

// owedBefore is what is withheld from a FLEX container that is to start because it is owed to containers that run. What
// a REGULAR one asks for is reserved.
func (m *Manager) owedBefore(r *request) (sum resource.Amount) {
	if m.share == 0 || r.Class != cluster.Flex {
		return 0
	}
	for _, c := range m.ordered {
		sum += c.owed
	}
	return sum
}

// shortBefore returns the first container that lacks memory, and for whose sake r does not start: one that is within
// the share of its owner waits for the owner's other containers alone.
func (m *Manager) shortBefore(r *request) *container {
	for _, c := range m.ordered {
		if c.wants() && !m.foreign(c, r.Owner) && (r.owed == 0 || c.Owner == r.Owner) {
			return c
		}
	}
	return nil
}

// isOwed reports whether c is owed memory that other owners swap out for it: it may page until that has come.
func (m *Manager) isOwed(c *container) bool { return m.share > 0 && c.owed > 0 && !m.dry() }
