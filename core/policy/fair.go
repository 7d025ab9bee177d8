package policy

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// fair is YARN's FairScheduler by memory: the job with the least memory is served first. With reservations, a node
// without room for the next task of the job at the head of the queue is reserved for that job (YARN-ME section 3.3,
// "Node reservations"), unless the node never has room for that task; with gaps, other jobs may use a reserved node
// as long as that does not delay the job that reserved it.
type fair struct {
	name         string
	reservations bool
	gaps         string // "true", "false" or "auto": only where nodes have no heartbeats
	queue        fairQueue
	size         sizing
	holds        holding
	gap          gap
	demand       offering
}

// sizing returns with how much memory, in bytes, the next task of a stage may start on n, and why; ok is false if it
// may not, and then why says why not.
type sizing func(
	now timeline.Time, s *book.Snapshot, n *book.NodeState, j *book.JobState, stage int,
) (memory resource.Amount, why cluster.Reason, ok bool)

// holding reports whether the next task of a stage could start on n if nothing ran there.
type holding func(s *book.Snapshot, n *book.NodeState, stage *cluster.Stage) bool

func newFair(s *contract.Settings) Policy {
	f := makeFair(s, "false")
	return &f
}

// makeFair makes the part of a policy that is fair sharing; gaps is the default of the setting gaps.
func makeFair(s *contract.Settings, gaps string) fair {
	return fair{
		name: s.Policy,
		reservations: s.Declare("reservations", "true",
			"keep a node that cannot hold the head job's next task for that job").Flag(),
		gaps: s.Declare("gaps", gaps,
			"let other jobs use a reserved node while that does not delay the job that it is reserved for: true, "+
				"false, or auto: only where nodes have no heartbeats (with them, our runs of the authors' simulator "+
				"do not)").OneOf("true", "false", "auto"),
		size:  idealSize,
		holds: holdsIdeal,
	}
}

func (f *fair) Name() string   { return f.name }
func (f *fair) Traits() Traits { return Traits{DropCaches: f.queue.Drop} }

// idealSize starts tasks only with their ideal memory.
func idealSize(
	_ timeline.Time, _ *book.Snapshot, n *book.NodeState, j *book.JobState, stage int,
) (resource.Amount, cluster.Reason, bool) {
	need := &j.Stages[stage].Ideal
	if why, ok := n.Fits(*need); !ok {
		return 0, why, false
	}
	return need[resource.Memory], cluster.BecauseFits(need[resource.Memory]), true
}

func holdsIdeal(_ *book.Snapshot, n *book.NodeState, stage *cluster.Stage) bool {
	return n.Holds(stage.Ideal)
}

func (f *fair) Decide(now timeline.Time, p *book.Plan) {
	f.queue.follow(p)
	f.offerAll(now, p)
}

// offerAll offers every node that may be able to start something: the nodes that changed and, if there are new runnable
// tasks, the nodes with room for one of them.
func (f *fair) offerAll(now timeline.Time, p *book.Plan) {
	holds := func(e queued) bool { return e.Job.Reservations > 0 }
	if f.reservations && p.Running == 0 && slices.ContainsFunc(f.queue.Jobs, holds) {
		for n := range hopeless(p) {
			p.Unreserve(n, cluster.Because(cluster.ReservationHopeless))
		}
	}
	f.demand.offerAll(p, func(n *book.NodeState) { f.offer(now, p, n) }, func() { f.offerRoom(now, p) })
}

// offering is set during a decision if there are runnable tasks that have not yet been offered to every node with room.
type offering bool

// offerAll calls offer for each node that may be able to start something, and room as long as there is demand.
func (d *offering) offerAll(p *book.Plan, offer func(*book.NodeState), room func()) {
	*d = offering(p.Changes.Demand)
	for again := true; again; { // a start may change other nodes and create demand
		for n := range p.Offers() {
			offer(n)
		}
		if again = bool(*d); again {
			*d = false
			room()
		}
	}
}

// offerRoom offers every node with room for a task of a job that changed.
func (f *fair) offerRoom(now timeline.Time, p *book.Plan) {
	least := leastNeed(p, func(j *book.JobState, stage int) resource.Vector { return j.Stages[stage].LeastNeed() })
	for n, ok := p.NextRoom(least, 0); ok; n, ok = p.NextRoom(least, n.ID+1) {
		for f.offer(now, p, n) {
		}
	}
	if !f.usesGaps(p) {
		return
	}
	for n, ok := p.NextReservedRoom(least, 0); ok; n, ok = p.NextReservedRoom(least, n.ID+1) {
		for f.offer(now, p, n) {
		}
	}
}

// leastNeed is, per resource, the least with which a changed job could start a task, from the needs of next tasks.
func leastNeed(p *book.Plan, of func(j *book.JobState, stage int) resource.Vector) resource.Vector {
	least := resource.TooMuch()
	for _, j := range p.Changes.Jobs {
		if stage, ok := j.NextStage(); ok {
			least = least.Min(of(j, stage))
		}
	}
	return least
}

// offer lets the queue start one task on n and reports whether it did.
func (f *fair) offer(now timeline.Time, p *book.Plan, n *book.NodeState) bool {
	if n.ReservedFor != nil {
		if n.ReservationNeeded() {
			if f.start(now, p, n, n.ReservedFor, n.ReservedStage) {
				return true
			}
			return f.usesGaps(p) && f.offerGap(now, p, n)
		}
		p.Unreserve(n, cluster.Because(cluster.ReservationNotNeeded))
	}
	for i := 0; i < len(f.queue.Jobs); i++ {
		j := f.queue.Jobs[i].Job
		stage, _ := j.NextStage()
		if f.start(now, p, n, j, stage) {
			return true
		}
		if f.reservations && p.Running > 0 && f.holds(p.Snapshot, n, &j.Stages[stage]) {
			p.Reserve(n, j, stage, cluster.BecauseReserved(j.Stages[stage].Ideal, n.Free))
			return p.AtOnce() && f.usesGaps(p) && f.offerGap(now, p, n)
		}
	}
	return false
}

func (f *fair) usesGaps(p *book.Plan) bool {
	return f.gaps == "true" || f.gaps == "auto" && p.AtOnce()
}

// start starts the next task of a stage on n if its size allows that, and files its job anew.
func (f *fair) start(now timeline.Time, p *book.Plan, n *book.NodeState, j *book.JobState, stage int) bool {
	memory, why, ok := f.size(now, p.Snapshot, n, j, stage)
	if !ok {
		p.Wait(j, stage, n.ID, why)
		return false
	}
	p.Start(j, stage, n, memory, why)
	f.queue.update(j)
	if n.ReservedFor == j {
		p.Unreserve(n, cluster.Because(cluster.ReservationUsed))
	}
	f.moveOn(p, j, stage)
	return true
}

// moveOn notes that a job may have another next stage, after a task of the given stage has started.
func (f *fair) moveOn(p *book.Plan, j *book.JobState, stage int) {
	if next, more := j.NextStage(); p.AtOnce() && (!more || next != stage) {
		giveBackUnneeded(p, j)
		f.demand = f.demand || offering(more) // its next stage may fit on nodes without room for this stage
	}
}

// giveBackUnneeded ends the reservations of a job that has nothing more to start from the reserved stage. Where nodes
// have heartbeats, a reservation ends at its node's next heartbeat instead.
func giveBackUnneeded(p *book.Plan, j *book.JobState) {
	for i := 0; i < len(p.Nodes) && j.Reservations > 0; i++ {
		if n := p.Nodes[i]; n.ReservedFor == j && !n.ReservationNeeded() {
			p.Unreserve(n, cluster.Because(cluster.ReservationNotNeeded))
		}
	}
}

// gap finds how long reserved nodes may serve others.
type gap struct {
	outlook book.Outlook
	then    book.NodeState // a node as it will be
}

// until returns when the job that reserved n can use it, which fits decides for the node as it will be, or when all
// tasks of that job should have started, if that is earlier. known is false if neither is known.
func (g *gap) until(now timeline.Time, p *book.Plan, n *book.NodeState,
	fits func(then *book.NodeState) bool) (until timeline.Time, known bool) {
	until, known = g.room(now, p, n, fits)
	if holder := n.ReservedFor; holder.Estimate.AllStartedKnown && holder.Estimate.AllStarted < until {
		return holder.Estimate.AllStarted, true
	}
	return until, known
}

// room returns when the task for which fits decides fits on n, after the end of a task; known is false if that is
// unknown.
func (g *gap) room(now timeline.Time, p *book.Plan, n *book.NodeState,
	fits func(then *book.NodeState) bool) (at timeline.Time, known bool) {
	g.then = *n
	g.outlook.Look(n, func(t *book.TaskState) (timeline.Time, bool) { return p.EstimatedEnd(t, now) })
	return g.outlook.RoomAfterEnd(func(free resource.Vector) bool {
		g.then.Free = free
		return fits(&g.then)
	})
}

// endsBy returns when a task of a stage ends that starts now with the given memory; ok is false if that is unknown, or
// known to the policy only after a time.
func endsBy(now timeline.Time, p *book.Plan, stage *cluster.Stage, memory resource.Amount,
	until timeline.Time) (end timeline.Time, ok bool) {
	d, known := stage.DurationAt(memory)
	end = now.Add(d)
	return end, known && p.HeardOf(end) <= until
}

// offerGap starts a task of another job on a reserved node if the end of the task is known in time: before the job that
// reserved the node can use it, with its ideal memory or under-sized, or by the time at which all tasks of that job
// should have started. Coordinators have no known end and never start in a gap.
func (f *fair) offerGap(now timeline.Time, p *book.Plan, n *book.NodeState) bool {
	holder := n.ReservedFor
	until, known := f.gap.until(now, p, n, func(then *book.NodeState) bool {
		_, _, ok := f.size(now, p.Snapshot, then, holder, n.ReservedStage)
		return ok
	})
	if !known {
		return false
	}
	for i := range f.queue.Jobs {
		j := f.queue.Jobs[i].Job
		stage, _ := j.NextStage()
		if j == holder || j.Stages[stage].Coordinator {
			continue
		}
		memory, why, ok := f.size(now, p.Snapshot, n, j, stage)
		if !ok {
			continue
		}
		end, early := endsBy(now, p, &j.Stages[stage], memory, until)
		if !early {
			continue
		}
		if why.Code == cluster.Fits {
			why = cluster.BecauseFitsInGap(memory, end, until)
		}
		p.Start(j, stage, n, memory, why)
		f.queue.update(j)
		f.moveOn(p, j, stage)
		return true
	}
	return false
}
