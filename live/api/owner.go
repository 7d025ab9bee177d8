package api

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Owner is the user to whom a job belongs. When a user is removed from the system, the uid can be given to another
// user: therefore two owners are the same user only if the names are the same, too.
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
