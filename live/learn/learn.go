// Package learn learns what applications demand. What runs teach goes from the usage that is stored with their ends
// into a profile.History for each application of an owner, which the store keeps. From there it goes into the forecasts
// of jobs, when they are submitted and while they wait. An engine sees only forecasts, in its events, so that a replay
// needs no history.
package learn

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/store"
)

// Again is how long learning waits after it failed, as on a full disk.
const Again = time.Minute

// learnPart bounds the time that learning takes to 1/learnPart of all time: models are fitted after each round, and
// where short jobs end all the time, a round learns from several jobs.
const learnPart = 10

// Programs that never run again would otherwise fill the store.
const (
	// AppsKept is how many histories each user keeps, most recent first.
	AppsKept = 1000
	// AppsBeyond is how many applications may be added before the oldest are dropped.
	AppsBeyond = 100
)

// Learner learns from the jobs of a store that have ended. Its methods may be called from any goroutine, unless their
// comments say otherwise.
type Learner struct {
	store *store.Store
	log   *slog.Logger
	now   func() timeline.Time
	jobs  Waiting
	histories
	ended  chan struct{} // has an element if jobs may have ended, or runs fallen short, since the last round
	short  atomic.Bool   // runs of jobs that have not ended may have fallen short since the last round
	caught chan struct{} // closed once the lessons that an earlier Learner left are learned or have failed
}

// New returns a Learner, which learns nothing before Run. The clock never runs backwards.
func New(s *store.Store, log *slog.Logger, now func() timeline.Time, jobs Waiting) *Learner {
	l := &Learner{store: s, log: log, now: now, jobs: jobs, ended: make(chan struct{}, 1), caught: make(chan struct{})}
	l.short.Store(true) // while no Learner ran
	return l
}

// JobsEnded says that ends of jobs were stored.
func (l *Learner) JobsEnded() {
	select {
	case l.ended <- struct{}{}:
	default: // The next round has not begun, and learns from these, too.
	}
}

// FellShort says that ends of runs for want of memory were stored, whose jobs may not have ended.
func (l *Learner) FellShort() {
	l.short.Store(true)
	l.JobsEnded()
}

// CaughtUp is closed once the lessons that an earlier Learner left are learned or have failed.
func (l *Learner) CaughtUp() <-chan struct{} { return l.caught }

// Run learns from the jobs that have ended and from runs that ended for want of memory, and until ctx ends from all
// that do. It is called once. The store knows what was not learned from, so a crash loses none of it: the next Learner
// learns from it.
func (l *Learner) Run(ctx context.Context) {
	l.findUnreadable(ctx)
	r := rounds{Learner: l, bad: map[cluster.JobID]bool{}, taught: AppsBeyond}
	r.next(context.WithoutCancel(ctx))
	close(l.caught)
	l.reviseAll(ctx)
	for last := false; !last; {
		var again <-chan time.Time
		if r.failed {
			again = time.After(Again)
		}
		select {
		case <-l.ended:
		case <-again:
		case <-ctx.Done():
			last = true // No job ends any more. A round that began earlier may have missed the latest end.
		}
		begun := time.Now()
		r.next(context.WithoutCancel(ctx))
		select {
		case <-time.After((learnPart - 1) * time.Since(begun)):
		case <-ctx.Done():
		}
	}
}

// rounds are what a Learner does, one after the other, in one goroutine.
type rounds struct {
	*Learner
	bad    map[cluster.JobID]bool // jobs that could not be read: the next Learner tries them again
	failed bool                   // the last round could not learn from all jobs
	taught int                    // applications learned from since the oldest were last dropped
}

// next learns from the jobs that have ended and were not learned from.
func (r *rounds) next(ctx context.Context) {
	jobs, err := r.store.Unlearned(ctx)
	short := r.short.Swap(false)
	if err == nil && short {
		var open []cluster.JobID
		open, err = r.store.FellShort(ctx)
		jobs = append(open, jobs...)
	}
	if err == nil {
		err = r.learnFrom(ctx, jobs)
	}
	if err != nil && short {
		r.short.Store(true)
	}
	if err != nil && !r.failed {
		r.log.Warn("cannot learn from the runs of jobs that have ended, trying again", "error", err)
	}
	r.failed = err != nil
	r.forget(ctx)
}

// forget forgets what was learned of the applications of each user beyond AppsKept.
func (r *rounds) forget(ctx context.Context) {
	if r.taught < AppsBeyond {
		return
	}
	n, err := r.store.ForgetOldest(ctx, AppsKept)
	switch {
	case err != nil:
		r.log.Warn("cannot forget applications that have not run for long, trying again", "error", err)
		return
	case n > 0:
		r.log.Info("forgot what was learned of applications that have not run for long", "applications", n,
			"kept_of_each_user", AppsKept)
	}
	r.taught = 0
}

// findUnreadable reports histories that cannot be read, which start over with the next run.
func (l *Learner) findUnreadable(ctx context.Context) {
	apps, err := l.store.Unreadable(ctx)
	if err != nil && ctx.Err() == nil {
		l.log.Warn("cannot check what was learned", "error", err)
	}
	for _, a := range apps {
		l.log.Warn("what was learned of an application cannot be read: its history begins anew with its next run", "app",
			a.Name, "uid", a.UID)
	}
}

// course is what jobs teach about one application.
type course struct {
	runs []lesson
	from store.Lessons
}

func (c *course) add(runs []lesson, from store.Lessons) {
	c.runs = append(c.runs, runs...)
	c.from.Jobs, c.from.Short = append(c.from.Jobs, from.Jobs...), append(c.from.Short, from.Short...)
}

// learnFrom adds the runs of jobs to the histories of their applications, and then revises the forecasts of jobs of
// these applications that wait.
func (r *rounds) learnFrom(ctx context.Context, jobs []cluster.JobID) error {
	courses := map[App]*course{}
	var order []App
	var nothing course
	for _, id := range jobs {
		if r.bad[id] {
			continue
		}
		key, runs, from, err := r.lessonsOf(ctx, id)
		switch {
		case err != nil:
			r.bad[id] = true
			r.log.Warn("cannot learn from a job before the next start", "job", id, "error", err)
			continue
		case len(runs) == 0:
			nothing.add(nil, from)
			continue
		}
		c := courses[key]
		if c == nil {
			c = &course{}
			courses[key], order = c, append(order, key)
		}
		c.add(runs, from)
	}
	var failed error
	if len(nothing.from.Jobs)+len(nothing.from.Short) > 0 {
		failed = r.store.TaughtNothing(ctx, nothing.from)
	}
	for _, key := range order {
		if err := r.teach(ctx, key, courses[key]); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		r.taught++
		r.revise(ctx, key)
	}
	return failed
}

// teach adds runs to the history of an application, and then reports the runs that were only partly measured or are
// not sound.
func (l *Learner) teach(ctx context.Context, key App, c *course) error {
	var report []func()
	err := l.with(ctx, key, func(h *profile.History, _ error) (*taught, error) {
		for _, r := range c.runs {
			if r.short != nil {
				if err := h.ObserveShortfall(r.app, *r.short); err != nil {
					report = append(report, func() { l.teachesNothing(r.which(), err.Error(), nil) })
				}
				continue
			}
			notes, err := h.Observe(r.app, r.run)
			notes = slices.Concat(r.run.Notes, notes)
			switch {
			case err != nil:
				report = append(report, func() { l.teachesNothing(r.which(), err.Error(), notes) })
			case len(notes) > 0:
				report = append(report, func() {
					l.log.Info("a run teaches with reservations: not all of it was measured, or is sound", "app", key.Name,
						r.which(), "notes", notes)
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
		return &taught{store.App{UID: key.UID, User: key.User, Name: key.Name, Learned: text, LearnedAt: l.now()}, c.from},
			nil
	})
	if err == nil { // Otherwise the runs teach later.
		for _, do := range report {
			do()
		}
	}
	return err
}

// teachesNothing logs a run that nothing is learned from.
func (l *Learner) teachesNothing(which slog.Attr, because string, notes []string) {
	l.log.Info("a run teaches nothing", which, "because", because, "notes", notes)
}
