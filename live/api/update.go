package api

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
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
