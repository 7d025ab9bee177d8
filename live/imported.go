package live

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
)

// Imported is what was learned of an application from runs that another system recorded.
type Imported struct {
	Name string `json:"name"`
	// Runs were added to the history of the application; each is of one of its stages. Known were in it already.
	Runs  int `json:"runs"`
	Known int `json:"known"`
}

// Import adds the runs of h to the histories of the applications of a user, whatever owner h states. They count as the
// latest runs. A run that is in the history already, which is one of the same stage that ended at the same time after
// the same duration, is not added again. The result has an entry for each application, by name. The error is Invalid
// for names that no application can have; what comes before them in the order of names has been added.
func (d *Driver) Import(ctx context.Context, by cluster.Credentials, h *profile.History) (all []Imported, err error) {
	runs := map[string][]lesson{}
	var names []string
	for _, app := range h.Apps() {
		if !cluster.IsName(app.Name) || app.Stage != "" && !cluster.IsName(app.Stage) {
			return nil, Errorf(Invalid, "application %q stage %q: must be names of one line and at most %d bytes",
				cluster.Clip(app.Name), cluster.Clip(app.Stage), cluster.LongestName)
		}
		if runs[app.Name] == nil {
			names = append(names, app.Name)
		}
		kept, _ := h.Runs(app)
		for _, r := range kept {
			runs[app.Name] = append(runs[app.Name],
				lesson{app: profile.App{Owner: OwnerOf(by).Name, Name: app.Name, Stage: app.Stage}, run: r})
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		key := appOf(by, name)
		news, err := d.unknownOf(ctx, key, runs[name])
		if err == nil && len(news) > 0 {
			err = d.teach(ctx, key, &course{runs: news})
		}
		if err != nil {
			return all, err
		}
		all = append(all, Imported{name, len(news), len(runs[name]) - len(news)})
		d.revise(ctx, key)
	}
	return all, nil
}

// unknownOf returns the runs that are not in the history of their application yet.
func (d *Driver) unknownOf(ctx context.Context, key ownedApp, runs []lesson) (news []lesson, err error) {
	err = d.withHistory(ctx, key, func(h *profile.History, _ error) (*taught, error) {
		for _, l := range runs {
			kept, _ := h.Runs(l.app)
			if !slices.ContainsFunc(kept, func(r profile.Run) bool {
				return r.Ended == l.run.Ended && r.Duration == l.run.Duration
			}) {
				news = append(news, l)
			}
		}
		return nil, nil
	})
	return news, err
}
