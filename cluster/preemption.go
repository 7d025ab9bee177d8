package cluster

import "github.com/bellows-rm/bellows/timeline"

// Preemption is what policies that preempt tasks remember between their rounds. It lasts, so that it is in the snapshot: such a policy
// looks for tasks to preempt once per interval, and ends those that stay chosen for a while.
type Preemption struct {
	At timeline.Time // of the next round; 0 if none is planned
}

// Mark is set on a task that a policy has chosen to preempt, at At.
type Mark struct {
	Set bool
	At  timeline.Time
}

// Mark records that t has been chosen now to be preempted, which policies do only if that lasts.
func (p *Plan) Mark(t *TaskState) { t.Mark = Mark{true, p.now} }

// PlanPreemption asks for another call at the given time, which must lie ahead, to look for tasks to preempt. It lasts,
// as Preemption.At, until it is planned anew or EndPreemption is called.
func (p *Plan) PlanPreemption(at timeline.Time, why Reason) {
	p.Preemption.At = at
	p.Wake(at, why)
}

// EndPreemption records that there is nothing to look for any more.
func (p *Plan) EndPreemption() { p.Preemption.At = 0 }
