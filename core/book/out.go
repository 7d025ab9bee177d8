package book

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// takeOut records how much memory of the grant of a task has left its node, as the node reports: it is in no use any
// more, and the task cannot take it back by itself.
func (s *Snapshot) takeOut(id cluster.TaskID, out resource.Amount) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case out < 0:
		return fmt.Errorf("task %s: %d bytes of its memory have left: must not be negative", id, out)
	}
	t.Out = out
	s.relend(t)
	t.Job.Version++
	t.Node.Version++
	return nil
}

// lendsMemory is how much of its grant of memory a task lends: what has left its node, until an order says that it is
// to come back.
func (t *TaskState) lendsMemory() resource.Amount {
	if !t.pagesOut() {
		return 0
	}
	return t.PagedOut.left(t.Grant[resource.Memory])
}

// returns is how much memory is to come back to a task. Its node holds the task until that is free.
func (t *TaskState) returns() resource.Amount {
	return max(0, t.PagedOut.left(t.Grant[resource.Memory])-t.PagedOutLent)
}

// relendMemory gives memory that has left a task to its node, or takes it back. If other tasks use it, the node is
// overdrawn until enough of these tasks end.
func (s *Snapshot) relendMemory(t *TaskState) {
	more := t.lendsMemory() - t.PagedOutLent
	if more == 0 {
		return
	}
	t.lend(t.Lent, t.PagedOutLent+more)
	change := resource.Vector{}.With(resource.Memory, more)
	t.Node.setUnused(t.Node.Unused().Add(change))
	t.Job.Used = t.Job.Used.Sub(change)
	if more > 0 {
		s.touch(t.Node)
	} else {
		s.reindex(t.Node)
	}
	s.Changes.Jobs = append(s.Changes.Jobs, t.Job)
}

// inMemory is the memory that the tasks of n have now, of what they were granted: never more than n has. It is less
// than what they hold while memory is to come back to one of them.
func (n *NodeState) inMemory() resource.Amount {
	has := n.Capacity[resource.Memory] - n.Unused()[resource.Memory]
	for _, t := range n.Tasks {
		has -= t.returns()
	}
	return has
}
