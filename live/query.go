package live

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/board"
	"github.com/bellows-rm/bellows/live/store"
	"github.com/bellows-rm/bellows/live/view"
)

// Jobs returns the jobs that have not ended, by ascending ID, without Tasks.
func (d *Driver) Jobs(context.Context) ([]api.Job, error) {
	b, err := d.current()
	if err != nil {
		return nil, err
	}
	out := make([]api.Job, 0, b.Tally.Jobs)
	for j := range b.Jobs.All() {
		if !j.Ended {
			out = append(out, j.Alone())
		}
	}
	return out, nil
}

// JobsAfter returns a page of all jobs, ended or not: jobs whose ID is greater than after, by ascending ID, without
// Tasks. most is the largest number of jobs on a page; a page with fewer is the last. Ended jobs have no Stages.
// Other callers may get the same page: it must not be changed.
func (d *Driver) JobsAfter(ctx context.Context, after cluster.JobID, most int) ([]api.Job, error) {
	var out []api.Job
	for len(out) < most {
		b, err := d.current()
		if err != nil {
			return nil, err
		}
		if after >= b.Last { // What follows is being submitted, as the last of the jobs.
			return out, nil
		}
		some := b.Jobs.Run(after+1, most-len(out))
		if some == nil {
			if some, err = d.readers.After(ctx, d.store, b, after, most-len(out)); err != nil {
				return nil, err
			}
		}
		if some == nil {
			break
		}
		if len(some) == most {
			return some, nil
		}
		if out == nil {
			out = make([]api.Job, 0, min(most, int(b.Last-after)))
		}
		out, after = append(out, some...), some[len(some)-1].ID
	}
	for len(out) < most {
		page, err := d.store.List(ctx, after, most-len(out))
		if err != nil {
			return nil, err
		}
		b, err := d.current()
		if err != nil {
			return nil, err
		}
		if rest, ok := b.Page(page); ok {
			return append(out, rest...), nil
		}
	}
	return out, nil
}

// engineJob returns the engine's state of a job; nil if the engine does not have the job or decides nothing any more.
func (d *Driver) engineJob(j *job) *book.JobState {
	if d.health.broken != nil {
		return nil
	}
	return j.state
}

// Job returns one job with its tasks; usage says whether to sample its running containers.
func (d *Driver) Job(ctx context.Context, id cluster.JobID, usage bool) (api.Job, error) {
	out, err := d.await(ctx, id, func(*board.Job) bool { return true })
	if err == nil && usage {
		out.Version = 0
		d.measure(out.Tasks)
	}
	return out, err
}

// await returns a job when ready returns true, the job has ended, or it can make no more progress because the engine
// decides nothing any more. It calls ready whenever the job has changed.
func (d *Driver) await(ctx context.Context, id cluster.JobID, ready func(*board.Job) bool) (api.Job, error) {
	for {
		newer := d.board.Newer()
		b, err := d.current()
		if err != nil {
			return api.Job{}, err
		}
		j := b.Jobs.Job(id)
		switch {
		case j == nil:
			// It has left, and its end is stored; or it is being submitted, and not on a board yet.
			if out, err := d.storedView(ctx, id); err != nil || out.Ended {
				return out, err
			}
		case ready(j) || j.Ended || j.Stuck:
			return j.Whole(d.now()), nil
		default:
			newer = j.Replaced()
		}
		if err := await(ctx, d, newer); err != nil {
			return api.Job{}, err
		}
	}
}

// storedView returns a job that the Driver has dropped because it has ended.
func (d *Driver) storedView(ctx context.Context, id cluster.JobID) (api.Job, error) {
	if known, ok := d.readers.Job(id); ok {
		return known.Whole(d.now()), nil
	}
	removals := d.readers.Removals()
	j, err := d.stored(ctx, id)
	if err != nil {
		return api.Job{}, err
	}
	shown := j.shownAs(nil)
	if shown.Ended {
		d.readers.Offer(removals, shown)
	}
	return shown.Whole(d.now()), nil
}

// stored returns a job that the Driver has dropped because it has ended.
func (d *Driver) stored(ctx context.Context, id cluster.JobID) (*job, error) {
	stored, err := d.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, d.notFound(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return d.recall(ctx, stored)
}

// Tasks returns the tasks of all jobs that have not ended, by TaskID; usage says whether to sample running containers.
func (d *Driver) Tasks(_ context.Context, usage bool) ([]api.Task, error) {
	b, err := d.current()
	if err != nil {
		return nil, err
	}
	var out []api.Task
	now := d.now()
	for j := range b.Jobs.All() {
		if !j.Ended {
			out = append(out, j.TasksAt(now)...)
		}
	}
	if usage {
		d.measure(out)
	}
	return out, nil
}

// Measured returns the tasks that have a container, by TaskID, with what their containers use, and when that was
// measured. It takes time in proportion to the number of containers.
func (d *Driver) Measured(context.Context) ([]api.Task, time.Time, error) {
	readings, at := d.datedReadings()
	b, err := d.current()
	if err != nil {
		return nil, at, err
	}
	out := make([]api.Task, 0, len(readings))
	now := d.now()
	for id, r := range readings {
		t := b.Jobs.Job(id.Task.Job).Task(id.Task)
		if t == nil || t.Run != id.Run || t.State == api.TaskEnded {
			continue
		}
		shown := t.At(now)
		shown.Usage = &r
		out = append(out, shown)
	}
	slices.SortFunc(out, func(a, b api.Task) int { return a.Task.Compare(b.Task) })
	return out, at, nil
}

// measure adds the current use of the running containers among tasks.
func (d *Driver) measure(tasks []api.Task) {
	if !slices.ContainsFunc(tasks, func(t api.Task) bool { return t.State != api.TaskEnded }) {
		return
	}
	putReadings(tasks, d.readings())
}

func putReadings(tasks []api.Task, readings map[cluster.ContainerID]cluster.Reading) {
	for i := range tasks {
		if r, ok := readings[cluster.ContainerID{Task: tasks[i].Task, Run: tasks[i].Run}]; ok &&
			tasks[i].State != api.TaskEnded {
			tasks[i].Usage = &r
		}
	}
}

// Wait returns the job when it has ended, or the error of ctx. The error is Internal if the job can no longer end
// because the engine decides nothing any more.
func (d *Driver) Wait(ctx context.Context, id cluster.JobID) (api.Job, error) {
	j, err := d.await(ctx, id, func(*board.Job) bool { return false })
	if err == nil && !j.Ended {
		err = api.Errorf(api.Internal, "job %d: %s", id, j.Waiting)
	}
	return j, err
}

// WaitTask returns a task when its newest run is running or has ended (ended false), or has ended (ended true), or the
// error of ctx. The error is NotFound if the task can no longer start.
func (d *Driver) WaitTask(ctx context.Context, id cluster.TaskID, ended bool) (api.Task, error) {
	j, err := d.await(ctx, id.Job, func(j *board.Job) bool {
		t := j.Task(id)
		return !j.Has(id) || t != nil && (t.State == api.TaskEnded || !ended && t.State != api.TaskStarting)
	})
	if err != nil {
		return api.Task{}, err
	}
	if !j.Has(id) {
		return api.Task{}, api.Errorf(api.NotFound, "task %s: job %d has none of that number", id, id.Job)
	}
	at := slices.IndexFunc(j.Tasks, func(t api.Task) bool { return t.Task == id })
	if at < 0 {
		return api.Task{}, api.Errorf(api.NotFound, "task %s: it never started, and never will", id)
	}
	return j.Tasks[at], nil
}

// Logs returns the locations of a job's output, for every run that was ever started, by task and run. The error is
// Invalid if the Backend does not store output in files of this machine.
func (d *Driver) Logs(ctx context.Context, id cluster.JobID) ([]api.LogFile, error) {
	j, err := d.Job(ctx, id, false)
	if err != nil {
		return nil, err
	}
	if why := d.able.Files; why != "" {
		return nil, api.Errorf(api.Invalid, "job %d output: %s", id, why)
	}
	var out []api.LogFile
	for _, t := range j.Runs() {
		path := d.config.output().Path(cluster.ContainerID{Task: t.Task, Run: t.Run})
		out = append(out, api.LogFile{Task: t.Task, Run: t.Run, Stdout: path + ".out", Stderr: path + ".err",
			Ended: t.State == api.TaskEnded})
	}
	return out, nil
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}

// appDerived reports whether the App of a job equals the one derived from its name and command.
func (j *job) appDerived() bool {
	return j.Request.Job.App != "" && j.Request.Job.App == j.Request.Job.DeriveApp()
}

// count moves a task of a stage from the pending tasks to its present state. final says that no task runs again.
func count(s *api.Stage, r *run, final bool) {
	switch {
	case !r.ended():
		s.Pending--
		s.Running++
	case r.Outcome == cluster.Succeeded:
		s.Pending--
		s.Succeeded++
	case final:
		s.Pending--
		s.Failed++
	}
}

// view is what people see of a run of a job.
func (r *run) view(j *cluster.Job, of api.Owner) api.Task {
	stage := int(r.Container.Task.Stage)
	out := api.Task{Task: r.Container.Task, Owner: of, Run: r.Container.Run, State: r.state(), Node: r.Node,
		Grant: view.Grant(r.Grant), AskedBytes: int64(j.Stages[stage].Asked(j.Class)),
		UnderSized: j.UnderSized(stage, r.Grant[resource.Memory]), Why: r.Why,
		Booked: instant(r.Booked), Started: instant(r.Started), Ended: instant(r.Ended), Exit: r.Exit, Detail: r.Detail,
		Throttle: throttleOf(r, 0)} // board.Task leaves out one that is over
	if r.ended() {
		out.Outcome = r.Outcome
	}
	if out.State == api.TaskRunning {
		out.PagedOut = r.out
	}
	if r.still != 0 && out.State == api.TaskRunning {
		out.Suspended = &api.Still{By: r.still} // put adds when, unless the engine decides nothing any more
	}
	return out
}

// putKnown adds what only the engine knows of a running task, apart from its phase.
func putKnown(out *api.Task, t *book.TaskState, r *run) {
	out.Grant = view.Grant(t.Grant)
	out.UnderSized = t.UnderSized
	out.Sized = sizedOf(t, r)
	if t.Suspended {
		out.Suspended = &api.Still{By: t.SuspendedBy, Since: instant(t.SuspendedSince), Lends: t.Lends()}
	}
}

// state returns how far a run has come.
func (r *run) state() api.TaskState {
	switch {
	case r.ended():
		return api.TaskEnded
	case r.killing:
		return api.TaskEnding
	case r.Started == 0:
		return api.TaskStarting
	}
	return api.TaskRunning
}
