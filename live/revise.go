package live

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/store"
)

// waitingJobs are the jobs of a Driver that wait, for what is learned meanwhile: see learn.Waiting.
type waitingJobs struct{ *Driver }

// Apps returns the applications of the jobs that wait.
func (w waitingJobs) Apps(ctx context.Context) (apps []learn.App, err error) {
	if err := w.awaitInventory(ctx); err != nil {
		return nil, err
	}
	err = w.look(ctx, func() {
		for _, id := range w.openJobs() {
			if j := w.jobs[id]; j.revisable() && !slices.Contains(apps, j.app()) {
				apps = append(apps, j.app())
			}
		}
	})
	return apps, err
}

// Of returns the jobs of an application that wait.
func (w waitingJobs) Of(ctx context.Context, app learn.App) (waiting []store.Request, err error) {
	err = w.look(ctx, func() {
		for _, id := range w.openJobs() {
			if j := w.jobs[id]; j.revisable() && j.app() == app {
				waiting = append(waiting, j.Request)
			}
		}
	})
	return waiting, err
}

// Revise gives jobs that still wait other forecasts.
func (w waitingJobs) Revise(ctx context.Context, revised []cluster.Job) {
	_ = w.do(ctx, func() {
		for i := range revised {
			if j := w.jobs[revised[i].ID]; j != nil && j.revisable() {
				w.reviseJob(j, &revised[i])
			}
		}
	})
}

// app returns the application of a job.
func (j *job) app() learn.App { return learn.AppOf(j.Request.As, j.Request.Job.App) }

// revisable reports whether the forecasts of a job may still change.
func (j *job) revisable() bool {
	return j.state != nil && !j.State.Ended && !j.State.Cancelled && len(j.runs) == 0 &&
		j.state.Status == cluster.StatusPending && !j.isAside()
}

// reviseJob gives a job other forecasts.
func (d *Driver) reviseJob(j *job, revised *cluster.Job) {
	if d.health.broken != nil {
		return
	}
	j.Request.Job = *revised
	d.out.revise(j)
	spec := j.Request.Job.Estimates()
	spec.Held = j.state.Held
	d.step(cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &spec})
}
