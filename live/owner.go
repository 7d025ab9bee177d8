package live

import (
	"context"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// Owner returns the owner of a job, which never changes. The Driver does what it is asked, whoever asks: who may ask
// for what is decided in door/server/access.go alone.
func (d *Driver) Owner(ctx context.Context, id cluster.JobID) (api.Owner, error) {
	if j := d.board.Newest().Jobs.Job(id); j != nil {
		return api.Owner{UID: j.UID, Name: j.Job.Owner}, nil
	}
	from, err := d.store.List(ctx, id-1, 1)
	switch {
	case err != nil:
		return api.Owner{}, err
	case len(from) == 0 || from[0].ID != id:
		return api.Owner{}, d.notFound(ctx, id)
	}
	return api.OwnerOf(cluster.Credentials{UID: from[0].UID, User: from[0].User}), nil
}
