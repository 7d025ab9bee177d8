package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// ledger says what the memory of the node is used for at one moment of a step, in the words of the package, bytes.
type ledger struct {
	memory    resource.Amount
	allocated resource.Amount // the rooms of all containers: A of Algorithm 1
	awaited   resource.Amount
	reserve   resource.Amount
	claimed   resource.Amount
	owed      resource.Amount
	coming    resource.Amount // of allocated
}

// free is what may be given to any container.
func (l *ledger) free() resource.Amount { return l.available() - l.claimed - l.owed }

// unallocated is what is in no room.
func (l *ledger) unallocated() resource.Amount { return l.memory - l.allocated }

// available is claimed + owed + free: what may be given to a container from which nothing is withheld.
func (l *ledger) available() resource.Amount { return l.unallocated() - l.awaited - l.reserve }

// ledger sums up the present moment. Later orders in the same step change it.
func (m *Manager) ledger() ledger {
	l := ledger{memory: m.node.Memory, claimed: metBy(m.requests, m.node.Memory)}
	l.reserve = l.memory - resource.Amount(m.p.Stop*float64(l.memory))
	for _, c := range m.ordered {
		l.allocated += c.room()
		l.coming += c.coming()
		l.owed += c.owed
	}
	if i := slices.IndexFunc(m.requests, func(r request) bool { return !r.claim }); i >= 0 {
		l.awaited = m.requests[i].Min
	}
	for i := range m.requests {
		l.owed += m.requests[i].owed
	}
	if m.share == 0 || m.unmet {
		l.owed = 0
	}
	return l
}

// coming is what the kernel is about to free of c's room.
func (c *container) coming() resource.Amount {
	switch {
	case c.doing(Shrink):
		return c.limit - c.target
	case c.leaving():
		return c.limit
	}
	return 0
}

// Allocated is A of Algorithm 1, bytes: what containers may hold together, and what they may still hold until the
// kernel has finished.
func (m *Manager) Allocated() resource.Amount { return m.ledger().allocated }

// metBy returns how much the given memory would meet of the claims, the oldest first.
func metBy(claims []request, memory resource.Amount) (sum resource.Amount) {
	for i := range claims {
		if r := &claims[i]; r.claim && sum+r.Min <= memory {
			sum += r.Min
		}
	}
	return sum
}

// withheldFrom returns how much of the claims is withheld from c, which is short or nearly so: the claims that can be
// met before c has ended; otherwise c and a claim would wait for each other. Claims can be met from memory that is
// available, coming or reclaimable, and from the rooms of other running containers, which will end. If one of them is
// a service and does not end, c waits until its turn comes.
func (m *Manager) withheldFrom(c *container) resource.Amount {
	if metBy(m.requests, m.node.Memory) == 0 {
		return 0
	}
	l := m.ledger()
	could := l.available() + l.reserve + l.coming
	if c.place.standing == onTurn {
		return metBy(m.requests, could)
	}
	var ends resource.Amount
	for _, o := range m.ordered {
		if o != c && (!o.state.suspended() || !o.wants()) {
			ends += o.room()
		}
	}
	if m.dry() {
		return metBy(m.requests, could+max(ends, m.collectDry(l.claimed-could, 0, nil, nil, false)))
	}
	return metBy(m.requests, could+max(ends, m.collect(l.claimed-could, nil, nil, runningToo)))
}
