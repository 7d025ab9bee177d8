package live

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
)

// flexReading returns the reading, with what the memory manager does, of the container of a task; nil if nothing.
func (d *Driver) flexReading(t *cluster.TaskState, readings map[cluster.ContainerID]cluster.Reading) *cluster.Reading {
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

// standing says how a task makes no progress: ContainerSuspended if the engine knows that its programs stand still,
// ContainerWaiting if they have not begun because their container waits for memory, as r, its reading, says. It is
// ContainerRunning if the task makes progress.
func standing(t *cluster.TaskState, r *cluster.Reading) cluster.ContainerState {
	switch {
	case t.Still:
		return cluster.ContainerSuspended
	case !t.Running && r != nil && r.State == cluster.ContainerWaiting:
		return cluster.ContainerWaiting
	}
	return cluster.ContainerRunning
}

// standstill counts the tasks of a job that make no progress.
type standstill struct{ suspended, waiting int }

func (s *standstill) count(how cluster.ContainerState) {
	switch how {
	case cluster.ContainerSuspended:
		s.suspended++
	case cluster.ContainerWaiting:
		s.waiting++
	}
}

// why says what a job does that has no tasks left to start.
func (s standstill) why(left int) string {
	var parts []string
	for _, part := range []struct {
		tasks int
		are   string
	}{{left - s.suspended - s.waiting, "running"}, {s.suspended, "suspended"}, {s.waiting, "waiting for memory"}} {
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
