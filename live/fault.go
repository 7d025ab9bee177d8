package live

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A start that fails through no fault of the program, on a machine that can start other programs, may fail for what
// this one task needs: the machine refuses a limit, for example. The task gives its resources back, so that others can
// have them, and is held back for a pause: firstPause at first, then twice the one before, up to longestPause. No
// number of such failures is a failure of the job; its owner can kill it.

// faults are the starts of a task that failed one after another.
type faults struct {
	starts int
	since  timeline.Time
}

// holdBack keeps a task from being started for a pause. The engine is yet to be notified that its start has failed.
func (d *Driver) holdBack(j *job, e *cluster.Event) {
	if _, here := d.engine.Snapshot().Job(j.ID); !here {
		return
	}
	f := j.faults[e.Task]
	f.starts++
	f.since = cmp.Or(f.since, d.now())
	j.faults[e.Task] = f
	if j.paused(e.Task) != nil {
		return // Its owner holds it back.
	}
	wait := longestPause
	if doubled := f.starts - 1; doubled < 5 {
		wait = min(wait, firstPause<<doubled)
	}
	d.step(cluster.Event{Kind: cluster.JobPaused, Job: j.ID, Task: e.Task})
	d.agenda.Hold(d.now().Add(wait), cluster.Event{Kind: cluster.JobResumed, Job: j.ID, Task: e.Task, Detail: e.Detail})
}

// letGo forgets that a task is held back. It reports whether it was; the engine then still keeps it from being started.
func (d *Driver) letGo(id cluster.TaskID) bool {
	_, was := d.agenda.TakeHeld(func(e *cluster.Event) bool { return isHeldBack(e) && e.Task == id })
	return was
}

// isHeldBack reports whether an event that is held ends the pause of a task whose start has failed.
func isHeldBack(e *cluster.Event) bool { return e.Kind == cluster.JobResumed }

// stays reports whether the job of a task that was held back has not ended meanwhile.
func (d *Driver) stays(e *cluster.Event) bool {
	_, here := d.engine.Snapshot().Job(e.Job)
	return here
}

// heldBackWords says why a task is held back, and until when.
func (d *Driver) heldBackWords(at timeline.Time, e *cluster.Event) string {
	words := fmt.Sprintf("task %s could not be started, and is tried again at %s: %s", e.Task, clock(at), e.Detail)
	if j := d.jobs[e.Job]; j != nil && j.faults[e.Task].starts > 1 {
		f := j.faults[e.Task]
		words += fmt.Sprintf("; %d starts have failed since %s", f.starts, clock(f.since))
	}
	return words
}

// retried says that a task of a job could not be started and will be tried again; empty if there is none.
func (d *Driver) retried(id cluster.JobID) string {
	for at, e := range d.agenda.Held() {
		if isHeldBack(e) && e.Job == id {
			return d.heldBackWords(at, e)
		}
	}
	return ""
}

// refused says which tasks the machine does not start; empty if there is none.
func (d *Driver) refused() (words string) {
	tasks := 0
	for at, e := range d.agenda.Held() {
		if !isHeldBack(e) {
			continue
		}
		if tasks++; tasks == 1 {
			words = d.heldBackWords(at, e)
		}
	}
	if tasks > 1 {
		words += fmt.Sprintf("; so it is with %d tasks", tasks)
	}
	return words
}

// troubles are those of the Backend.
func (d *Driver) troubles() map[cluster.ContainerID]string {
	if b, ok := d.backend.(Troubled); ok {
		return b.Troubles()
	}
	return nil
}

// unread says of a container of a job, or of any job if that is 0, that its record cannot be read; empty if there is
// none.
func (d *Driver) unread(id cluster.JobID) string {
	troubles := d.troubles()
	maps.DeleteFunc(troubles, func(c cluster.ContainerID, _ string) bool { return id != 0 && c.Task.Job != id })
	if len(troubles) == 0 {
		return ""
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(troubles)), func(a, b cluster.ContainerID) int {
		return a.Task.Compare(b.Task)
	})
	words := troubles[first]
	if len(troubles) > 1 {
		words += fmt.Sprintf("; so it is with %d containers", len(troubles))
	}
	return words
}
