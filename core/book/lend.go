package book

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// relend gives what a running task does not hold while it stands still, or has nothing to do, to its node, or takes
// it back: a task that is about to go on does not lend. Memory is lent apart, if it has left: see TaskState.Out.
func (s *Snapshot) relend(t *TaskState) {
	s.relendMemory(t)
	if t.Idle || t.Suspended && !t.resumesSoon() {
		s.lend(t)
	} else {
		s.takeBack(t)
	}
}

// resumesSoon reports whether a task that stands still is about to go on: the engine has ordered that it goes on,
// which has not failed, and the memory manager does not hold it.
func (t *TaskState) resumesSoon() bool {
	return t.heldBy() == 0 && t.SuspendedBy&cluster.HeldByMemory == 0 && (t.Hold == nil || !t.Hold.Failed)
}

// idle records whether the programs of a running task have nothing to do. Its container keeps its bounds and its
// weight: a task that has something to do again runs at once, and takes its cores back.
func (s *Snapshot) idle(now timeline.Time, id cluster.TaskID, is bool) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case t.Idle == is:
		return fmt.Errorf("task %s: is idle: %t, as before", id, is)
	}
	t.Idle = is
	s.relend(t)
	s.progressed(now, t)
	return nil
}

// lend gives what a task does not hold while it stands still or is idle to its node, if the snapshot lends.
func (s *Snapshot) lend(t *TaskState) {
	if !s.Lends || t.Lends {
		return
	}
	t.Lends = true
	t.Node.setUnused(t.Node.Unused().Add(t.lent()))
	t.Job.Used = t.Job.Used.Sub(t.lent())
	s.touch(t.Node)
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}

// takeBack takes back what a task has lent. If other tasks use it, the node is overdrawn until they end.
func (s *Snapshot) takeBack(t *TaskState) {
	if !t.Lends {
		return
	}
	t.Lends = false
	t.Node.setUnused(t.Node.Unused().Sub(t.lent()))
	t.Job.Used = t.Job.Used.Add(t.lent())
	s.reindex(t.Node)
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}
