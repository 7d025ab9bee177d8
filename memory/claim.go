package memory

import (
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// request is a container that is to start. A REGULAR one that was refused stays as a claim: what is free, or comes free, is
// kept for it until it asks again, which it does because it was refused. Else what grows would take it meanwhile, and with it
// the REGULAR container's turn, for ever.
type request struct {
	Envelope
	asked timeline.Time // the last time
	claim bool          // it has been refused since
}

// takeRequests takes over what was asked for. Who asks again keeps its place.
func (m *Manager) takeRequests(all []Request) {
	for i := range all {
		r := request{Envelope: all[i].Envelope, asked: m.now}
		if m.hasEnded(r.Container) {
			continue
		}
		at := slices.IndexFunc(m.requests, func(old request) bool { return old.Container == r.Container })
		if at < 0 {
			m.requests = append(m.requests, r)
		} else {
			m.requests[at] = r
		}
	}
}

// expireRequests drops the claims of containers that do not ask again, and forgets ends that no other news followed.
func (m *Manager) expireRequests() {
	m.requests = slices.DeleteFunc(m.requests, func(r request) bool { return r.claim && m.now.Sub(r.asked) >= m.p.ClaimFor })
	maps.DeleteFunc(m.endedEarly, func(_ cluster.ContainerID, told timeline.Time) bool { return m.now.Sub(told) >= m.p.ActionTimeout })
}

// refuse answers a request, and notes whether it stays as a claim.
func (m *Manager) refuse(i int, why Reason) (stays bool) {
	r := &m.requests[i]
	m.answer(Refuse, r.Container, why)
	if r.Class == cluster.Flex || m.p.ClaimFor == 0 {
		m.requests = slices.Delete(m.requests, i, i+1)
		return false
	}
	r.claim = true
	return true
}

// metBy is what those of the claims want that so much memory would meet, in the order in which they were made.
func metBy(claims []request, memory resource.Amount) (sum resource.Amount) {
	for i := range claims {
		if r := &claims[i]; r.claim && sum+r.Min <= memory {
			sum += r.Min
		}
	}
	return sum
}

// claimed is what is kept for claims: for all that the node could meet, if need be when all else has ended.
func (m *Manager) claimed() resource.Amount { return metBy(m.requests, m.node.Memory) }

// keptFrom is what is kept for claims if c is out of memory or nearly: only for those that can be met before c has ended, or c
// and they would wait for each other. They can by what is free, what is coming free, what can be reclaimed, and what others
// hold that run, for those will end; if one does not, as a service, c waits until its turn has come.
func (m *Manager) keptFrom(c *container) resource.Amount {
	all := m.claimed()
	if all == 0 {
		return 0
	}
	could := m.free() + m.comingFree()
	if c.place.standing == onTurn {
		return metBy(m.requests, could)
	}
	var ends resource.Amount
	for _, o := range m.ordered {
		if o != c && (!o.state.suspended() || !o.wants()) {
			ends += o.room()
		}
	}
	return metBy(m.requests, could+max(ends, m.collect(all-could, nil, runningToo)))
}

// free is what no container may hold, without what one that is to start waits for.
func (m *Manager) free() resource.Amount {
	free := m.node.Memory - m.Allocated()
	if i := slices.IndexFunc(m.requests, func(r request) bool { return !r.claim }); i >= 0 {
		free -= m.requests[i].Min
	}
	return free
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
