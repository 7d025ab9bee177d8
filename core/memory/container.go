package memory

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Envelope is the envelope of one container.
type Envelope struct {
	Container cluster.ContainerID
	cluster.Envelope
}

// container is what the manager knows of a container. What happens to it depends on its state and on what it lacks:
//
//	            holds less than its limit      short                            at risk of being killed
//	running     may be grown ahead of need,    grown, or else suspended,        grown, or else suspended at once
//	            gives slack back               unless it may page
//	suspended   resumed                        grown, until it fits; resumed    grown; resumed when it is not at risk
//	                                           to page if that cannot be
type container struct {
	Envelope
	place         place
	state         state
	stateReason   Reason // of the last suspension or resumption
	orders               // the actions that the kernel was asked for
	usage                // what its readings say
	progress      progress
	firstSeen     timeline.Time
	limit, target resource.Amount // in force, as far as is known; of the resize under way, else limit
	floor         floor
	out           bool // its memory is paged out: see Out
	grown         bool // the last resize left it above Min
	allowance          // what it may do without the memory that it lacks
	atRisk        bool // the kernel would kill it for the next page: see findAtRisk

	shortSince timeline.Time // since when it has been short without a break; meaningful if short or suspended
	lastShort  moment        // when it last wanted memory, or was given some ahead of need

	changedAt      timeline.Time // last suspension or resumption
	suspendedAt    timeline.Time // last suspension
	breathedAt     timeline.Time // end of the last breath, or the suspension
	lastSuspension time.Duration // how long the last suspension was
}

// allowance is what a container may do or not that lacks memory, until its limit changes, and what it keeps.
type allowance struct {
	mayPage bool // no memory can be had for it: it is suspended only if it is at risk
	runsOn  bool // no memory can be had for it by any means: it runs, at risk or not
	held    bool // it waits for the ends of others, whatever its place: see bank
	// reserve is with what it came back after it was requeued, bytes; 0 if it was not.
	reserve resource.Amount
	owed    resource.Amount // what is owed to it within the share of its owner, bytes: see share.go
}

// end ends what it may do.
func (a *allowance) end() { a.mayPage, a.runsOn, a.held, a.owed = false, false, false, 0 }

// covers reports whether a container that holds the given memory keeps to what it came back with.
func (a *allowance) covers(holds resource.Amount) bool { return a.reserve > 0 && holds <= a.reserve }

// room is what the container takes of the node's memory: the largest of the limits that are or may come into force.
func (c *container) room() resource.Amount {
	room := max(c.limit, c.target)
	for _, a := range c.overdue {
		room = max(room, a.Limit)
	}
	return room
}

// flex reports whether the manager may change the limit of the container and suspend it.
func (c *container) flex() bool { return c.Class == cluster.Flex && !c.out }

// inactive reports whether c is suspended or yields: its memory is not in use, or not by a program that makes progress.
func (c *container) inactive() bool { return c.state.suspended() || c.place.standing == yielding }

// wants reports whether more memory would help the container now: it is short or at risk, or suspended because it was
// and still holds more than its limit, or it has less than its Min.
func (c *container) wants() bool {
	if !c.flex() || c.limit >= c.Max && !c.atRisk {
		return false
	}
	return c.short || c.atRisk || c.limit < c.Min || c.state.suspended() && c.demand() > c.limit
}

// belowMin reports whether programs run with less than their Min, which only suspended programs may have.
func (c *container) belowMin() bool { return c.flex() && !c.state.suspended() && c.limit < c.Min }

// fillsSwap reports whether c has all the memory that it may have, and lately held more and more.
func (c *container) fillsSwap(now timeline.Time, hold time.Duration) bool {
	return c.flex() && c.limit >= c.Max && c.demand() >= c.limit && (c.climbed.within(now, hold) || c.state.suspended())
}

// lacks is how far the limit of c is below what c holds in memory and swap.
func (c *container) lacks() resource.Amount {
	return max(0, max(c.Min, min(c.demand(), c.Max))-c.limit)
}

// keeps reports whether the container was short so recently that it is not shrunk.
func (c *container) keeps(now timeline.Time, hold time.Duration) bool {
	return c.lastShort.within(now, hold)
}
