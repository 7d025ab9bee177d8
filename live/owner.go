package live

import (
	"context"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Owner is the user to whom a job belongs. When a user is removed from the system, the uid can be given to another
// user: therefore two owners are the same user only if the names are the same, too.
//
// The Driver does what it is asked, whoever asks: who may ask for what is decided in door/server/access.go alone.
type Owner struct {
	UID  uint32
	Name string // the number of a user without a name
}

// OwnerOf returns the owner of what a user submits.
func OwnerOf(c cluster.Credentials) Owner {
	if c.User == "" {
		return Owner{c.UID, fmt.Sprint(c.UID)}
	}
	return Owner{c.UID, c.User}
}

// Owner returns the owner of a job, which never changes.
func (d *Driver) Owner(ctx context.Context, id cluster.JobID) (Owner, error) {
	if j := d.board.newest().jobs.job(id); j != nil {
		return Owner{j.UID, j.Job.Owner}, nil
	}
	from, err := d.store.List(ctx, id-1, 1)
	switch {
	case err != nil:
		return Owner{}, err
	case len(from) == 0 || from[0].ID != id:
		return Owner{}, d.notFound(ctx, id)
	}
	return OwnerOf(cluster.Credentials{UID: from[0].UID, User: from[0].User}), nil
}
