package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// paging says where the memory of a paused task is. It goes out and comes back at Config.PageOutSpeed:
//
//	in memory ──▶ goes out ──▶ out ──▶ waits for free memory ──▶ comes back ──▶ in memory
//
// An order that comes meanwhile turns it round. While memory goes out or comes back, all of it counts as in memory.
type paging struct {
	wanted bool            // by the newest order: it is to be out
	out    resource.Amount // what is not in memory, bytes
	coming resource.Amount // what comes back, bytes
	moves  uint64          // of the agenda item for the end of the move under way; 0 if there is none
}

// away reports whether the task cannot go on, because its memory is not back.
func (p *paging) away() bool { return p.out+p.coming > 0 }

// turnOut makes the memory of a task go out, or come back.
func (r *run) turnOut(t *task, out bool) {
	p := &t.holding.paging
	if p.wanted == out || t.result.Coordinator || t.ending != 0 {
		return
	}
	p.wanted, p.moves = out, 0
	switch {
	case out && t.container != nil && t.container.envelope.HeartbeatTimeout > 0:
		r.report(t, cluster.Event{Kind: cluster.TaskPagedOut,
			Found: &cluster.Condition{Stays: "its programs run briefly from time to time, to send heartbeats"}})
	case out && t.container != nil && t.container.flex():
		r.sendOut(t.container)
	case t.container != nil && t.container.flex():
		r.callBack(t.container)
	case out && r.keepers != nil:
		r.report(t, cluster.Event{Kind: cluster.TaskPagedOut,
			Found: &cluster.Condition{Stays: "in this simulation the memory managers keep the memory of REGULAR tasks"}})
	case out && p.away():
		r.leave(t, p.coming) // it was on its way back
		p.coming = 0
	case out:
		r.moveFor(t, t.grant[resource.Memory])
	case p.away():
		r.returning = append(r.returning, t)
	}
}

// leave counts memory of a task as out; less than 0 comes back.
func (r *run) leave(t *task, bytes resource.Amount) {
	before := r.heldBy(t)
	t.holding.out += bytes
	r.grant(t.node, before, r.heldBy(t))
	f, here := t.flow, &r.nodes[t.node]
	if here.demand, f.away = here.demand.Sub(f.demand), t.holding.out > 0; f.held {
		f.slow(1)
	}
	here.demand = here.demand.Add(f.demand)
	r.unsettle(t.node)
}

// moveFor enters the end of a move of a task's memory in the agenda.
func (r *run) moveFor(t *task, bytes resource.Amount) {
	takes := time.Duration(0)
	if speed := r.config.PageOutSpeed; speed > 0 {
		takes = time.Duration(min(math.Ceil(float64(bytes)*1e9/float64(speed)), math.MaxInt64/2))
	}
	t.holding.moves = r.agenda.turn()
	r.agenda.pushAt(after(r.now, takes), t.holding.moves, paged, t.index)
}

// endMove handles the end of a move of a task's memory.
func (r *run) endMove(t *task, i item) {
	if t.ended() || t.holding == nil || t.holding.moves != i.seq {
		return // it was turned round
	}
	p := &t.holding.paging
	p.moves = 0
	if p.wanted {
		r.leave(t, t.grant[resource.Memory]-p.out)
		r.stepOne(cluster.Event{Kind: cluster.TaskPagedOut, Task: t.id, Node: t.node, Found: &cluster.Condition{Out: p.out}})
		return
	}
	p.coming = 0
	r.holdStill(t, t.holding.by != 0)
	r.stepOne(cluster.Event{Kind: cluster.TaskPagedOut, Task: t.id, Node: t.node})
	r.reportStill(t)
}

// bringBack begins to bring memory back where it is free, in the order in which the tasks were resumed.
func (r *run) bringBack() {
	waits := r.returning[:0]
	for _, t := range r.returning {
		switch p := &t.holding.paging; {
		case t.ended() || p.wanted || p.out == 0:
		case p.out > r.freeMemory(t.node):
			waits = append(waits, t)
		default:
			p.coming = p.out
			r.leave(t, -p.out)
			r.moveFor(t, p.coming)
		}
	}
	clear(r.returning[len(waits):])
	r.returning = waits
}

// freeMemory is what no task of a node has in memory, bytes.
func (r *run) freeMemory(id cluster.NodeID) resource.Amount {
	n := r.engine.Snapshot().Nodes[id]
	free := n.Capacity[resource.Memory]
	for _, booked := range n.Tasks {
		free -= booked.Grant[resource.Memory]
		if t := r.latest(booked.ID); t != nil && t.holding != nil {
			free += t.holding.out
		}
	}
	return free
}

// checkPageOut returns an error if the speed at which memory goes out is out of range.
func checkPageOut(speed resource.Amount) error {
	if speed < 0 {
		return fmt.Errorf("page-out speed %d bytes per second: must not be negative", speed)
	}
	return nil
}
