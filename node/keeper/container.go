package keeper

import (
	"sync"
	"sync/atomic"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Setup is what its owner says of a container.
type Setup struct {
	ID    cluster.ContainerID
	Group *cgroup.Group
	// Grant and Envelope are those that it has when the keeper gets it.
	Grant    resource.Vector
	Envelope cluster.Envelope
	Records  Records
	// Ending is closed when it is to end, Gone when its owner watches it no longer.
	Ending, Gone <-chan struct{}
}

// Container is a control group with an envelope and a stance.
type Container struct {
	Setup
	acting  sync.Mutex // one action of the memory manager at a time
	ear     newest     // which notices are requested: see Keeper.listen
	posture *posture

	record recorded
	// ordering guards the orders that have not been carried out, and the next three.
	ordering sync.Mutex
	orders   orders
	keeping  *keeping // of a bound that is in force; nil if there is none
	outing   outing
	leveled  overstay

	fetching atomic.Bool // its memory is being fetched back: see FetchBack

	// stillness is what was last reported of it.
	stillness stillness
	// stillUntil is when its throttle should let it run again, as time since boot, ns; 0 while the throttle has not
	// stopped it.
	stillUntil atomic.Int64
}

// NewContainer returns a container that no party has stopped.
func NewContainer(s Setup) *Container {
	return &Container{Setup: s, posture: newPosture(&s)}
}

// envelope returns what the memory manager may do with the container, as it was when the keeper got it.
func (c *Container) envelope() memory.Envelope {
	return memory.Envelope{Container: c.ID, Envelope: c.Envelope}
}
