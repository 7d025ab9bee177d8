package memory

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Out says that a container stands still without its memory, which is paged out: its programs are stopped by another
// party than the manager. The manager leaves the container alone, whatever its class, and counts Limit, until a
// Request for it is admitted.
//
// The caller sends an Out twice: before it pages out, without a Limit, so that nothing more is ordered for the
// container; and after the limit was lowered. From the second on, no action that was ordered earlier may come into
// force.
type Out struct {
	Container cluster.ContainerID
	Limit     resource.Amount // in force, bytes; 0: as before
}

// takeOut takes in that a container is paged out. It takes back a request for its memory.
func (m *Manager) takeOut(o *Out) {
	c, ok := m.containers[o.Container]
	if !ok {
		return
	}
	c.out, c.short, c.atRisk = true, false, false
	m.requests = slices.DeleteFunc(m.requests, func(r request) bool { return r.Container == o.Container })
	if o.Limit == 0 {
		return
	}
	for id, of := range m.acting {
		if of == c {
			delete(m.acting, id)
		}
	}
	c.pending, c.overdue = nil, nil
	c.limit, c.target, c.state, c.grown = o.Limit, o.Limit, running, false
}

// comeBack gives a container that was paged out the memory that was admitted: up to its Min, or less if that was
// raised meanwhile. A FLEX container comes back suspended, and is resumed in its place in the order, when it has what
// it holds.
func (m *Manager) comeBack(c *container, more resource.Amount) {
	c.out = false
	c.limit = max(c.limit, min(c.Min, c.limit+more))
	c.target = c.limit
	if c.flex() {
		c.suspend(m.now, Reason{Code: PagedOut})
	}
}
