package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/retention"
)

// Prune removes the ended jobs that a rule does not keep; with dry it only returns them.
func (d *Driver) Prune(ctx context.Context, keep retention.Rule, dry bool) (api.Pruned, error) {
	return d.keeping.Prune(ctx, keep, dry)
}

// Retain changes which ended jobs and which event logs are kept, and has the others removed. A segment that has ended
// at its bound stays as it is: steps are missing after its end.
func (d *Driver) Retain(keep retention.Rule) error {
	d.keeping.Change(&keep)
	return d.do(context.Background(), func() { d.events.Bound(keep.OfSegment()) })
}

// notFound says why there is no job of that number.
func (d *Driver) notFound(ctx context.Context, id cluster.JobID) error {
	if newest, err := d.store.Newest(ctx); err == nil && id > 0 && id <= newest {
		return api.Errorf(api.NotFound, "job %d: was removed after its end; `bellows up --help` says how long jobs are kept",
			id)
	}
	return api.Errorf(api.NotFound, "job %d: does not exist", id)
}
