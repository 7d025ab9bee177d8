package live

import (
	"cmp"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/view"
)

// shownAs returns a job as the board of a revision shows it. was is how it was shown before, nil if it was not.
func (d *Driver) shownAs(j *job, was *board.Job, revision int64) *board.Job {
	b, now := j.shownAs(was), d.now()
	b.Waiting, _ = d.whyWaits(j)
	b.Stages = board.Startable(d.engineJob(j), b.Stages)
	b.Stuck = (d.health.broken != nil || j.isAside()) && !j.State.Ended && len(j.alive()) == 0
	if state := d.engineJob(j); state != nil {
		for _, t := range state.Tasks {
			if own := b.Task(t.ID); own != nil && own.State == api.TaskRunning {
				know(own, t, j.newest(t.ID), now)
			}
		}
	}
	b.SetRetries(d.engineJob(j))
	b.Compare(was, revision, now)
	return b
}

// shownAs returns a job for people, apart from what only the Driver and the engine know. was is how it was shown
// before, nil if it was not: it has the runs that had ended, which do not change.
func (j *job) shownAs(was *board.Job) *board.Job {
	b := board.New(api.Job{ID: j.ID, Name: j.Request.Job.Name, Owner: j.Request.Job.Owner, UID: j.Request.As.UID,
		Submitted: instant(j.Submitted), Input: j.Request.Input, App: j.Request.Job.App, AppDerived: j.appDerived(),
		DeadlineSeconds: j.Request.Job.Deadline.Seconds(), Queue: j.Request.Job.Queue, Weight: j.Request.Job.Weight})
	board.SetState(&b.Job, &j.State)
	if !j.State.Ended {
		b.Paused = pausedOf(j.paused(cluster.TaskID{}))
	}
	for i := range j.Request.Job.Stages {
		b.Stages = append(b.Stages, view.Stage(&j.Request.Job, i))
	}
	owner := api.Owner{UID: b.UID, Name: b.Owner}
	final := j.State.Ended || j.State.Cancelled || j.State.Status == cluster.StatusFailed
	for _, id := range j.tasks() {
		runs := j.runs[id]
		r := runs[len(runs)-1]
		count(&b.Stages[id.Stage], r, final)
		t := was.Task(id)
		if t == nil || t.State != api.TaskEnded || t.Run != r.Container.Run {
			t = &board.Task{Task: r.view(&j.Request.Job, owner)}
			if p := pausedOf(cmp.Or(j.paused(id), j.paused(cluster.TaskID{}))); p != nil && !r.ended() {
				p.Failed = r.failed[cluster.WantHold]
				t.Paused = p
			}
		}
		var earlier []api.Task
		for _, r := range runs[:len(runs)-1] {
			earlier = append(earlier, r.view(&j.Request.Job, owner))
		}
		b.Add(t, earlier...)
	}
	b.Count()
	return b
}

// know adds what only the engine knows of a running task.
func know(b *board.Task, t *book.TaskState, r *run, now timeline.Time) {
	putKnown(&b.Task, t, r)
	b.Leveled = leveledOf(t, r)
	b.Follow(t, now)
}
