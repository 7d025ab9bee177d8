package policy

import (
	"cmp"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// reservation is a node that is reserved for a job, and the amount charged to the job's queue.
type reservation struct {
	node cluster.NodeID
	need resource.Vector
}

// reserved adds up what is reserved for m.
func (m *capacityMember) reserved() (v resource.Vector) {
	for _, r := range m.kept {
		v = v.Add(r.need)
	}
	return v
}

// settleReservations starts tasks on reserved nodes that now have room for them, and ends reservations that are no
// longer needed.
func (c *capacity) settleReservations(p *cluster.Plan) {
	if len(c.kept) == 0 {
		return
	}
	if p.Running == 0 {
		c.giveBackHopeless(p)
	}
	for n := range p.Offers() {
		c.settle(p, n)
	}
	for _, j := range p.Changes.Jobs {
		if m := c.members[j]; m != nil {
			c.giveBackExcess(p, m)
		}
	}
}

// settle handles one reservation. A task within the amount that was charged for the reservation needs no further check.
func (c *capacity) settle(p *cluster.Plan, n *cluster.NodeState) {
	m := c.kept[n.ID]
	if m == nil {
		return
	}
	stage, more := m.job.NextStage()
	switch {
	case !more || stage != n.ReservedStage:
		c.unreserve(p, m, n, cluster.ReservationNotNeeded)
	case m.job.Stages[stage].Ideal.FitsIn(n.Free):
		c.start(p, m, stage, n)
	}
}

// giveBackHopeless ends the reservations of nodes without enough room. It is called when only coordinators run: no
// running task has a known end for which the nodes could wait.
func (c *capacity) giveBackHopeless(p *cluster.Plan) {
	for _, id := range slices.Sorted(maps.Keys(c.kept)) {
		if n := p.Nodes[id]; !n.ReservedFor.Stages[n.ReservedStage].Ideal.FitsIn(n.Free) {
			c.unreserve(p, c.kept[id], n, cluster.ReservationHopeless)
		}
	}
}

// giveBackExcess ends the reservations for which a job has no more tasks. Where nodes report by heartbeats, each
// reservation ends when its node reports.
func (c *capacity) giveBackExcess(p *cluster.Plan, m *capacityMember) {
	if !p.AtOnce() || len(m.kept) == 0 {
		return
	}
	stage, more := m.job.NextStage()
	for i := 0; i < len(m.kept); {
		n := p.Nodes[m.kept[i].node]
		if more && n.ReservedStage == stage && len(m.kept) <= m.job.Progress[stage].Pending {
			i++
			continue
		}
		c.unreserve(p, m, n, cluster.ReservationNotNeeded)
	}
}

// makeLimit ends reservations of m until m may use need elsewhere.
func (c *capacity) makeLimit(p *cluster.Plan, m *capacityMember, need resource.Vector) {
	for len(m.kept) > 0 {
		if _, over := c.overLimit(m, need, resource.Vector{}); !over {
			return
		}
		c.unreserve(p, m, p.Nodes[m.kept[0].node], cluster.ReservationNotNeeded)
	}
}

// reserve reserves changed nodes that lack room for the next task of a job: no more nodes than the job has tasks to
// start, and only within the limits of its queues. It skips nodes on which no running task ends by itself.
func (c *capacity) reserve(p *cluster.Plan, m *capacityMember, stage int) {
	if m.looked == c.decisions || p.Running == 0 {
		return
	}
	m.looked = c.decisions
	need := m.job.Stages[stage].Ideal
	for n := range p.Offered() {
		if n.Gone || n.ReservedFor != nil || !need.FitsIn(n.Capacity) || need.FitsIn(n.Free) || !someFree(n.Free, need) || !slices.ContainsFunc(n.Tasks, ends) {
			continue
		}
		if _, over := c.overLimit(m, need, resource.Vector{}); over || len(m.kept) >= m.job.Progress[stage].Pending {
			return
		}
		p.Reserve(n, m.job, stage, cluster.BecauseReserved(need, n.Free))
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
func ends(t *cluster.TaskState) bool { return !t.Steers }

func (c *capacity) unreserve(p *cluster.Plan, m *capacityMember, n *cluster.NodeState, why cluster.ReasonCode) {
	p.Unreserve(n, cluster.Because(why))
	c.forgetReservation(m, n.ID)
	c.misses.forget()
}

func (c *capacity) noteReservation(m *capacityMember, n *cluster.NodeState) {
	at, _ := slices.BinarySearchFunc(m.kept, n.ID, byNode)
	r := reservation{n.ID, m.job.Stages[n.ReservedStage].Ideal}
	m.kept = slices.Insert(m.kept, at, r)
	c.kept[n.ID] = m
	c.charge(m, r.need)
}

func (c *capacity) forgetReservation(m *capacityMember, id cluster.NodeID) {
	at, _ := slices.BinarySearchFunc(m.kept, id, byNode)
	c.charge(m, resource.Vector{}.Sub(m.kept[at].need))
	m.kept = slices.Delete(m.kept, at, at+1)
	delete(c.kept, id)
}

func byNode(r reservation, id cluster.NodeID) int { return cmp.Compare(r.node, id) }

// charge adds to what is reserved in the leaf of a job and in the queues above.
func (c *capacity) charge(m *capacityMember, more resource.Vector) {
	for q := m.leaf; q != nil; q = q.parent {
		l := &c.limits[q.index]
		l.reserved = l.reserved.Add(more)
	}
}
