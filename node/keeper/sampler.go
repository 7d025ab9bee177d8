package keeper

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// When a container is read. A notice of the kernel has it read at once; kept.interval says when it is read otherwise.
const (
	soonest       = 10 * time.Millisecond // the shortest interval for a container that grows
	latest        = 5 * time.Second       // the interval of a container of which nothing is expected
	blindInterval = time.Second           // the interval where the kernel may send no notice
	// shortDeaf is how long after a notice the next one is requested. The time doubles, up to longDeaf, for each notice
	// that led to nothing, as under page cache that comes and goes.
	shortDeaf = 20 * time.Millisecond
	longDeaf  = time.Second
	// eager is the interval between readings for the time alert after a notice: the container may be nearly full, and
	// the kernel's counters of swap lag behind.
	eager = 2 * time.Millisecond
	alert = 50 * time.Millisecond
	// together is how much earlier than due a container is read when another one is read anyway.
	together = 25 * time.Millisecond
	// brim is how close to its limit a container counts as full.
	brim = resource.MiB
	// thrashing is the interval between readings of a container that fills its limit and reads its mapped files again.
	thrashing = 50 * time.Millisecond
	// fullReading is the longest time between full readings of an idle container.
	fullReading = 30 * time.Second
)

// interval returns how long after a reading, in which the container held this, it need not be read again. The first row
// that applies counts:
//
//	state of the container                          interval
//	suspended                                       blindInterval
//	a notice came less than alert ago               eager
//	full, and reads its mapped files or swap        thrashing
//	grows                                           half of the time until it is near its limit, at least soonest
//	its swap changes, or no notices are sent of it  blindInterval
//	any other                                       latest
//
// A container that grows is read at the latest when it would be read if it did not grow.
func (c *kept) interval(now time.Time, held cgroup.Held) time.Duration {
	calm := latest
	if c.blind || held.SwapBytes != c.held.SwapBytes {
		calm = blindInterval
	}
	grew := held.AnonBytes - c.held.AnonBytes
	switch {
	case c.suspended:
		return blindInterval
	case now.Before(c.alert):
		return eager
	case now.Sub(c.faulted) < blindInterval && c.charged.Bytes > int64(c.limit)/10*9:
		return thrashing
	case grew > 0:
		near := max(0, int64(c.limit)*9/10-held.AnonBytes)
		half := float64(now.Sub(c.read)) * float64(near) / float64(grew) / 2
		return max(time.Duration(min(float64(calm), half)), soonest)
	}
	return calm
}

// glance returns what the container holds. It reuses the last full reading while the charge is unchanged and below
// the limit, where memory would take the place of page cache, and the container has nothing in swap: most idle
// containers are like that, and a full reading is slow.
func (c *kept) glance(now time.Time) (cgroup.Held, error) {
	charged, err := c.gauge.Charged()
	same := err == nil && charged == c.charged && charged.Bytes < int64(c.limit-brim) && c.held.SwapBytes == 0
	if same && now.Sub(c.full) < fullReading {
		return c.held, nil
	}
	c.charged, c.full = charged, now
	return c.gauge.Read()
}
