package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/store"
	"github.com/bellows-rm/bellows/timeline"
)

// Jobs returns the jobs that have not ended, by ascending ID, without Tasks.
func (d *Driver) Jobs(ctx context.Context) ([]Job, error) {
	out := []Job{}
	err := d.do(ctx, func() {
		for _, id := range d.openJobs() {
			out = append(out, d.listed(d.jobs[id]))
		}
	})
	return out, err
}

// JobsAfter returns a page of all jobs, ended or not: jobs whose ID is greater than after, by ascending ID, without
// Tasks. most is the largest number of jobs on a page; a page with fewer is the last. Ended jobs have no Stages.
func (d *Driver) JobsAfter(ctx context.Context, after cluster.JobID, most int) ([]Job, error) {
	for {
		page, err := d.store.List(ctx, after, most)
		if err != nil {
			return nil, err
		}
		out := make([]Job, len(page))
		stale := false
		if err := d.do(ctx, func() {
			for i := range page {
				if j, here := d.jobs[page[i].ID]; here {
					out[i] = d.listed(j)
					continue
				}
				out[i] = listedView(&page[i])
				stale = stale || !page[i].State.Ended
			}
		}); err != nil {
			return nil, err
		}
		// A job that ended after the page was read is in the store by now.
		if !stale {
			return out, nil
		}
	}
}

// listed returns a job of the Driver in the form of a list.
func (d *Driver) listed(j *job) Job {
	out := d.view(j)
	out.Tasks, out.Earlier = nil, nil
	return out
}

func listedView(l *store.Listed) Job {
	out := Job{ID: l.ID, Name: l.Name, Owner: l.User, UID: l.UID, Submitted: instant(l.Submitted), TaskCount: l.Tasks, SucceededCount: l.State.Succeeded}
	if out.Owner == "" {
		out.Owner = fmt.Sprint(l.UID)
	}
	out.put(&l.State)
	return out
}

// put copies the progress of a job.
func (out *Job) put(s *store.JobState) {
	out.Status, out.Ended, out.Detail = s.Status, s.Ended, s.Detail
	out.Started, out.Finished = instant(s.Started), instant(s.Finished)
	if s.Ended {
		out.ExitCode = s.ExitCode
	}
}

// view copies a job for people, with the reason why it waits.
func (d *Driver) view(j *job) Job {
	out := j.view()
	out.Waiting = d.whyWaits(j)
	if state := d.engineJob(j); state != nil {
		now := d.now()
		for _, t := range state.Tasks {
			at, here := slices.BinarySearchFunc(out.Tasks, t.ID, func(t Task, id cluster.TaskID) int { return compareTasks(t.Task, id) })
			if here && out.Tasks[at].State == TaskRunning {
				out.Tasks[at].put(t, j.newest(t.ID), now)
				out.Tasks[at].Leveled = leveledOf(t, j.newest(t.ID))
			}
		}
	}
	return out
}

// engineJob returns the engine's state of a job; nil if the engine does not have the job or decides nothing any more.
func (d *Driver) engineJob(j *job) *cluster.JobState {
	if d.broken != nil {
		return nil
	}
	return j.state
}

// Job returns one job with its tasks; usage says whether to sample its running containers.
func (d *Driver) Job(ctx context.Context, id cluster.JobID, usage bool) (Job, error) {
	out, err := d.await(ctx, id, func(*job) bool { return true })
	if err == nil && usage {
		d.measure(out.Tasks)
	}
	return out, err
}

// await returns a job when ready returns true, the job has ended, or it can make no more progress because the engine
// decides nothing any more. The loop runs ready at each change of the job, so ready should be cheap.
func (d *Driver) await(ctx context.Context, id cluster.JobID, ready func(*job) bool) (Job, error) {
	for {
		var out Job
		var changed <-chan struct{}
		here := false
		if err := d.do(ctx, func() {
			var j *job
			if j, here = d.jobs[id]; !here {
				return
			}
			hopeless := (d.broken != nil || j.isAside()) && !j.State.Ended && len(j.alive()) == 0
			if !ready(j) && !j.State.Ended && !hopeless {
				changed = j.changed
				return
			}
			out = d.view(j)
		}); err != nil {
			return Job{}, err
		}
		switch {
		case !here:
			return d.storedView(ctx, id)
		case changed == nil:
			return out, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Job{}, ctx.Err()
		case <-d.done:
			return Job{}, errStopped
		}
	}
}

// storedView returns a job that the Driver has dropped because it has ended.
func (d *Driver) storedView(ctx context.Context, id cluster.JobID) (Job, error) {
	j, err := d.stored(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return j.view(), nil
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
func (d *Driver) Tasks(ctx context.Context, usage bool) ([]Task, error) {
	var out []Task
	if err := d.do(ctx, func() {
		for _, id := range d.openJobs() {
			j := d.jobs[id]
			out = append(out, d.view(j).Tasks...)
		}
	}); err != nil {
		return nil, err
	}
	if usage {
		d.measure(out)
	}
	return out, nil
}

// measure adds the current use of the running containers among tasks.
func (d *Driver) measure(tasks []Task) {
	if !slices.ContainsFunc(tasks, func(t Task) bool { return t.State != TaskEnded }) {
		return
	}
	putReadings(tasks, d.readings())
}

func putReadings(tasks []Task, readings map[cluster.ContainerID]cluster.Reading) {
	for i := range tasks {
		if r, ok := readings[cluster.ContainerID{Task: tasks[i].Task, Run: tasks[i].Run}]; ok && tasks[i].State != TaskEnded {
			tasks[i].Usage = &r
		}
	}
}

// Wait returns the job when it has ended, or the error of ctx. The error is Internal if the job can no longer end
// because the engine decides nothing any more.
func (d *Driver) Wait(ctx context.Context, id cluster.JobID) (Job, error) {
	j, err := d.await(ctx, id, func(*job) bool { return false })
	if err == nil && !j.Ended {
		err = Errorf(Internal, "job %d: %s", id, j.Waiting)
	}
	return j, err
}

// WaitTask returns a task when its newest run is running or has ended (ended false), or has ended (ended true), or the
// error of ctx. The error is NotFound if the task can no longer start.
func (d *Driver) WaitTask(ctx context.Context, id cluster.TaskID, ended bool) (Task, error) {
	j, err := d.await(ctx, id.Job, func(j *job) bool {
		r := j.newest(id)
		return !j.has(id) || r != nil && (r.ended() || !ended && r.state() != TaskStarting)
	})
	if err != nil {
		return Task{}, err
	}
	if id.Stage < 0 || int(id.Stage) >= len(j.Stages) || id.Index < 0 || int(id.Index) >= j.Stages[id.Stage].Tasks {
		return Task{}, Errorf(NotFound, "task %s: job %d has none of that number", id, id.Job)
	}
	at := slices.IndexFunc(j.Tasks, func(t Task) bool { return t.Task == id })
	if at < 0 {
		return Task{}, Errorf(NotFound, "task %s: it never started, and never will", id)
	}
	return j.Tasks[at], nil
}

// Logs returns the locations of a job's output, for every run that was ever started, by task and run.
func (d *Driver) Logs(ctx context.Context, id cluster.JobID) ([]LogFile, error) {
	var out []LogFile
	list := func(j *job) {
		for _, task := range j.tasks() {
			for _, r := range j.runs[task] {
				path := logPath(d.config.Dir, r.Container)
				out = append(out, LogFile{Task: task, Run: r.Container.Run, Stdout: path + ".out", Stderr: path + ".err", Ended: r.ended()})
			}
		}
	}
	here := false
	if err := d.do(ctx, func() {
		var j *job
		if j, here = d.jobs[id]; here {
			list(j)
		}
	}); err != nil || here {
		return out, err
	}
	j, err := d.stored(ctx, id)
	if err != nil {
		return nil, err
	}
	list(j)
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

// view copies a job for people.
func (j *job) view() Job {
	out := Job{ID: j.ID, Name: j.Request.Job.Name, Owner: j.Request.Job.Owner, UID: j.Request.As.UID, Submitted: instant(j.Submitted), Input: j.Request.Input,
		App: j.Request.Job.App, AppDerived: j.appDerived(), DeadlineSeconds: j.Request.Job.Deadline.Seconds()}
	out.put(&j.State)
	if !j.State.Ended {
		out.Paused = pausedOf(j.paused(cluster.TaskID{}))
	}
	for i := range j.Request.Job.Stages {
		out.Stages = append(out.Stages, stageOf(&j.Request.Job, i))
	}
	final := j.State.Ended || j.State.Cancelled || j.State.Status == cluster.StatusFailed
	for _, id := range j.tasks() {
		r := j.newest(id)
		count(&out.Stages[id.Stage], r, final)
		stage := &j.Request.Job.Stages[id.Stage]
		shown := r.view(stage)
		if p := pausedOf(cmp.Or(j.paused(id), j.paused(cluster.TaskID{}))); p != nil && !r.ended() {
			p.Failed = r.unheld
			shown.Paused = p
		}
		out.Tasks = append(out.Tasks, shown)
		runs := j.runs[id]
		for _, earlier := range runs[:len(runs)-1] {
			out.Earlier = append(out.Earlier, earlier.view(stage))
		}
	}
	for i := range out.Stages {
		out.TaskCount += out.Stages[i].Tasks
		out.SucceededCount += out.Stages[i].Succeeded
	}
	return out
}

// count moves a task of a stage from the pending tasks to its present state. final says that no task runs again.
func count(s *Stage, r *run, final bool) {
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

func (r *run) view(s *cluster.Stage) Task {
	out := Task{Task: r.Container.Task, Run: r.Container.Run, State: r.state(), Node: r.Node, Grant: grantOf(r.Grant), UnderSized: r.Grant[resource.Memory] < s.Ideal[resource.Memory], Why: r.Why,
		Booked: instant(r.Booked), Started: instant(r.Started), Ended: instant(r.Ended), Exit: r.Exit, Detail: r.Detail,
		Throttle: throttleOf(r, timeline.Time(time.Now().UnixNano()))}
	if r.ended() {
		out.Outcome = r.Outcome
	}
	if out.State == TaskRunning {
		out.PagedOut = r.out
	}
	if r.still != 0 && out.State == TaskRunning {
		out.Still = &Still{By: r.still} // put adds when, unless the engine decides nothing any more
	}
	return out
}

// put adds what only the engine knows of a running task.
func (out *Task) put(t *cluster.TaskState, r *run, now timeline.Time) {
	out.InPhase, out.Grant = inPhase(t, now), grantOf(t.Grant)
	out.UnderSized = t.UnderSized
	out.Sized.put(t, r)
	if t.Still {
		out.Still = &Still{By: t.StillBy, Since: instant(t.StillSince), Lends: t.Lends}
	}
}

// state returns how far a run has come.
func (r *run) state() TaskState {
	switch {
	case r.ended():
		return TaskEnded
	case r.killing:
		return TaskEnding
	case r.Started == 0:
		return TaskStarting
	}
	return TaskRunning
}
