package book

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// relend gives what a running task does not hold while it stands still, or while its programs leave it, to its node,
// or takes it back: a task that is about to go on does not lend. If other tasks use what is taken back, the node is
// overdrawn until they end. Memory is lent apart, if it has left: see TaskState.Out.
func (s *Snapshot) relend(t *TaskState) {
	s.relendMemory(t)
	lends := resource.Vector{}
	if s.Lends {
		lends = t.lends()
	}
	more := lends.Sub(t.Lent)
	if more == (resource.Vector{}) {
		return
	}
	t.lend(lends, t.PagedOutLent)
	t.Node.setUnused(t.Node.Unused().Add(more))
	t.Job.Used = t.Job.Used.Sub(more)
	if more.FitsIn(resource.Vector{}) {
		s.reindex(t.Node)
	} else {
		s.touch(t.Node)
	}
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}

// resumesSoon reports whether a task that stands still is about to go on: the engine has ordered that it goes on,
// which has not failed, and the memory manager does not hold it.
func (t *TaskState) resumesSoon() bool {
	return t.heldBy() == 0 && t.SuspendedBy&cluster.HeldByMemory == 0 && (t.Hold == nil || !t.Hold.Failed)
}

// leaves records how much CPU the programs of a running task leave to others. Its container keeps its bounds and its
// weight: a task that has something to do again runs at once, and takes its cores back.
func (s *Snapshot) leaves(now timeline.Time, id cluster.TaskID, leaves resource.Amount) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case leaves < 0:
		return fmt.Errorf("task %s: leaves %d millicores: must not be negative", id, leaves)
	case t.Leaves == leaves:
		return fmt.Errorf("task %s: leaves %d millicores, as before", id, leaves)
	}
	t.Leaves = leaves
	s.relend(t)
	s.progressed(now, t)
	return nil
}

// Leaving is the condition of a task whose programs leave some CPU, as in TaskState.Leaves: the inverse of leftBy.
func Leaving(leaves resource.Amount) cluster.Condition {
	if leaves == Everything {
		return cluster.Condition{Idle: true}
	}
	return cluster.Condition{Leaves: leaves}
}

// leftBy is how much CPU the programs of a task leave that was found in a condition.
func leftBy(found cluster.Condition) resource.Amount {
	if found.Idle {
		return Everything
	}
	return found.Leaves
}
