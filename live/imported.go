package live

import (
	"context"

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

// Import adds the runs of h to the histories of the applications of a user, whatever owner h states: see learn.Import.
// The error is Invalid, and nothing is added, for names that no application can have.
func (d *Driver) Import(ctx context.Context, by cluster.Credentials, h *profile.History) (all []Imported, err error) {
	for _, app := range h.Apps() {
		if !cluster.IsName(app.Name) || app.Stage != "" && !cluster.IsName(app.Stage) {
			return nil, Errorf(Invalid, "application %q stage %q: must be names of one line and at most %d bytes",
				cluster.Clip(app.Name), cluster.Clip(app.Stage), cluster.LongestName)
		}
	}
	added, err := d.learner.Import(ctx, by, OwnerOf(by).Name, h)
	for _, a := range added {
		all = append(all, Imported(a))
	}
	return all, err
}
