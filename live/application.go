package live

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/learn"
)

// mostDoubtful is how many doubtful runs of a stage are returned.
const mostDoubtful = 3

// Learned returns what the runs of an application taught, by stage. The error is Invalid if that cannot be read.
func (d *Driver) Learned(ctx context.Context, uid uint32, user, app string) (all []api.Learned, err error) {
	key := learn.App{UID: uid, User: user, Name: app}
	err = d.learner.Read(ctx, key, func(h *profile.History, unreadable error) error {
		if unreadable != nil {
			return api.Errorf(api.Invalid, "what its runs taught cannot be read, and begins anew with the next run: %w",
				unreadable)
		}
		for _, app := range h.Apps() {
			l := learnedOf(h, app)
			l.Notes = append(l.Notes, d.unmeasured(l.Variants[0].Unknown)...)
			all = append(all, l)
		}
		return nil
	})
	return all, err
}

func learnedOf(h *profile.History, app profile.App) api.Learned {
	runs, observed := h.Runs(app)
	last := &runs[len(runs)-1]
	l := api.Learned{Stage: app.Stage, Runs: observed, Last: instant(last.Ended), InputBytes: int64(last.Input),
		CPUMillicores: int64(last.Cores), MemoryBytes: int64(last.Memory)}
	e, _ := h.Estimate(app, last.Features)
	for i := range e.Variants {
		v := &e.Variants[i]
		l.Variants = append(l.Variants, api.LearnedVariant{Share: v.Share, Runs: v.Runs, Why: v.Why,
			DurationSeconds: v.Duration.Seconds(), Phases: forecastPhases(v.Phases), Told: v.Told, Unknown: v.Unknown.Fields()})
	}
	for _, n := range e.Notes {
		l.Notes = append(l.Notes, n+".")
	}
	for i := range slices.Backward(runs) {
		if r := &runs[i]; len(r.Notes) > 0 {
			if l.DoubtfulRuns++; l.DoubtfulRuns <= mostDoubtful {
				l.Doubtful = append(l.Doubtful, api.DoubtfulRun{Ended: instant(r.Ended), Notes: r.Notes})
			}
		}
	}
	return l
}
