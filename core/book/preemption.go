package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Preemption is the state of policies that preempt tasks between their rounds: such a policy looks for tasks to preempt
// once per interval, and ends the tasks that stay chosen for a while. It is part of the snapshot because it outlives a
// step.
type Preemption struct {
	At timeline.Time // time of the next round; 0 if none is planned
}

// Mark is set on a task that a policy chose at time At to preempt.
type Mark struct {
	Set bool
	At  timeline.Time
}

// Since reports whether the task was chosen, at a time or later.
func (m Mark) Since(from timeline.Time) bool { return m.Set && m.At >= from }

// Mark records that t is chosen for preemption now. A policy ends t only if t stays chosen.
func (p *Plan) Mark(t *TaskState) { t.Mark = Mark{true, p.now} }

// PlanPreemption requests another step at the given time, which must be in the future, to look for tasks to preempt.
// The time remains in Preemption.At until the next PlanPreemption or EndPreemption.
func (p *Plan) PlanPreemption(at timeline.Time, why cluster.Reason) {
	p.Preemption.At = at
	p.Wake(at, why)
}

// EndPreemption records that there is nothing to preempt any more.
func (p *Plan) EndPreemption() { p.Preemption.At = 0 }
