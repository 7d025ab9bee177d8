package live

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/learn"
	"github.com/bellows-rm/bellows/live/store"
)

// Learned returns what the runs of an application taught, by stage. The error is Invalid if that cannot be read.
func (d *Driver) Learned(ctx context.Context, uid uint32, user, app string) ([]api.Learned, error) {
	all, err := d.learner.Learned(ctx, learn.App{UID: uid, User: user, Name: app})
	for i := range all {
		all[i].Notes = append(all[i].Notes, d.unmeasured(all[i].Variants[0].Unknown)...)
	}
	return all, err
}

// Import adds the runs of h to the histories of the applications of a user: see learn.Learner.Import.
func (d *Driver) Import(ctx context.Context, by cluster.Credentials, h *profile.History) ([]api.Imported, error) {
	return d.learner.Import(ctx, by, h)
}

// forecasts says of each stage of a job what is known of its demand over time. largest is the largest amount of each
// kind that a node has, TooMuch where that is unknown.
func (d *Driver) forecasts(ctx context.Context, owner cluster.Credentials, j *cluster.Job,
	largest resource.Vector) ([]api.Forecast, error) {
	all, err := d.learner.Forecasts(ctx, owner, j, largest)
	for i := range all {
		all[i].Notes = append(all[i].Notes, d.unmeasured(all[i].Unknown)...)
	}
	return all, err
}

// unmeasured says why resources were measured in no run, if this machine cannot measure them. kinds are as job files
// name them.
func (d *Driver) unmeasured(kinds []string) (notes []string) {
	m, ok := d.backend.(Metered)
	for k := range resource.NumKinds {
		if !ok || !slices.Contains(kinds, k.Field()) {
			continue
		}
		if why := m.Unmeasured(k); why != "" {
			notes = append(notes, fmt.Sprintf("%v: cannot be measured here: %s.", k, why))
		}
	}
	return notes
}

// largest returns the largest amount of each kind that a node has; where a node does not know what it has, nothing is
// too much.
func (d *Driver) largest() (most resource.Vector) {
	known := false
	for _, n := range d.engine.Snapshot().Nodes {
		if !n.Gone {
			most, known = most.Max(n.Unknown.In(n.Capacity, resource.TooMuch()[0])), true
		}
	}
	if !known {
		return resource.TooMuch()
	}
	for k := range most {
		if most[k] == 0 { // the capacity was not stated
			most[k] = resource.TooMuch()[k]
		}
	}
	return most
}

// waitingJobs are the jobs of a Driver that wait, for what is learned meanwhile: see learn.Waiting.
type waitingJobs struct{ *Driver }

// Apps returns the applications of the jobs that wait.
func (w waitingJobs) Apps(ctx context.Context) (apps []learn.App, err error) {
	if err := w.awaitInventory(ctx); err != nil {
		return nil, err
	}
	err = w.look(ctx, func() {
		for _, id := range w.openJobs() {
			if j := w.jobs[id]; (j.revisable() || j.resizable()) && !slices.Contains(apps, j.app()) {
				apps = append(apps, j.app())
			}
		}
	})
	return apps, err
}

// Of returns the jobs of an application that wait, or of which tasks do whose reservations are learned.
func (w waitingJobs) Of(ctx context.Context, app learn.App) (waiting []store.Request, err error) {
	err = w.look(ctx, func() {
		for _, id := range w.openJobs() {
			if j := w.jobs[id]; (j.revisable() || j.resizable()) && j.app() == app {
				waiting = append(waiting, j.Request)
			}
		}
	})
	return waiting, err
}

// Revise gives jobs that still wait other forecasts and reservations, and those that run other reservations.
func (w waitingJobs) Revise(ctx context.Context, revised []cluster.Job) {
	_ = w.do(ctx, func() {
		for i := range revised {
			j := w.jobs[revised[i].ID]
			switch {
			case j == nil:
			case j.revisable():
				w.reviseJob(j, &revised[i])
			case j.resizable():
				sized := j.Request.Job.WithReservations(&revised[i])
				w.reviseJob(j, &sized)
			}
		}
	})
}

// MostMemory returns the memory of the largest node, bytes; 0 if no node is known.
func (w waitingJobs) MostMemory() (most resource.Amount) {
	for _, n := range w.board.Newest().Status.Nodes {
		most = max(most, resource.Amount(n.Memory))
	}
	return most
}

// app returns the application of a job.
func (j *job) app() learn.App { return learn.AppOf(j.Request.As, j.Request.Job.App) }

// revisable reports whether the forecasts of a job may still change.
func (j *job) revisable() bool {
	return j.state != nil && !j.State.Ended && !j.State.Cancelled && len(j.runs) == 0 &&
		j.state.Status == cluster.StatusPending && !j.isAside()
}

// resizable reports whether what is reserved for tasks of a job that have not started may still change, though others
// have.
func (j *job) resizable() bool {
	return j.state != nil && !j.State.Ended && !j.State.Cancelled && !j.isAside() && !j.state.Status.Ended() &&
		j.Request.Job.Reserve == cluster.ReserveLearned && !j.Request.Job.Open && j.state.Pending() > 0
}

// reviseJob gives a job other forecasts and reservations, if these differ once they are what can be had, and what its
// attempts have shown to be needed.
func (d *Driver) reviseJob(j *job, revised *cluster.Job) {
	if d.health.broken != nil {
		return
	}
	d.boundAll(revised)
	d.reserveMore(j, revised)
	if reflect.DeepEqual(&j.Request.Job, revised) {
		return
	}
	j.Request.Job = *revised
	d.out.revise(j)
	spec := j.Request.Job.Estimates()
	spec.Held = j.state.Held
	d.step(cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &spec})
}
