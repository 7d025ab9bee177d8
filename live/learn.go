package live

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/store"
	"github.com/bellows-rm/bellows/usage"
)

// What runs teach goes from the usage that is stored with their ends (see usage.go) into a profile.History per owner and
// application, which the store keeps; from there into the forecasts of jobs, when they are submitted and while they wait.
// The engine sees forecasts only, in its events, so that a replay needs no history.

// lessons are the jobs that have ended and have not been learned from. Its methods may be called from any goroutine.
type lessons struct {
	mu   sync.Mutex
	jobs []cluster.JobID
	more chan struct{} // has an element when there may be jobs
}

func newLessons() *lessons { return &lessons{more: make(chan struct{}, 1)} }

func (l *lessons) add(ended []cluster.JobID) {
	if len(ended) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs = append(l.jobs, ended...)
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *lessons) take() []cluster.JobID {
	l.mu.Lock()
	defer l.mu.Unlock()
	jobs := l.jobs
	l.jobs = nil
	return jobs
}

// learn learns from every job that ends until ctx ends, and from those that have ended by then.
func (d *Driver) learn(ctx context.Context) {
	d.findUnreadable(ctx)
	for {
		select {
		case <-d.lessons.more:
		case <-ctx.Done():
		}
		if err := d.learnFrom(context.WithoutCancel(ctx), d.lessons.take()); err != nil {
			d.log.Warn("cannot learn from the runs of jobs that have ended", "error", err)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// findUnreadable reports histories that cannot be read, which begin anew with the next run.
func (d *Driver) findUnreadable(ctx context.Context) {
	apps, err := d.store.Unreadable(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("cannot check what was learned", "error", err)
	}
	for _, a := range apps {
		d.log.Warn("what was learned of an application cannot be read: its history begins anew with its next run", "app", a.Name, "uid", a.UID)
	}
}

// learnFrom adds the runs of jobs to the histories of their applications, and then revises the forecasts of jobs of these
// applications that wait.
func (d *Driver) learnFrom(ctx context.Context, jobs []cluster.JobID) error {
	lessons := map[ownedApp][]lesson{}
	users := map[ownedApp]string{}
	var order []ownedApp
	for _, id := range jobs {
		j, err := d.store.Job(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue // It has been removed already.
		case err != nil:
			return err
		case j.Request.Job.App == "":
			continue
		}
		runs, err := d.runsOf(ctx, &j)
		if err != nil {
			return err
		}
		if len(runs) == 0 {
			continue
		}
		key := ownedApp{j.Request.As.UID, j.Request.Job.App}
		if lessons[key] == nil {
			order = append(order, key)
		}
		lessons[key], users[key] = append(lessons[key], runs...), j.Request.As.User
	}
	var failed error
	for _, key := range order {
		if err := d.teach(ctx, key, users[key], lessons[key]); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		d.revise(ctx, key)
	}
	return failed
}

// teach adds runs to the history of an application.
func (d *Driver) teach(ctx context.Context, key ownedApp, user string, runs []lesson) error {
	return d.withHistory(ctx, key, func(h *profile.History, _ error) (*store.App, error) {
		for _, r := range runs {
			if notes, err := h.Observe(r.app, r.run); len(notes) > 0 || err != nil {
				d.log.Debug("a run is not sound, or only in part", "app", key.app, "stage", r.app.Stage, "notes", notes, "error", err)
			}
		}
		text, err := h.MarshalJSON()
		if err != nil {
			return nil, err
		}
		for _, app := range h.Apps() { // fit the models now, and not when somebody submits a job
			h.Estimate(app, profile.Features{})
			h.Estimate(app, profile.Features{Input: 1})
		}
		return &store.App{UID: key.uid, User: user, Name: key.app, Learned: text, LearnedAt: d.now()}, nil
	})
}

// lesson is one run of a task that succeeded.
type lesson struct {
	app profile.App
	run profile.Run
}

// runsOf returns the measured runs of those tasks of a job that succeeded, at most profile.MostRuns of each stage: the
// latest, in the order in which they ended.
func (d *Driver) runsOf(ctx context.Context, j *store.Job) ([]lesson, error) {
	tasks, err := d.store.Tasks(ctx, j.ID)
	if err != nil {
		return nil, err
	}
	ran := map[cluster.ContainerID]*store.Task{}
	for i := range tasks {
		if t := &tasks[i]; t.Outcome == cluster.Succeeded {
			ran[t.Container] = t
		}
	}
	count := make([]int, len(j.Request.Job.Stages))
	var all []lesson
	if err := d.store.Usage(ctx, j.ID, func(u store.Usage) error {
		t, stage := ran[u.Container], int(u.Container.Task.Stage)
		if t == nil || stage >= len(count) || count[stage] == profile.MostRuns {
			return nil
		}
		run, notes := profile.Segment(stretches(u.Usage))
		if len(notes) > 0 {
			d.log.Debug("measured usage is not sound, or only in part", "container", u.Container, "notes", notes)
		}
		if run.Duration == 0 {
			return nil // nothing was measured
		}
		count[stage]++
		s := &j.Request.Job.Stages[stage]
		run.Features = profile.Features{Cores: t.Grant[resource.CPU], Input: s.Input, Memory: t.Grant[resource.Memory]}
		run.Ended = u.Ended
		all = append(all, lesson{profile.AppOf(&j.Request.Job, stage), run})
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}

// stretches returns a usage in the form in which phases are found in it.
func stretches(u usage.Usage) []profile.Stretch {
	all := make([]profile.Stretch, len(u.Spans))
	for i := range u.Spans {
		s := &u.Spans[i]
		demand, known := s.Demand()
		all[i] = profile.Stretch{Length: s.Length, Usage: demand, Unknown: ^known & resource.AllKinds}
	}
	return all
}

// revise changes the forecasts of the jobs of an application none of whose tasks has been started.
func (d *Driver) revise(ctx context.Context, key ownedApp) {
	waiting := map[cluster.JobID]cluster.Job{}
	untimed := map[cluster.JobID][]int{}
	if d.do(ctx, func() {
		for id, j := range d.jobs {
			if j.revisable() && (ownedApp{j.Request.As.UID, j.Request.Job.App}) == key {
				waiting[id], untimed[id] = j.Request.Job, j.Request.Untimed
			}
		}
	}) != nil || len(waiting) == 0 {
		return // The daemon ends, or nobody waits.
	}
	if err := d.withHistory(ctx, key, func(h *profile.History, _ error) (*store.App, error) {
		for id, j := range waiting {
			revised := j.Revised(&j)
			h.Forecast(&revised, untimed[id])
			waiting[id] = revised
		}
		return nil, nil
	}); err != nil {
		d.log.Warn("cannot revise the forecasts of jobs that wait", "app", key.app, "error", err)
		return
	}
	_ = d.do(ctx, func() {
		for _, id := range d.openJobs() {
			if revised, ok := waiting[id]; ok && d.jobs[id].revisable() {
				d.reviseJob(d.jobs[id], &revised)
			}
		}
	})
}

// revisable reports whether the forecasts of a job may still change.
func (j *job) revisable() bool {
	return j.state != nil && !j.State.Ended && !j.State.Cancelled && len(j.runs) == 0 && j.state.Status == cluster.StatusPending && !j.isAside()
}

// reviseJob gives a job other forecasts.
func (d *Driver) reviseJob(j *job, revised *cluster.Job) {
	if d.broken != nil {
		return
	}
	j.Request.Job = *revised
	d.out.revise(j)
	spec := j.Request.Job.Estimates()
	d.step(cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &spec})
}
