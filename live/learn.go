package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/store"
)

// What runs teach goes from the usage that is stored with their ends (see usage.go) into a profile.History for each
// application of an owner, which the store keeps. From there it goes into the forecasts of jobs, when they are
// submitted and while they wait. The engine sees only forecasts, in its events, so that a replay needs no history.

// learnAgain is how long learning waits after it failed, as on a full disk.
const learnAgain = time.Minute

// learnPart bounds the time that learning takes to 1/learnPart of all time: models are fitted after each round, and
// where short jobs end all the time, a round learns from several jobs.
const learnPart = 10

// Programs that never run again would otherwise fill the store.
const (
	// appsKept is how many histories each user keeps, most recent first.
	appsKept = 1000
	// appsBeyond is how many applications may be added before the oldest are dropped.
	appsBeyond = 100
)

// learning is what the goroutine that learns shares with others.
type learning struct {
	histories               // what runs taught
	ended     signal        // jobs may have ended since the last round
	caught    chan struct{} // closed once the lessons that an earlier Driver left are learned or have failed
}

func newLearning() *learning { return &learning{ended: newSignal(), caught: make(chan struct{})} }

func (l *learning) jobsEnded() { l.ended.raise() }

// due has an element if jobs may have ended since the last round.
func (l *learning) due() <-chan struct{} { return l.ended }

func (l *learning) hasCaughtUp() { close(l.caught) }

// caughtUp is closed once the lessons that an earlier Driver left are learned or have failed.
func (l *learning) caughtUp() <-chan struct{} { return l.caught }

// learn learns from the jobs that have ended, and until ctx ends from every job that ends. The store knows the jobs
// that were not learned from, so a crash loses none of them: the next Driver learns from them.
func (d *Driver) learn(ctx context.Context) {
	d.findUnreadable(ctx)
	l := learner{Driver: d, bad: map[cluster.JobID]bool{}, taught: appsBeyond}
	l.round(context.WithoutCancel(ctx))
	d.learning.hasCaughtUp()
	d.reviseAll(ctx)
	for last := false; !last; {
		var again <-chan time.Time
		if l.failed {
			again = time.After(learnAgain)
		}
		select {
		case <-d.learning.due():
		case <-again:
		case <-ctx.Done():
			last = true // No job ends any more. A round that began earlier may have missed the latest end.
		}
		begun := time.Now()
		l.round(context.WithoutCancel(ctx))
		select {
		case <-time.After((learnPart - 1) * time.Since(begun)):
		case <-ctx.Done():
		}
	}
}

// learner learns from jobs that have ended.
type learner struct {
	*Driver
	bad    map[cluster.JobID]bool // jobs that could not be read: the next Driver tries them again
	failed bool                   // the last round could not learn from all jobs
	taught int                    // applications learned from since the oldest were last dropped
}

// round learns from the jobs that have ended and were not learned from.
func (l *learner) round(ctx context.Context) {
	jobs, err := l.store.Unlearned(ctx)
	if err == nil {
		err = l.learnFrom(ctx, jobs)
	}
	if err != nil && !l.failed {
		l.log.Warn("cannot learn from the runs of jobs that have ended, trying again", "error", err)
	}
	l.failed = err != nil
	l.forget(ctx)
}

// forget forgets what was learned of the applications of each user beyond appsKept.
func (l *learner) forget(ctx context.Context) {
	if l.taught < appsBeyond {
		return
	}
	n, err := l.store.ForgetOldest(ctx, appsKept)
	switch {
	case err != nil:
		l.log.Warn("cannot forget applications that have not run for long, trying again", "error", err)
		return
	case n > 0:
		l.log.Info("forgot what was learned of applications that have not run for long", "applications", n,
			"kept_of_each_user", appsKept)
	}
	l.taught = 0
}

// findUnreadable reports histories that cannot be read, which start over with the next run.
func (d *Driver) findUnreadable(ctx context.Context) {
	apps, err := d.store.Unreadable(ctx)
	if err != nil && ctx.Err() == nil {
		d.log.Warn("cannot check what was learned", "error", err)
	}
	for _, a := range apps {
		d.log.Warn("what was learned of an application cannot be read: its history begins anew with its next run", "app",
			a.Name, "uid", a.UID)
	}
}

// course is what jobs teach about one application.
type course struct {
	runs []lesson
	jobs []cluster.JobID
}

// learnFrom adds the runs of jobs to the histories of their applications, and then revises the forecasts of jobs of
// these applications that wait.
func (l *learner) learnFrom(ctx context.Context, jobs []cluster.JobID) error {
	courses := map[ownedApp]*course{}
	var order []ownedApp
	var nothing []cluster.JobID
	for _, id := range jobs {
		if l.bad[id] {
			continue
		}
		key, runs, err := l.lessonsOf(ctx, id)
		switch {
		case err != nil:
			l.bad[id] = true
			l.log.Warn("cannot learn from a job before the next start", "job", id, "error", err)
			continue
		case len(runs) == 0:
			nothing = append(nothing, id)
			continue
		}
		c := courses[key]
		if c == nil {
			c = &course{}
			courses[key], order = c, append(order, key)
		}
		c.runs, c.jobs = append(c.runs, runs...), append(c.jobs, id)
	}
	var failed error
	if len(nothing) > 0 {
		failed = l.store.TaughtNothing(ctx, nothing)
	}
	for _, key := range order {
		if err := l.teach(ctx, key, courses[key]); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		l.taught++
		l.revise(ctx, key)
	}
	return failed
}

// lessonsOf returns what the runs of a job teach, and the application that they belong to.
func (d *Driver) lessonsOf(ctx context.Context, id cluster.JobID) (key ownedApp, runs []lesson, err error) {
	j, err := d.store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return key, nil, nil // It has been removed already.
	}
	if err == nil && j.Request.Job.App != "" {
		runs, err = d.runsOf(ctx, &j)
	}
	return appOf(j.Request.As, j.Request.Job.App), runs, err
}

// teach adds runs to the history of an application, and then reports the runs that were only partly measured or are
// not sound.
func (d *Driver) teach(ctx context.Context, key ownedApp, c *course) error {
	var report []func()
	err := d.withHistory(ctx, key, func(h *profile.History, _ error) (*taught, error) {
		for _, r := range c.runs {
			notes, err := h.Observe(r.app, r.run)
			notes = slices.Concat(r.run.Notes, notes)
			switch {
			case err != nil:
				report = append(report, func() { d.teachesNothing(r.which(), err.Error(), notes) })
			case len(notes) > 0:
				report = append(report, func() {
					d.log.Info("a run teaches with reservations: not all of it was measured, or is sound", "app", key.app, r.which(),
						"notes", notes)
				})
			}
		}
		text, err := h.MarshalJSON()
		if err != nil {
			return nil, err
		}
		for _, app := range h.Apps() { // fit the models now, and not at the next submission
			h.Estimate(app, profile.Features{})
			h.Estimate(app, profile.Features{Input: 1})
		}
		return &taught{store.App{UID: key.uid, User: key.user, Name: key.app, Learned: text, LearnedAt: d.now()}, c.jobs}, nil
	})
	if err == nil { // Otherwise the runs teach later.
		for _, do := range report {
			do()
		}
	}
	return err
}

// teachesNothing logs a run that nothing is learned from.
func (d *Driver) teachesNothing(which slog.Attr, because string, notes []string) {
	d.log.Info("a run teaches nothing", which, "because", because, "notes", notes)
}

// lesson is one run of a task that succeeded.
type lesson struct {
	container cluster.ContainerID // zero for a run that was imported
	app       profile.App
	run       profile.Run
}

// which names the run in the log.
func (l *lesson) which() slog.Attr {
	if l.container == (cluster.ContainerID{}) {
		return slog.Time("imported_run_ended", instant(l.run.Ended))
	}
	return slog.Any("container", l.container)
}

// runsOf returns the measured runs of the tasks of a job that succeeded, in the order in which they ended: of each
// stage at most profile.MostRuns, the latest.
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
		most := time.Duration(mostHindered * float64(u.Usage.Length()-u.Usage.Still()))
		which := slog.Any("container", u.Container)
		var missing []string
		if u.Missing != "" {
			missing = append(missing, u.Missing)
		}
		if gap := u.Usage.Gap(); gap > 0 {
			missing = append(missing, fmt.Sprintf("no samples were taken for %v of %v", gap, u.Usage.Length()))
		}
		if bounded := u.Usage.Bounded(); bounded > most {
			d.teachesNothing(which, fmt.Sprintf("its disk was bounded for %v, more than a tenth of its time", bounded), missing)
			return nil
		}
		if pressed := u.Usage.Pressed(); pressed > most {
			d.teachesNothing(which, fmt.Sprintf("others hindered it on the disk for %v, more than a tenth of its time",
				pressed), missing)
			return nil
		}
		run, notes := profile.Segment(stretches(u.Usage))
		run.Notes = slices.Concat(missing, notes)
		if run.Duration == 0 {
			d.teachesNothing(which, "nothing of it was measured", run.Notes)
			return nil
		}
		count[stage]++
		s := &j.Request.Job.Stages[stage]
		run.Features = profile.Features{Cores: t.Grant[resource.CPU], Input: s.Input, Memory: t.Grant[resource.Memory]}
		run.Ended = u.Ended
		all = append(all, lesson{u.Container, profile.AppOf(&j.Request.Job, stage), run})
		return nil
	}); err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}

// mostHindered is the largest share of a run for which its disk may be bounded, or pressed by others. Above it, the
// run took longer than it needs, by an unknown amount, and transferred less per second than it demands.
const mostHindered = 0.1

// stretches returns a usage in the form in which phases are found in it: without the time in which the programs were
// stopped.
func stretches(u usage.Usage) (all []profile.Stretch) {
	for i := range u.Spans {
		s := &u.Spans[i]
		if s.Active() == 0 {
			continue
		}
		demand, known := s.Demand()
		all = append(all, profile.Stretch{Length: s.Active(), Usage: demand, Unknown: ^known & resource.AllKinds,
			Idle: s.Idle.Seconds() / s.Active().Seconds()})
	}
	return all
}

// reviseAll revises the forecasts of all waiting jobs: the previous Driver may have ended before it did.
func (d *Driver) reviseAll(ctx context.Context) {
	if d.awaitInventory(ctx) != nil {
		return // The daemon ends.
	}
	var apps []ownedApp
	if d.look(ctx, func() {
		for _, id := range d.openJobs() {
			if j := d.jobs[id]; j.revisable() && !slices.Contains(apps, j.app()) {
				apps = append(apps, j.app())
			}
		}
	}) != nil {
		return
	}
	for _, key := range apps {
		d.revise(ctx, key)
	}
}

// mostRevised is how many jobs of an application are revised at a time, in the order of their submission. Each
// revision is stored and decided on, so thousands of waiting jobs would keep the daemon busy after every run. Further
// jobs are revised after later runs, when fewer jobs wait before them.
const mostRevised = 100

// revise changes the forecasts of the jobs of an application that have not started any task.
func (d *Driver) revise(ctx context.Context, key ownedApp) {
	var waiting []store.Request
	if d.look(ctx, func() {
		for _, id := range d.openJobs() {
			if j := d.jobs[id]; j.revisable() && j.app() == key {
				waiting = append(waiting, j.Request)
			}
		}
	}) != nil || len(waiting) == 0 {
		return // The daemon ends, or no job waits.
	}
	var revised []cluster.Job
	if err := d.withHistory(ctx, key, func(h *profile.History, _ error) (*taught, error) {
		for i := range waiting {
			j := &waiting[i].Job
			now := j.Revised(j)
			if h.Forecast(&now, waiting[i].Untimed); !reflect.DeepEqual(&now, j) {
				if revised = append(revised, now); len(revised) == mostRevised {
					break
				}
			}
		}
		return nil, nil
	}); err != nil {
		d.log.Warn("cannot revise the forecasts of jobs that wait", "app", key.app, "error", err)
		return
	}
	_ = d.do(ctx, func() {
		for i := range revised {
			if j := d.jobs[revised[i].ID]; j != nil && j.revisable() {
				d.reviseJob(j, &revised[i])
			}
		}
	})
}

// app returns the application of a job.
func (j *job) app() ownedApp { return appOf(j.Request.As, j.Request.Job.App) }

// revisable reports whether the forecasts of a job may still change.
func (j *job) revisable() bool {
	return j.state != nil && !j.State.Ended && !j.State.Cancelled && len(j.runs) == 0 &&
		j.state.Status == cluster.StatusPending && !j.isAside()
}

// reviseJob gives a job other forecasts.
func (d *Driver) reviseJob(j *job, revised *cluster.Job) {
	if d.broken != nil {
		return
	}
	j.Request.Job = *revised
	d.out.revise(j)
	spec := j.Request.Job.Estimates()
	spec.Held = j.state.Held
	d.step(cluster.Event{Kind: cluster.JobRevised, Job: j.ID, NewJob: &spec})
}
