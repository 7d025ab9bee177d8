package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Resized is the newest change of the grant of a running task.
type Resized struct {
	Order
	// Want is the grant that was decided, Was the grant that it replaces, which the task keeps if the order fails.
	Want, Was resource.Vector
	// Why is the reason of the decision, Since when it was taken.
	Why   cluster.Reason
	Since timeline.Time
}

// WantedGrant returns the grant that was decided last and has not failed. Grant has more memory until a Resize that
// takes memory back is carried out.
func (t *TaskState) WantedGrant() resource.Vector {
	if t.Resized == nil {
		return t.Grant
	}
	return t.Resized.wanted()
}

func (r *Resized) wanted() resource.Vector {
	if r.Failed {
		return r.Was
	}
	return r.Want
}

// counts is the grant that counts: what was decided last, with the most memory that the container may have until all
// orders are answered.
func (r *Resized) counts() resource.Vector {
	grant := r.wanted()
	memory := grant[resource.Memory]
	if !r.InForce {
		memory = max(memory, r.Was[resource.Memory])
	}
	for i := range r.earlier {
		memory = max(memory, r.earlier[i].grant[resource.Memory])
	}
	return grant.With(resource.Memory, memory)
}

// Resize changes the grant of a running task. CPU and bandwidths count from now on, and the node may be over-granted
// by them: NodeState.Overdrawn says by how much, and nothing starts there meanwhile. Memory counts with the larger
// amount until the order is carried out, and must be free, unless the memory of the task has left: then it is lent
// until the task goes on. A later Resize of the task replaces an earlier one; if that was not carried out yet, it is
// answered with DecisionSuperseded. A Resize that fails restores the grant. A Resize of a task that is being killed,
// or whose memory is to come back, or to the grant that it has, is ignored. A change of memory renews a
// reservation that is learned.
func (p *Plan) Resize(t *TaskState, grant resource.Vector, why cluster.Reason) {
	if t.Killing || t.returns() > 0 || grant == t.WantedGrant() {
		return
	}
	switch least := t.Job.LeastByPhase(int(t.ID.Stage)); {
	case !t.Running:
		p.fail("resize task %s: it is not running", t.ID)
		return
	case t.Steers:
		p.fail("resize task %s: it is the coordinator of its job", t.ID)
		return
	case !(resource.Vector{}).FitsIn(grant) || !grant.FitsIn(t.Node.Room()):
		p.fail("resize task %s to %v: must not be negative, and at most what node %q has, %v", t.ID, grant, t.Node.Name,
			t.Node.Room())
		return
	case t.ByPhase && grant[resource.Memory] < least:
		p.fail("resize task %s to %v: it keeps the memory of its largest phase, %d bytes", t.ID, grant, least)
		return
	case t.Stage().MaxMemory > 0 && grant[resource.Memory] > t.Stage().MaxMemory:
		p.fail("resize task %s to %v: its container has at most %d bytes", t.ID, grant, t.Stage().MaxMemory)
		return
	}
	newer := Resized{Want: grant, Was: t.Grant, Why: why, Since: p.now, Order: Order{Decision: p.lastID + 1}}
	if last := t.Resized; last != nil {
		newer.Order = last.next(newer.Decision, last.Want)
		if newer.Was = last.Was; last.InForce {
			newer.Was = last.Want
		}
	}
	counts := newer.counts()
	if more, unused := counts[resource.Memory]-t.Grant[resource.Memory],
		t.Node.Spare()[resource.Memory]; t.PagedOutLent == 0 && more > max(0, unused) {
		p.fail("resize task %s to %v: it needs %d bytes more, and node %q has %d", t.ID, grant, more, t.Node.Name, unused)
		return
	}
	t.renew(p.now, grant[resource.Memory], why)
	t.Resized = &newer
	d := p.add(cluster.Resize, t.ID, t.Node.ID, why)
	d.Grant, d.Envelope = grant, p.Envelope(t.Job.Job, int(t.ID.Stage), grant[resource.Memory], &t.Node.Node)
	d.Envelope.MostCPU = t.MostCPU
	p.regrant(p.now, t, counts)
}

// regrant changes the grant of a running task, and what follows from it.
func (s *Snapshot) regrant(now timeline.Time, t *TaskState, grant resource.Vector) {
	n, before, usual := t.Node, t.Holds(), t.usualEnd(now)
	lent, memory := t.Lent, t.PagedOutLent
	if memory > 0 {
		t.Out = max(0, t.Out+grant[resource.Memory]-t.Grant[resource.Memory])
		memory = min(t.Out, grant[resource.Memory])
	}
	if t.Grant = grant; t.Lends() {
		lent = t.lends()
	}
	t.lend(lent, memory)
	s.size(t)
	if d := t.durationWith(grant); d != t.Duration && d > 0 && t.Duration > 0 && usual != timeline.Never {
		usual = now.Add(time.Duration(float64(max(0, usual.Sub(now))) * (float64(d) / float64(t.Duration))))
		t.Duration = d
	}
	t.endsAt(now, usual)
	freed := before.Sub(t.Holds())
	n.setUnused(n.Unused().Add(freed))
	t.Job.Used = t.Job.Used.Sub(freed)
	s.relendMemory(t)
	if freed.FitsIn(resource.Vector{}) {
		s.reindex(n)
	} else {
		s.touch(n)
	}
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
	s.progressed(now, t)
}

// size notes whether t is under-sized. A task that is granted what each phase demands is not, whatever its ideal
// memory is.
func (s *Snapshot) size(t *TaskState) {
	stage := t.Stage()
	was, is := t.UnderSized, !t.ByPhase && t.Job.UnderSized(int(t.ID.Stage), t.Grant[resource.Memory])
	switch t.UnderSized = is; {
	case is && !was:
		t.Node.UnderSizedDisk += stage.Elasticity.DiskRate
	case was && !is:
		t.Node.UnderSizedDisk -= stage.Elasticity.DiskRate
	}
}

// durationWith is the estimated run time of t with a grant; 0 is unknown.
func (t *TaskState) durationWith(grant resource.Vector) time.Duration {
	if t.ByPhase {
		return t.Stage().RunTime()
	}
	d, _ := t.Stage().DurationAt(grant[resource.Memory])
	return d
}

// StartPhased is StartWith for a task that is granted what each phase of its forecast demands, beginning with the
// first: see Job.GrantIn. The policy resizes the task when it enters the next phase. A REGULAR task is granted the
// memory of its largest phase from the beginning.
func (p *Plan) StartPhased(j *JobState, stage int, n *NodeState, grant resource.Vector, why cluster.Reason) *TaskState {
	switch least := j.LeastByPhase(stage); {
	case len(j.Stages[stage].Phases) == 0 || j.Stages[stage].Coordinator:
		p.fail("start of a task of job %d stage %d by phase: it has no forecast, or is a coordinator", j.ID, stage)
		return nil
	case grant[resource.Memory] < least:
		p.fail("start of a task of job %d stage %d by phase with %v: it keeps the memory of its largest phase, %d bytes",
			j.ID, stage, grant, least)
		return nil
	}
	return p.start(j, stage, n, grant, true, why)
}
