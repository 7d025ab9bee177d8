package live

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Update is what has changed about jobs and tasks since an earlier revision, or everything.
type Update struct {
	Revision int64 `json:"revision" doc:"what the update leads to; revisions grow, also from one run of the daemon to the next"`
	// Snapshot says that Jobs are all jobs that have not ended with all their tasks, instead of what has changed.
	Snapshot bool `json:"snapshot,omitempty" doc:"the jobs are all that have not ended, with all their tasks: what was known before is to be forgotten"`
	// Jobs are the jobs that have changed, or of which a task has. Tasks of a job are only those that have changed, and
	// Earlier is left out.
	Jobs []Job `json:"jobs,omitempty" doc:"jobs that have changed, or of which a task has; tasks of a job are those that have changed. A job that has ended is there once more"`
	More bool  `json:"more,omitempty" doc:"the update goes on in the next event"`
}

// Apply brings jobs, by ID, up to date: the jobs that have not ended, with the newest runs of their tasks.
func (u *Update) Apply(jobs map[cluster.JobID]Job) {
	if u.Snapshot {
		clear(jobs)
	}
	for _, j := range u.Jobs {
		if j.Ended {
			delete(jobs, j.ID)
			continue
		}
		tasks := slices.Clone(jobs[j.ID].Tasks)
		for _, t := range j.Tasks {
			at, here := slices.BinarySearchFunc(tasks, t.Task, func(t Task, id cluster.TaskID) int {
				return t.Task.Compare(id)
			})
			if !here {
				tasks = slices.Insert(tasks, at, t)
			}
			tasks[at] = t
		}
		j.Tasks = tasks
		jobs[j.ID] = j
	}
}

// Changes waits until something has changed since a revision, and returns what, as of now. It returns a snapshot at
// once if the revision is 0, of an earlier run of the daemon, or so old that some of the jobs that have ended since
// are forgotten. It keeps nothing for its caller: whoever asks seldom gets all that has changed meanwhile, each job
// once.
func (d *Driver) Changes(ctx context.Context, from int64) (Update, error) {
	for {
		newer := d.board.newer()
		if u, news := d.board.newest().changes(from, d.now()); news {
			return u, nil
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return Update{}, ctx.Err()
		case <-d.turns.Ended():
			return Update{}, errStopped
		}
	}
}

// changes returns what has changed since a revision; news is false if nothing has.
func (b *board) changes(from int64, now timeline.Time) (u Update, news bool) {
	u.Revision = b.revision
	if from < b.first || from > b.revision {
		u.Snapshot = true
		for j := range b.jobs.all() {
			if !j.Ended {
				u.Jobs = append(u.Jobs, j.since(0, now))
			}
		}
		return u, true
	}
	left := len(b.left)
	for left > 0 && b.left[left-1].revision > from {
		left--
	}
	for _, j := range b.left[left:] {
		u.Jobs = append(u.Jobs, j.since(from, now))
	}
	for j := range b.jobs.since(from) {
		u.Jobs = append(u.Jobs, j.since(from, now))
	}
	return u, from < b.revision
}

// since returns a job with the tasks that have changed after a revision.
func (b *boardJob) since(revision int64, now timeline.Time) Job {
	out := b.Job // without a version: some tasks are left out
	for _, t := range b.tasks {
		if t.revision > revision {
			out.Tasks = append(out.Tasks, t.at(now))
		}
	}
	return out
}
