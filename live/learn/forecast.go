package learn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
)

// forecastPhases adds up the times of phases.
func forecastPhases(phases []cluster.Phase) (out []api.ForecastPhase) {
	at := time.Duration(0)
	for i := range phases {
		p := &phases[i]
		out = append(out, api.ForecastPhase{Name: p.Name, FromSeconds: at.Seconds(), LengthSeconds: p.Duration.Seconds(),
			CPU: int64(p.Demand[resource.CPU]), Memory: int64(p.Demand[resource.Memory]), Disk: int64(p.Demand[resource.Disk]),
			Network: int64(p.Demand[resource.Network])})
		at += p.Duration
	}
	return out
}

// Forecasts says of each stage of a job what is known of its demand over time. largest is the largest amount of each
// kind that a node has, TooMuch where that is unknown.
func (l *Learner) Forecasts(ctx context.Context, owner cluster.Credentials, j *cluster.Job,
	largest resource.Vector) (all []api.Forecast, err error) {
	err = l.Read(ctx, AppOf(owner, j.App), func(h *profile.History, unreadable error) error {
		all = forecastsBy(h, unreadable, j, largest)
		return nil
	})
	return all, err
}

func forecastsBy(h *profile.History, unreadable error, j *cluster.Job, largest resource.Vector) (all []api.Forecast) {
	for i := range j.Stages {
		s := &j.Stages[i]
		f := api.Forecast{Stage: i, Name: s.Name, DurationSeconds: s.RunTime().Seconds(), Phases: forecastPhases(s.Phases),
			Told: s.Told}
		app := profile.AppOf(j, i)
		_, f.Runs = h.Runs(app)
		for _, words := range []string{s.ReservedWords(), s.ReservedCPUWords()} {
			if words != "" {
				f.Notes = append(f.Notes, "It "+words+".")
			}
		}
		e, known := h.Estimate(app, profile.Features{Cores: profile.CoresOf(s), Input: s.Input,
			Memory: s.Ideal[resource.Memory]})
		stated := s.Told == (cluster.Provenance{})
		switch {
		case unreadable != nil:
			f.Notes = append(f.Notes, fmt.Sprintf("What earlier runs taught cannot be read (%v): the history begins anew.",
				unreadable))
		case s.Coordinator:
		case stated && len(s.Phases) > 0:
			f.Notes = append(f.Notes, "The phases are as stated with the job.")
		case j.App == "":
			f.Notes = append(f.Notes,
				"Nothing is known of its demand over time: the job has no application whose runs could be known.")
		case stated && f.Runs > 0:
			f.Notes = append(f.Notes,
				"When the job was submitted nothing was known of its demand over time: it was among the first runs of its "+
					"application.")
		case stated:
			f.Notes = append(f.Notes,
				"Nothing is known of its demand over time: no measured run of its application has succeeded before.")
		case len(s.Phases) == 0:
			f.Notes = append(f.Notes, "Only its run time is known.")
		}
		if known && !stated {
			f.Unknown = e.Variants[0].Unknown.Fields()
			f.Notes = append(f.Notes, aboutEstimate(&e)...)
		}
		f.Notes = append(f.Notes, beyond(s.Phases, largest)...)
		all = append(all, f)
	}
	return all
}

// aboutEstimate says how good an estimate is.
func aboutEstimate(e *profile.Estimate) (notes []string) {
	if len(e.Variants) > 1 {
		text := fmt.Sprintf("Its runs went %d ways, and the likeliest is expected (%.0f %% of them)", len(e.Variants),
			100*e.Variants[0].Share)
		for i := range e.Variants[1:] {
			v := &e.Variants[i+1]
			text += fmt.Sprintf("; %.0f %% took %v", 100*v.Share, v.Duration.Round(100*time.Millisecond))
			if v.Why != "" {
				text += " (" + v.Why + ")"
			}
		}
		notes = append(notes, text+".")
	}
	for _, n := range e.Notes {
		notes = append(notes, n+".")
	}
	return notes
}

// beyond says which demands no node can meet: they are not cut, and the task takes longer.
func beyond(phases []cluster.Phase, largest resource.Vector) (notes []string) {
	for k := range resource.NumKinds {
		for i := range phases {
			if why := phases[i].Beyond(k, largest[k]); why != "" {
				notes = append(notes, fmt.Sprintf("Phase %d %s: it will take longer than expected.", i+1, why))
				break
			}
		}
	}
	return notes
}

// mostDoubtful is how many doubtful runs of a stage are returned.
const mostDoubtful = 3

// Learned returns what the runs of an application taught, by stage. The error is Invalid if that cannot be read.
func (l *Learner) Learned(ctx context.Context, key App) (all []api.Learned, err error) {
	err = l.Read(ctx, key, func(h *profile.History, unreadable error) error {
		if unreadable != nil {
			return api.Errorf(api.Invalid, "what its runs taught cannot be read, and begins anew with the next run: %w",
				unreadable)
		}
		for _, app := range h.Apps() {
			all = append(all, learnedOf(h, app))
		}
		return nil
	})
	return all, err
}

func learnedOf(h *profile.History, app profile.App) api.Learned {
	runs, observed := h.Runs(app)
	last := &runs[len(runs)-1]
	l := api.Learned{Stage: app.Stage, Runs: observed, Last: drive.Instant(last.Ended), InputBytes: int64(last.Input),
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
				l.Doubtful = append(l.Doubtful, api.DoubtfulRun{Ended: drive.Instant(r.Ended), Notes: r.Notes})
			}
		}
	}
	return l
}
