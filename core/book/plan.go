package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Plan is what a policy works on: the Snapshot as it will be once the decisions taken so far in this step are carried
// out, and those decisions. Each decision is checked when it is taken. The first impossible decision fails the whole
// step, because it is a bug of the policy.
type Plan struct {
	*Snapshot
	now       timeline.Time
	decisions []cluster.Decision
	offered   int              // nodes that Offers has yielded in this step
	ahead     *JobState        // the job behind which all jobs without another reason wait; nil if there is none
	gangs     []cluster.TaskID // the first task of each stage whose tasks start together, started in this step
	questions []question       // of the Asks in this step
	lastID    cluster.DecisionID
	err       error
}

// newPlan begins a plan at now. lastID is the newest DecisionID given so far.
func newPlan(now timeline.Time, s *Snapshot, lastID cluster.DecisionID) Plan {
	return Plan{Snapshot: s, now: now, lastID: lastID}
}

// reset begins the next plan on the same snapshot. It reuses the memory of the last plan, whose decisions become
// invalid.
func (p *Plan) reset(now timeline.Time) {
	p.now, p.decisions, p.err, p.offered, p.ahead, p.gangs = now, p.decisions[:0], nil, 0, nil, p.gangs[:0]
	clear(p.questions)
	p.questions = p.questions[:0]
}

// close ends the plan: it gives a reason to each changed job that waits and has none, clears Changes, and returns the
// decisions in the order in which they were taken. The slice is valid until reset.
func (p *Plan) close(why Why) ([]cluster.Decision, error) {
	p.checkGangs()
	p.makeWay()
	p.wakeForDue()
	p.wakeForRetry()
	p.explainRest(why)
	p.Changes.reset()
	p.slots.clear()
	return p.decisions, p.err
}

// checkGangs fails the plan if it starts some tasks of a stage whose tasks start together, but not all of them.
func (p *Plan) checkGangs() {
	for _, id := range p.gangs {
		if j, here := p.Job(id.Job); here && j.Progress[id.Stage].Pending > 0 {
			p.fail("start of tasks of job %d stage %d: its tasks start together, and %d of them were not started",
				id.Job, id.Stage, j.Progress[id.Stage].Pending)
		}
	}
}

// Start runs the next task of a stage on n with the given memory, in bytes, and with the stage's ideal amounts of all
// other resources. If that is impossible, the plan fails and Start returns nil.
func (p *Plan) Start(j *JobState, stage int, n *NodeState, memory resource.Amount, why cluster.Reason) *TaskState {
	s := &j.Stages[stage]
	least := min(s.Ideal[resource.Memory], max(s.MinMemory, 1))
	if memory > s.Ideal[resource.Memory] || memory < least || (memory < s.Ideal[resource.Memory] && !s.Elastic()) {
		p.fail("start of a task of job %d stage %d with %d bytes: must be %d to %d", j.ID, stage, memory, least,
			s.Ideal[resource.Memory])
		return nil
	}
	return p.StartSized(j, stage, n, memory, why)
}

// StartSized is Start with a container of any size: memory above the ideal is unused; below its minimum memory a task
// may run slowly or not at all.
func (p *Plan) StartSized(j *JobState, stage int, n *NodeState, memory resource.Amount, why cluster.Reason) *TaskState {
	return p.StartWith(j, stage, n, j.Stages[stage].Ideal.With(resource.Memory, memory), why)
}

// StartWith runs the next task of a stage on n with any grant. If that is impossible, the plan fails and StartWith
// returns nil.
func (p *Plan) StartWith(j *JobState, stage int, n *NodeState, grant resource.Vector, why cluster.Reason) *TaskState {
	return p.start(j, stage, n, grant, false, why)
}

func (p *Plan) start(j *JobState, stage int, n *NodeState, grant resource.Vector, byPhase bool,
	why cluster.Reason) *TaskState {
	switch {
	case !p.Synced:
		p.fail("start of a task of job %d: before the inventory was complete", j.ID)
	case !j.Ready(stage):
		p.fail("start of a task of job %d stage %d: none is ready", j.ID, stage)
	case n.Gone:
		p.fail("start of a task of job %d on node %q: it left", j.ID, n.Name)
	case !(resource.Vector{}).FitsIn(grant):
		p.fail("start of a task of job %d stage %d with %v: must not be negative", j.ID, stage, grant)
	case !grant.FitsIn(n.Free):
		p.fail("start of a task of job %d on node %q with %v: only %v are free", j.ID, n.Name, grant, n.Free)
	default:
		id := cluster.TaskID{Job: j.ID, Stage: int32(stage), Index: j.Progress[stage].nextIndex()}
		t := p.book(p.now, j, id, n, grant, byPhase)
		t.MostCPU = min(p.mostCPU(&j.Stages[stage]), n.Capacity[resource.CPU])
		d := p.add(cluster.Start, id, n.ID, why)
		d.Grant, d.Duration, d.Envelope = grant, t.Duration, p.Envelope(j.Job, stage, grant[resource.Memory], &n.Node)
		d.ByPhase, d.Envelope.MostCPU = byPhase, t.MostCPU
		t.Decision = d.ID
		if j.Stages[stage].Together {
			p.gangs = append(p.gangs, id)
		}
		n.started++
		return t
	}
	return nil
}

// mostCPU is what a task of a stage may use of CPU on a node that has enough; 0 is what it is granted.
func (p *Plan) mostCPU(s *cluster.Stage) (most resource.Amount) {
	if s.MaxCPU > s.Ideal[resource.CPU] {
		most = s.MaxCPU
	}
	if p.Weighs {
		most = max(most, s.Ideal[resource.CPU])
	}
	return most
}

// Reserve reserves n for a stage of j.
func (p *Plan) Reserve(n *NodeState, j *JobState, stage int, why cluster.Reason) {
	if n.ReservedFor != nil || n.Gone {
		p.fail("reserve node %q for job %d: it is reserved or gone", n.Name, j.ID)
		return
	}
	p.reserve(n, j, stage)
	p.add(cluster.Reserve, cluster.TaskID{Job: j.ID, Stage: int32(stage)}, n.ID, why)
}

// Unreserve ends the reservation of n.
func (p *Plan) Unreserve(n *NodeState, why cluster.Reason) {
	if n.ReservedFor == nil {
		p.fail("unreserve node %q: it is not reserved", n.Name)
		return
	}
	id := cluster.TaskID{Job: n.ReservedFor.ID, Stage: int32(n.ReservedStage)}
	p.unreserve(n)
	p.add(cluster.Unreserve, id, n.ID, why)
}

// Kill ends a task. A second Kill of the same task is ignored.
func (p *Plan) Kill(t *TaskState, why cluster.Reason) {
	if t.Killing {
		return
	}
	t.Killing = true
	p.add(cluster.Kill, t.ID, t.Node.ID, why)
}

// Preempt ends a task to make room for others. The task runs again, and the run does not count as an attempt. A
// coordinator, or a task of a job that runs at most once, cannot be preempted. Preempting a task that is already being
// killed is ignored.
func (p *Plan) Preempt(t *TaskState, why cluster.Reason) {
	switch {
	case t.Killing:
	case t.Steers:
		p.fail("preempt task %s: it is the coordinator of its job", t.ID)
	case t.Job.AtMostOnce:
		p.fail("preempt task %s: its job runs at most once", t.ID)
	default:
		t.Killing, t.Preempting = true, true
		p.add(cluster.Kill, t.ID, t.Node.ID, why).Preempt = true
	}
}

// Wake requests another step at the given time, which must be in the future.
func (p *Plan) Wake(at timeline.Time, why cluster.Reason) {
	if at <= p.now {
		p.fail("wake at %v: must be after now, %v", at, p.now)
		return
	}
	p.add(cluster.Wake, cluster.TaskID{}, 0, why).At = at
}

// WakeBy is Wake unless WakeBy has requested a step before that time that has not come yet.
func (p *Plan) WakeBy(at timeline.Time, why cluster.Reason) {
	if p.wake <= p.now || p.wake > at {
		p.wake = at
		p.Wake(at, why)
	}
}

// add adds a decision and returns it, for the fields that not every kind has; it is valid until the next is added. A
// decision is large: one is not made to be copied.
func (p *Plan) add(kind cluster.DecisionKind, task cluster.TaskID, n cluster.NodeID,
	why cluster.Reason) *cluster.Decision {
	p.lastID++
	p.decisions = slices.Grow(p.decisions, 1)[:len(p.decisions)+1]
	d := &p.decisions[len(p.decisions)-1]
	*d = cluster.Decision{} // a literal with these fields would be copied
	d.ID, d.Kind, d.Task, d.Node, d.Reason = p.lastID, kind, task, n, why
	return d
}

func (p *Plan) fail(format string, operands ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("policy at %v: "+format, append([]any{p.now}, operands...)...)
	}
}
