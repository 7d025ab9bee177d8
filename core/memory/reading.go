package memory

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Reading is what was measured of one container.
type Reading struct {
	Container cluster.ContainerID
	// Anonymous is the memory that can only be freed by swapping it out, and Swap is what has been swapped out. Page
	// cache does not count: the kernel frees it without harm.
	Anonymous, Swap resource.Amount
	// SwapTraffic is how many bytes were swapped out and in since the container began, as far as the kernel counts them.
	SwapTraffic int64
	// Locked is the part of Anonymous that cannot be swapped out, because its programs locked it.
	Locked resource.Amount
	// Mapped is the page cache of files that the programs have mapped. Refaulted is how many bytes of mapped files were
	// read again, since the container began, soon after the kernel had dropped them: they are used again and again, as a
	// file that is read once is not.
	Mapped    resource.Amount
	Refaulted int64
	// Worked is the CPU time that the programs have used since the container began; 0 is unknown.
	Worked time.Duration
	// Pressed says that the kernel has notified, since the last reading, that the container waits for memory.
	Pressed bool
}

// NodeReading is what was measured of the node.
type NodeReading struct {
	// Memory is what the limits of all containers may add up to, bytes.
	Memory resource.Amount
	// SwapFree is how many bytes of swap may still be used: what is unused, or what the write budget allows if that is
	// less.
	SwapFree resource.Amount
	// SwapFull says that the swap devices, whatever the budget, are so full that the kernel may kill a program for the
	// next page that it touches.
	SwapFull bool
}

// SwapReserve is the unused swap space below which the swap devices of a node with the given memory count as full,
// bytes: what programs can swap out between two readings.
func SwapReserve(node resource.Amount) resource.Amount { return max(64*resource.MiB, node/64) }

// usage is the use of memory according to the readings of a container.
type usage struct {
	known bool // it has been read

	anonymous, swap resource.Amount // as in Reading, as are the next
	locked, mapped  resource.Amount
	traffic         int64
	refaulted       int64

	short    bool // out of memory at the last reading: see isShort
	thrashes bool // between the last two readings enough of its mapped files came back that it waits for them
	reuses   bool // it has thrashed: its mapped files are used again and again

	level   resource.Amount // what it held when that last changed by more than a little
	climbed moment          // it held more than level
	peak    resource.Amount // the most that it needed within Hold
	peakAt  timeline.Time
	window  window

	highest resource.Amount // the most that it held; more by less than a sixty-fourth does not count
	grewAt  timeline.Time   // when it last held more, or lacked memory
}

// demand is what the container would hold with enough memory.
func (u *usage) demand() resource.Amount { return u.anonymous + u.swap }

// needs is demand, with the mapped files that it uses again and again.
func (u *usage) needs() resource.Amount {
	if u.reuses {
		return u.demand() + u.mapped
	}
	return u.demand()
}

// window is what a container needed at the beginnings of the last two spans of a length.
type window struct {
	at          timeline.Time // when the last one began
	was, before resource.Amount
}

// see takes in what the container needs.
func (w *window) see(now timeline.Time, needs resource.Amount, length time.Duration) {
	if now.Sub(w.at) >= length {
		w.at, w.was, w.before = now, needs, w.was
	}
}

// grew is by how much more the container has come to need within one to two spans, all of it if it is younger.
func (u *usage) grew() resource.Amount { return max(0, u.peak-u.window.before) }

// isShort is the OCM heuristic (section 3.2) for a limit: memory and swap together exceed it, and there is swap
// activity. Memory is anonymous memory only; a notice of the kernel counts as activity.
func (u *usage) isShort(r *Reading, limit resource.Amount) bool {
	if r.Swap == 0 && !r.Pressed {
		return false
	}
	active := r.Pressed || u.known && (r.SwapTraffic > u.traffic || r.Swap > u.swap)
	return active && r.Anonymous+r.Swap >= limit
}

// observe takes in a reading.
func (c *container) observe(now timeline.Time, r *Reading, p *Parameters) {
	u, was := &c.usage, c.short
	c.noteProgress(now, r, p.Stall)
	u.short = c.flex() && u.isShort(r, c.limit)
	// A sixty-fourth of the limit came back since the last reading: it does not just read its files once.
	u.thrashes = u.known && r.Refaulted-u.refaulted > int64(c.limit/64)
	u.reuses = u.reuses || u.thrashes
	u.known, u.anonymous, u.swap, u.traffic = true, r.Anonymous, r.Swap, r.SwapTraffic
	u.climb(now, c.limit)
	u.locked, u.mapped, u.refaulted = r.Locked, r.Mapped, r.Refaulted
	if u.needs() >= u.peak || now.Sub(u.peakAt) >= p.Hold {
		u.peak, u.peakAt = u.needs(), now
	}
	u.window.see(now, u.needs(), p.Hold)
	if u.short && !was && !c.state.suspended() && !c.mayPage {
		c.shortSince = now
	}
	if c.wants() {
		c.lastShort = moment{now, true}
	}
	if more := u.demand() > u.highest+u.highest/64; more || c.wants() || c.state.suspended() {
		u.highest, u.grewAt = max(u.highest, u.demand()), now
	}
}

// steady reports whether the container has needed no more than before for so long that it counts as one that needs no
// more.
func (c *container) steady(now timeline.Time, p *Parameters) bool {
	return p.Steady > 0 && c.known && now.Sub(c.grewAt) >= max(p.Steady, now.Sub(c.firstSeen)/2) && !c.state.suspended()
}

// climb notes whether the container holds clearly more than before.
func (u *usage) climb(now timeline.Time, limit resource.Amount) {
	if u.demand() > u.level+limit/256 {
		u.climbed = moment{now, true}
	} else if u.demand() >= u.level {
		return
	}
	u.level = u.demand()
}
