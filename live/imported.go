package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/live/api"
)

// Import adds the runs of h to the histories of the applications of a user, whatever owner h states: see learn.Import.
// The error is Invalid, and nothing is added, for names that no application can have.
func (d *Driver) Import(ctx context.Context, by cluster.Credentials, h *profile.History) (all []api.Imported,
	err error) {
	for _, app := range h.Apps() {
		if !cluster.IsName(app.Name) || app.Stage != "" && !cluster.IsName(app.Stage) {
			return nil, api.Errorf(api.Invalid, "application %q stage %q: must be names of one line and at most %d bytes",
				cluster.Clip(app.Name), cluster.Clip(app.Stage), cluster.LongestName)
		}
	}
	added, err := d.learner.Import(ctx, by, api.OwnerOf(by).Name, h)
	for _, a := range added {
		all = append(all, api.Imported(a))
	}
	return all, err
}
