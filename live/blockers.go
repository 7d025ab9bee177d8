package live

import (
	"fmt"
	"strings"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// poolApp begins the application of jobs that are executors of a pool.
const poolApp = "pool/"

// blockerOf returns the blocker that a task belongs to, for a job that waits.
func (d *Driver) blockerOf(waits *job, t *book.TaskState) api.Blocker {
	b := api.Blocker{Job: t.ID.Job}
	switch of := d.jobs[t.ID.Job]; {
	case of == nil || of.Request.As.UID != waits.Request.As.UID:
		b = api.Blocker{OtherUsers: true}
	case strings.HasPrefix(of.Request.Job.App, poolApp):
		b = api.Blocker{Pool: strings.TrimPrefix(of.Request.Job.App, poolApp)}
		b.Release = "bellows pool explain " + b.Pool
	case t.Suspended && t.SuspendedBy&cluster.HeldByOwner != 0:
		if b.Paused = true; t.PagedOutLent == 0 {
			b.Release = fmt.Sprintf("bellows pause --page-out %d", b.Job)
		}
	}
	return b
}

// missedDeadline says, in a sentence, that a job has not started by its deadline; empty if it has not missed one.
func (d *Driver) missedDeadline(j *job, state *book.JobState, now timeline.Time) string {
	due := j.Submitted.Add(j.Request.Job.Deadline)
	if j.Request.Job.Deadline == 0 || now <= due || !state.NeverStarted() {
		return ""
	}
	text := fmt.Sprintf(" It should have started by %s: its deadline has passed", clock(due))
	if !d.config.Policy.Traits().Deadlines {
		text += fmt.Sprintf(", and policy %s lets no job come first for that", d.config.Policy.Name())
	}
	return text + "."
}
