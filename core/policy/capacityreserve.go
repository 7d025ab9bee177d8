package policy

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// reservation is a node that is reserved for a job, and the amount charged to the job's queue.
type reservation struct {
	node cluster.NodeID
	need resource.Vector
}

// reserved adds up what is reserved for the job.
func (m *capacityJob) reserved() (v resource.Vector) {
	for _, r := range m.kept {
		v = v.Add(r.need)
	}
	return v
}

// settleReservations starts tasks on reserved nodes that now have room for them, and ends reservations that are no
// longer needed.
func (c *capacity) settleReservations(p *book.Plan) {
	if len(c.kept) == 0 {
		return
	}
	if p.Running == 0 {
		for n := range hopeless(p) {
			c.unreserve(p, c.kept[n.ID], n, cluster.ReservationHopeless)
		}
	}
	for n := range p.Offers() {
		c.settle(p, n)
	}
	for _, j := range p.Changes.Jobs {
		if m := c.tree.Members[j]; m != nil {
			c.giveBackExcess(p, m)
		}
	}
}

// settle handles one reservation. A task within the amount that was charged for the reservation needs no further check.
func (c *capacity) settle(p *book.Plan, n *book.NodeState) {
	m := c.kept[n.ID]
	if m == nil {
		return
	}
	if !n.ReservationNeeded() {
		c.unreserve(p, m, n, cluster.ReservationNotNeeded)
	} else if n.ReservedNeed().FitsIn(n.Free) {
		c.start(p, m, n.ReservedStage, n)
	}
}

// giveBackExcess ends the reservations for which a job has no more tasks. Where nodes report by heartbeats, each
// reservation ends when its node reports.
func (c *capacity) giveBackExcess(p *book.Plan, m *capacityMember) {
	if !p.AtOnce() || len(m.Own.kept) == 0 {
		return
	}
	for i := 0; i < len(m.Own.kept); {
		n := p.Nodes[m.Own.kept[i].node]
		if n.ReservationNeeded() && len(m.Own.kept) <= m.Job.Startable(n.ReservedStage) {
			i++
			continue
		}
		c.unreserve(p, m, n, cluster.ReservationNotNeeded)
	}
}

// makeLimit ends reservations of m until m may use need elsewhere.
func (c *capacity) makeLimit(p *book.Plan, m *capacityMember, need resource.Vector) {
	for len(m.Own.kept) > 0 {
		if _, over := c.overLimit(m, need, resource.Vector{}); !over {
			return
		}
		c.unreserve(p, m, p.Nodes[m.Own.kept[0].node], cluster.ReservationNotNeeded)
	}
}

// reserve reserves changed nodes that lack room for the next task of a job: no more nodes than the job has tasks to
// start, and only within the limits of its queues. It skips nodes on which no running task ends by itself.
func (c *capacity) reserve(p *book.Plan, m *capacityMember, stage int) {
	if m.Own.looked == c.decisions || p.Running == 0 {
		return
	}
	m.Own.looked = c.decisions
	need := m.Job.Stages[stage].Ideal
	for n := range p.Offered() {
		if n.ReservedFor != nil || !n.Holds(need) || need.FitsIn(n.Free) || !someFree(n.Free, need) ||
			!slices.ContainsFunc(n.Tasks, ends) {
			continue
		}
		if len(m.Own.kept) >= m.Job.Startable(stage) {
			return
		}
		if _, over := c.overLimit(m, need, resource.Vector{}); over {
			return
		}
		p.Reserve(n, m.Job, stage, cluster.BecauseReserved(need, n.Free))
		c.noteReservation(m, n)
	}
}

// someFree reports whether some of each needed resource is free: nodes that lack one entirely are not reserved.
func someFree(free, need resource.Vector) bool {
	for k := range need {
		if need[k] > 0 && free[k] <= 0 {
			return false
		}
	}
	return true
}

// ends reports whether a task ends by itself. A coordinator does not.
func ends(t *book.TaskState) bool { return !t.Steers }

func (c *capacity) unreserve(p *book.Plan, m *capacityMember, n *book.NodeState, why cluster.ReasonCode) {
	p.Unreserve(n, cluster.Because(why))
	c.forgetReservation(m, n.ID)
	c.misses.forget()
}

func (c *capacity) noteReservation(m *capacityMember, n *book.NodeState) {
	at, _ := slices.BinarySearchFunc(m.Own.kept, n.ID, byNode)
	r := reservation{n.ID, n.ReservedNeed()}
	m.Own.kept = slices.Insert(m.Own.kept, at, r)
	c.kept[n.ID] = m
	c.charge(m, r.need)
}

func (c *capacity) forgetReservation(m *capacityMember, id cluster.NodeID) {
	at, _ := slices.BinarySearchFunc(m.Own.kept, id, byNode)
	c.charge(m, resource.Vector{}.Sub(m.Own.kept[at].need))
	m.Own.kept = slices.Delete(m.Own.kept, at, at+1)
	delete(c.kept, id)
}

func byNode(r reservation, id cluster.NodeID) int { return cmp.Compare(r.node, id) }

// charge adds to what is reserved in the leaf of a job and in the queues above.
func (c *capacity) charge(m *capacityMember, more resource.Vector) {
	for q := m.Leaf; q != nil; q = q.Parent {
		q.Own.reserved = q.Own.reserved.Add(more)
	}
}
