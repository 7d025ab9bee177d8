package view

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Standing says whether and why a task makes no progress: ContainerSuspended if the engine knows that its programs
// have been stopped, ContainerWaiting if r, the reading of its container, says that it waits for memory to start,
// else ContainerRunning.
func Standing(t *book.TaskState, r *cluster.Reading) cluster.ContainerState {
	switch {
	case t.Suspended:
		return cluster.ContainerSuspended
	case !t.Running && r != nil && r.State == cluster.ContainerWaiting:
		return cluster.ContainerWaiting
	}
	return cluster.ContainerRunning
}

// Standstill counts the tasks of a job that make no progress.
type Standstill struct{ paused, suspended, leveled, waiting int }

// Endless reports whether tasks make no progress for a time that is unknown.
func (s Standstill) Endless() bool { return s.paused+s.suspended+s.waiting > 0 }

// Leveled reports whether leveling alone holds some of the tasks.
func (s Standstill) Leveled() bool { return s.leveled > 0 }

// Count adds a task in a state as Standing returns it. A stopped task is paused if its owner holds it, and leveled if
// leveling alone does, as in "bellows ps".
func (s *Standstill) Count(t *book.TaskState, how cluster.ContainerState) {
	switch {
	case how == cluster.ContainerWaiting:
		s.waiting++
	case how == cluster.ContainerSuspended && t.SuspendedBy&cluster.HeldByOwner != 0:
		s.paused++
	case how == cluster.ContainerSuspended && t.SuspendedBy == cluster.HeldByLeveling:
		s.leveled++
	case how == cluster.ContainerSuspended:
		s.suspended++
	}
}

// Why describes a job that has no tasks left to start.
func (s Standstill) Why(left int) string {
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

// Ended says how a job has ended.
func Ended(j *api.Job) string {
	text := fmt.Sprintf("The job has ended: %s.", j.Status)
	if j.Detail != "" {
		text = fmt.Sprintf("The job has ended: %s, because of %s.", j.Status, j.Detail)
	}
	return text
}

// Starting describes a job whose last tasks have been ordered to start and do not run yet.
func Starting(tasks int) string {
	if tasks == 1 {
		return "The last task of the job is being started."
	}
	return "The remaining tasks of the job are being started."
}
