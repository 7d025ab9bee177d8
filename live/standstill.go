package live

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
)

// flexReading returns the reading of the container of a task, with the state in which the memory manager keeps it;
// nil if the memory manager leaves it alone.
func (d *Driver) flexReading(t *book.TaskState, readings map[cluster.ContainerID]cluster.Reading) *cluster.Reading {
	j, ok := d.jobs[t.ID.Job]
	if !ok {
		return nil
	}
	run := j.newest(t.ID)
	if run == nil {
		return nil
	}
	if r, ok := readings[run.Container]; ok && r.State != 0 {
		return &r
	}
	return nil
}

// standing says whether and why a task makes no progress: ContainerSuspended if the engine knows that its programs
// have been stopped, ContainerWaiting if r, the reading of its container, says that it waits for memory to start,
// else ContainerRunning.
func standing(t *book.TaskState, r *cluster.Reading) cluster.ContainerState {
	switch {
	case t.Still:
		return cluster.ContainerSuspended
	case !t.Running && r != nil && r.State == cluster.ContainerWaiting:
		return cluster.ContainerWaiting
	}
	return cluster.ContainerRunning
}

// standstill counts the tasks of a job that make no progress.
type standstill struct{ paused, suspended, leveled, waiting int }

// endless reports whether tasks make no progress for a time that is unknown.
func (s standstill) endless() bool { return s.paused+s.suspended+s.waiting > 0 }

// count adds a task in a state as standing returns it. A stopped task is paused if its owner holds it, and leveled if
// leveling alone does, as in "bellows ps".
func (s *standstill) count(t *book.TaskState, how cluster.ContainerState) {
	switch {
	case how == cluster.ContainerWaiting:
		s.waiting++
	case how == cluster.ContainerSuspended && t.StillBy&cluster.HeldByOwner != 0:
		s.paused++
	case how == cluster.ContainerSuspended && t.StillBy == cluster.HeldByLeveling:
		s.leveled++
	case how == cluster.ContainerSuspended:
		s.suspended++
	}
}

// why describes a job that has no tasks left to start.
func (s standstill) why(left int) string {
	var parts []string
	for _, part := range []struct {
		tasks int
		are   string
	}{{left - s.paused - s.suspended - s.leveled - s.waiting, "running"}, {s.paused, "paused"},
		{s.suspended, "suspended"}, {s.leveled, "held by leveling"}, {s.waiting, "waiting for memory"}} {
		switch {
		case part.tasks == left && left == 1:
			return "The last task of the job is " + part.are + "."
		case part.tasks == left:
			return "The remaining tasks of the job are " + part.are + "."
		case part.tasks == 1:
			parts = append(parts, "1 is "+part.are)
		case part.tasks > 0:
			parts = append(parts, fmt.Sprintf("%d are %s", part.tasks, part.are))
		}
	}
	return fmt.Sprintf("Of the %d remaining tasks of the job, %s.", left, strings.Join(parts, ", "))
}
