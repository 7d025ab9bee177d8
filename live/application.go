package live

import (
	"context"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/live/learn"
)

// Learned is what the runs of one stage of an application taught.
type Learned struct {
	Stage string    `json:"stage,omitempty"` // empty for an application of one stage
	Runs  int       `json:"runs"`            // that were observed
	Last  time.Time `json:"last"`            // when the latest of them ended
	// InputBytes, CPUMillicores and MemoryBytes are those of the latest run, and the variants are estimates for a run
	// with the same values. 0 is unknown.
	InputBytes    int64 `json:"input_bytes,omitempty"`
	CPUMillicores int64 `json:"cpu_millicores,omitempty"`
	MemoryBytes   int64 `json:"memory_bytes,omitempty"`
	// Variants are the ways in which runs went, the likeliest first.
	Variants []LearnedVariant `json:"variants"`
	Notes    []string         `json:"notes,omitempty"`
	// Doubtful are the latest kept runs that were not measured completely or are not sound, the latest first;
	// DoubtfulRuns is the number of all of them.
	Doubtful     []DoubtfulRun `json:"doubtful,omitempty"`
	DoubtfulRuns int           `json:"doubtful_runs,omitempty"`
}

// DoubtfulRun is a run that taught, although it was not measured completely or is not sound.
type DoubtfulRun struct {
	Ended time.Time `json:"ended"`
	Notes []string  `json:"notes"` // a sentence each
}

// mostDoubtful is how many doubtful runs of a stage are returned.
const mostDoubtful = 3

// LearnedVariant is one way in which runs go.
type LearnedVariant struct {
	Share           float64            `json:"share"`
	Runs            int                `json:"runs"`
	Why             string             `json:"why,omitempty"` // how it differs from the likeliest
	DurationSeconds float64            `json:"duration_s"`
	Phases          []ForecastPhase    `json:"phases,omitempty"`
	Told            cluster.Provenance `json:"told"`
	// Unknown are the kinds of resources that were measured in no run.
	Unknown []string `json:"unknown,omitempty"`
}

// Learned returns what the runs of an application taught, by stage. The error is Invalid if that cannot be read.
func (d *Driver) Learned(ctx context.Context, uid uint32, user, app string) (all []Learned, err error) {
	key := learn.App{UID: uid, User: user, Name: app}
	err = d.learner.Read(ctx, key, func(h *profile.History, unreadable error) error {
		if unreadable != nil {
			return Errorf(Invalid, "what its runs taught cannot be read, and begins anew with the next run: %w", unreadable)
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

func learnedOf(h *profile.History, app profile.App) Learned {
	runs, observed := h.Runs(app)
	last := &runs[len(runs)-1]
	l := Learned{Stage: app.Stage, Runs: observed, Last: instant(last.Ended), InputBytes: int64(last.Input),
		CPUMillicores: int64(last.Cores), MemoryBytes: int64(last.Memory)}
	e, _ := h.Estimate(app, last.Features)
	for i := range e.Variants {
		v := &e.Variants[i]
		l.Variants = append(l.Variants, LearnedVariant{Share: v.Share, Runs: v.Runs, Why: v.Why,
			DurationSeconds: v.Duration.Seconds(), Phases: forecastPhases(v.Phases), Told: v.Told, Unknown: v.Unknown.Fields()})
	}
	for _, n := range e.Notes {
		l.Notes = append(l.Notes, n+".")
	}
	for i := range slices.Backward(runs) {
		if r := &runs[i]; len(r.Notes) > 0 {
			if l.DoubtfulRuns++; l.DoubtfulRuns <= mostDoubtful {
				l.Doubtful = append(l.Doubtful, DoubtfulRun{instant(r.Ended), r.Notes})
			}
		}
	}
	return l
}
