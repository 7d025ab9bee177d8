package keeper

import "time"

// fetchesWithin is how long memory is fetched back for a container that begins to work, and fetchPause how often it is
// seen whether its limit has room for that.
const (
	fetchesWithin = 10 * time.Second
	fetchPause    = 50 * time.Millisecond
)

// FetchBack reads memory of a container that begins to work back from swap, ahead of the faults of its programs, which
// run meanwhile. It begins as soon as the limit has room for all of it: the first faults have the memory manager grow
// the container, if there is memory. FetchBack does not wait.
func (k *Keeper) FetchBack(c *Container) {
	if !c.fetching.CompareAndSwap(false, true) {
		return
	}
	k.owner.Go(func() {
		defer c.fetching.Store(false)
		for until := time.Now().Add(fetchesWithin); time.Now().Before(until) && !k.fetched(c); {
			if !k.stays(c, fetchPause) {
				return
			}
		}
	})
}

// fetched fetches the memory of a container, if there is room for it, and reports whether that is done. What stands
// still gets its memory when it is resumed.
func (k *Keeper) fetched(c *Container) bool {
	return c.Stopped() == 0 && k.prefetch(k.closed, c.Group, limitOf(c.Group))
}
