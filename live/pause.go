package live

import (
	"context"
	"errors"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// pausedOf returns the view of a pause; nil if there is none.
func pausedOf(p *store.Pause) *api.Paused {
	if p == nil {
		return nil
	}
	return &api.Paused{By: p.By, Since: instant(p.Since), PageOut: p.PageOut}
}

// paused returns the pause of a task, or of the whole job if the task is zero; nil if there is none.
func (j *job) paused(task cluster.TaskID) *store.Pause {
	if i := slices.IndexFunc(j.Pauses, func(p store.Pause) bool { return p.Task == task }); i >= 0 {
		return &j.Pauses[i]
	}
	return nil
}

// Pause pauses a job until it is resumed, or one of its tasks if task is not zero: no task of it starts, and its
// programs are stopped, also after a restart of the daemon. pageOut says that their memory is to be paged out. A
// second pause does nothing, but it can add pageOut. Pause returns when the pause is stored and the orders are given.
// The error is Invalid if the job or the task has ended, or if the Backend cannot stop what runs of it.
func (d *Driver) Pause(ctx context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID,
	pageOut bool) error {
	return d.change(ctx, id, deed{"paused", "it is paused"}, func(j *job) error {
		was := j.paused(task)
		if err := j.pausable(task); err != nil || was != nil && (was.PageOut || !pageOut) {
			return err
		}
		if err := d.canHold(j, task, pageOut); err != nil {
			return err
		}
		p := store.Pause{Task: task, By: api.OwnerOf(by).Name, Since: d.now(), PageOut: pageOut}
		if was != nil {
			p.By, p.Since = was.By, was.Since
		}
		j.Pauses = append(slices.DeleteFunc(slices.Clone(j.Pauses), func(p store.Pause) bool { return p.Task == task }), p)
		for _, r := range j.alive() { // how much leaves is reported anew
			r.out = nil
		}
		attributes := pauseAttributes(id, task, by)
		if pageOut {
			attributes = append(attributes, "page_out", true)
		}
		d.log.Info("job paused", attributes...)
		e := pausedEvent(id, &p)
		if d.letGo(task) && !pageOut { // The engine keeps it from being started already.
			e = cluster.Event{}
		}
		d.repause(j, e)
		return nil
	})
}

// Resume ends a pause. To resume a job also resumes its tasks. The error is Invalid if there is no pause.
func (d *Driver) Resume(ctx context.Context, by cluster.Credentials, id cluster.JobID, task cluster.TaskID) error {
	return d.change(ctx, id, deed{"resumed", "it is resumed"}, func(j *job) error {
		ends := func(p store.Pause) bool { return p.Task == task || task == cluster.TaskID{} }
		switch {
		case slices.ContainsFunc(j.Pauses, ends):
		case task == cluster.TaskID{}:
			return api.Errorf(api.Invalid, "job %d: is not paused", id)
		case j.paused(cluster.TaskID{}) != nil:
			return api.Errorf(api.Invalid, "task %s: its job is paused as a whole; resume job %d", task, id)
		default:
			return api.Errorf(api.Invalid, "task %s: is not paused", task)
		}
		was := j.Pauses
		j.Pauses = slices.DeleteFunc(slices.Clone(j.Pauses), ends)
		d.log.Info("job resumed", pauseAttributes(id, task, by)...)
		for i := range was {
			if ends(was[i]) {
				d.repause(j, cluster.Event{Kind: cluster.JobResumed, Job: id, Task: was[i].Task})
			}
		}
		return nil
	})
}

// pausedEvent notifies the engine of a pause.
func pausedEvent(id cluster.JobID, p *store.Pause) cluster.Event {
	e := cluster.Event{Kind: cluster.JobPaused, Job: id, Task: p.Task}
	e.SetCondition(cluster.Condition{PageOut: p.PageOut})
	return e
}

// pauseAttributes are the attributes of a line of the log; task is left out if it is zero.
func pauseAttributes(id cluster.JobID, task cluster.TaskID, by cluster.Credentials) []any {
	all := []any{"job", id, "by_uid", by.UID}
	if task != (cluster.TaskID{}) {
		all = append(all, "task", task)
	}
	return all
}

// pausable returns an error if a job, or the task if that is not zero, cannot be paused.
func (j *job) pausable(task cluster.TaskID) error {
	switch {
	case j.State.Cancelled:
		return api.Errorf(api.Invalid, "job %d: is being killed", j.ID)
	case j.isAside():
		return api.Errorf(api.Invalid, "job %d: is set aside, and does not start anyway", j.ID)
	case task == cluster.TaskID{}:
		return nil
	case !j.has(task):
		return api.Errorf(api.NotFound, "task %s: job %d has no such task", task, j.ID)
	}
	r := j.newest(task)
	switch {
	case r == nil:
		return api.Errorf(api.Invalid, "task %s: has not started; pause job %d to keep its tasks from starting", task, j.ID)
	case r.Outcome == cluster.Succeeded:
		return api.Errorf(api.Invalid, "task %s: has ended already", task)
	}
	return nil
}

// canHold returns an error if a pause asks for what the Backend cannot do.
func (d *Driver) canHold(j *job, task cluster.TaskID, pageOut bool) error {
	switch {
	case d.able.Suspend != "" && slices.ContainsFunc(j.alive(), func(r *run) bool {
		return task == cluster.TaskID{} || r.Container.Task == task
	}):
		return api.Errorf(api.Invalid, "job %d pause: must wait until none of its programs runs: %s", j.ID, d.able.Suspend)
	case pageOut && d.able.PageOut != "":
		return api.Errorf(api.Invalid, "job %d page_out true: %s", j.ID, d.able.PageOut)
	}
	return nil
}

// deed is a request in words: what is to be done to the job, and the effect.
type deed struct{ done, effect string }

// change changes a job that has not ended, and records the change.
func (d *Driver) change(ctx context.Context, id cluster.JobID, what deed, do func(*job) error) error {
	if err := d.awaitInventory(ctx); err != nil {
		return err
	}
	var found, known bool
	var err error
	if e := d.do(ctx, func() {
		j, ok := d.jobs[id]
		if known = ok; !ok || j.State.Ended {
			return
		}
		found = true
		if err = do(j); err != nil {
			return
		}
		d.catchUp()
		d.flush()
		if d.health.trouble != nil {
			err = api.Errorf(api.Internal, "job %d: %s, but that cannot be recorded now: %w", id, what.effect, d.health.trouble)
		}
	}); e != nil {
		return e
	}
	if found {
		return err
	}
	stored, err := d.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return d.notFound(ctx, id)
	}
	switch {
	case err != nil:
		return err
	case !known && !stored.State.Ended: // It is one of many that have just been stored: see SubmitAll.
		return api.Errorf(api.Unavailable, "job %d: cannot be %s while it is being submitted: try again", id, what.done)
	}
	return api.Errorf(api.Invalid, "job %d: cannot be %s, because it has ended already (%s)", id, what.done,
		stored.State.Status)
}

// repause records the pauses of a job, and notifies the engine of a pause that began or ended, unless the event is
// zero.
func (d *Driver) repause(j *job, e cluster.Event) {
	d.out.putPauses(j)
	if j.state != nil && e.Kind != 0 {
		d.step(e)
	}
	d.tell(j)
}

// retellPauses notifies the engine, which has just got a job, of the tasks of the job that are paused, and of what is
// to be paged out. The submission says whether the whole job is paused.
func (d *Driver) retellPauses(j *job) {
	for i := range j.Pauses {
		if p := &j.Pauses[i]; j.state != nil && (p.PageOut || p.Task != (cluster.TaskID{})) {
			d.step(pausedEvent(j.ID, p))
		}
	}
}
