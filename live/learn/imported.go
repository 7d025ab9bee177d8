package learn

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/live/api"
)

// Import adds the runs of h, and its ends for want of memory, to the histories of the applications of a user, whatever
// owner h states. They count as the latest runs. A run that is in the history already, which is one of the same stage
// that ended at the same time after the same duration, or with the same memory, is not added again. The result has an
// entry for each application, by name; after an error, for those before it. The error is Invalid, and nothing is added,
// for names that no application can have.
func (l *Learner) Import(ctx context.Context, by cluster.Credentials,
	h *profile.History) (all []api.Imported, err error) {
	runs := map[string][]lesson{}
	var names []string
	for _, app := range h.Known() {
		if !cluster.IsName(app.Name) || app.Stage != "" && !cluster.IsName(app.Stage) {
			return nil, api.Errorf(api.Invalid, "application %q stage %q: must be names of one line and at most %d bytes",
				cluster.Clip(app.Name), cluster.Clip(app.Stage), cluster.LongestName)
		}
		if runs[app.Name] == nil {
			names = append(names, app.Name)
		}
		of := profile.App{Owner: api.OwnerOf(by).Name, Name: app.Name, Stage: app.Stage}
		kept, _ := h.Runs(app)
		for _, r := range kept {
			runs[app.Name] = append(runs[app.Name], lesson{app: of, run: r})
		}
		for _, s := range h.Shortfalls(app) {
			runs[app.Name] = append(runs[app.Name], lesson{app: of, short: &s})
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		key := AppOf(by, name)
		news, err := l.unknownOf(ctx, key, runs[name])
		if err == nil && len(news) > 0 {
			err = l.teach(ctx, key, &course{runs: news})
		}
		if err != nil {
			return all, err
		}
		all = append(all, api.Imported{Name: name, Runs: len(news), Known: len(runs[name]) - len(news)})
		l.revise(ctx, key)
	}
	return all, nil
}

// unknownOf returns the runs that are not in the history of their application yet.
func (l *Learner) unknownOf(ctx context.Context, key App, runs []lesson) (news []lesson, err error) {
	err = l.Read(ctx, key, func(h *profile.History, _ error) error {
		for _, r := range runs {
			if !r.isIn(h) {
				news = append(news, r)
			}
		}
		return nil
	})
	return news, err
}

// isIn reports whether the run is in a history already.
func (l *lesson) isIn(h *profile.History) bool {
	if l.short != nil {
		return slices.Contains(h.Shortfalls(l.app), *l.short)
	}
	kept, _ := h.Runs(l.app)
	return slices.ContainsFunc(kept, func(k profile.Run) bool {
		return k.Ended == l.run.Ended && k.Duration == l.run.Duration
	})
}
