package memory

import (
	"cmp"
	"math"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Envelope is the envelope of one container.
type Envelope struct {
	Container cluster.ContainerID
	cluster.Envelope
}

// place is where a container stands in the order in which containers are served. Containers of one job share it.
type place struct {
	yields   bool          // after all that do not: it makes no progress
	turn     int64         // of the containers whose turn it is; 0 is none, and comes after all that have one
	duration time.Duration // expected, of its job; 0 unless shortest jobs come first
	rank     int
	behind   bool // false: right before the job of that duration and rank, after a long suspension
}

// usual is where a container stands unless it was suspended for long.
func (p *Parameters) usual(e *Envelope) place {
	at := place{rank: e.Rank, behind: true}
	if p.Order == ShortestFirst {
		at.duration = e.Duration
		if at.duration <= 0 {
			at.duration = math.MaxInt64
		}
	}
	return at
}

func comparePlaces(a, b place) int {
	if a.yields != b.yields {
		if a.yields {
			return 1
		}
		return -1
	}
	if a.turn != b.turn {
		if a.turn == 0 || b.turn == 0 {
			return cmp.Compare(b.turn, a.turn)
		}
		return cmp.Compare(a.turn, b.turn)
	}
	if c := cmp.Or(cmp.Compare(a.duration, b.duration), cmp.Compare(a.rank, b.rank)); c != 0 || a.behind == b.behind {
		return c
	}
	if a.behind {
		return 1
	}
	return -1
}

// Reading is what was seen of one container.
type Reading struct {
	Container cluster.ContainerID
	// Anonymous is memory that only swap can take, and Swap what it has taken. Page cache does not count: the kernel gives
	// it back without harm.
	Anonymous, Swap resource.Amount
	// SwapTraffic is how many bytes went to and came from swap since the container began, as far as the kernel tells.
	SwapTraffic int64
	// Locked is what of Anonymous cannot be swapped out, as its programs locked it.
	Locked resource.Amount
	// Mapped is what page cache holds of files that the programs have mapped, and Refaulted how many bytes of mapped files came back, since the container
	// began, soon after the kernel had taken them away: they are used again and again, as a file that is read once is not.
	Mapped    resource.Amount
	Refaulted int64
	// Worked is the CPU time that its programs have used since the container began; 0 is unknown.
	Worked time.Duration
	// Pressed says that the kernel gave notice, since the last reading, that the container waits for memory.
	Pressed bool
}

// NodeReading is what was seen of the node.
type NodeReading struct {
	// Memory is what containers may have together, bytes.
	Memory resource.Amount
	// SwapFree is how many bytes of swap may still be used: the room that is left, or what the write budget allows if that
	// is less.
	SwapFree resource.Amount
	// SwapFull says that the swap devices, whatever the budget, have so little room left that the kernel may kill for what
	// programs touch next.
	SwapFull bool
}

// container is what the manager knows of a container.
type container struct {
	Envelope
	place   place
	began   timeline.Time   // when the manager first heard of it
	limit   resource.Amount // in force, as far as is known
	target  resource.Amount // of a resize under way; limit if none is
	pending *pending        // the action under way: nil or &act
	act     pending
	overdue []Action      // given up, but the kernel may still do them
	failed  int           // actions in a row that the kernel did not do
	alone   timeline.Time // until then it is left alone
	lent    bool          // above Min

	anonymous, swap resource.Amount
	locked, mapped  resource.Amount // of anonymous, and beside it
	traffic         int64
	refaulted       int64
	reuses          bool            // what it has mapped is used again and again
	thrashes        bool            // at the last reading more of that came back than is worth waiting for
	read            bool            // at least once
	tight           bool            // it has nearly filled its limit, and hardly anything of it could go to swap
	level           resource.Amount // what it held in memory when it last held more or less
	climbed         bool            // it has held more than before, lastly at climbedAt
	climbedAt       timeline.Time
	stuck           resource.Amount // below this it could not be taken down, until stuckUntil
	stuckUntil      timeline.Time
	stuckFor        time.Duration
	peak            resource.Amount // the most that it was seen to need lately
	peakAt          timeline.Time
	behind          resource.Amount // what those behind could give, of the present step
	short           bool            // out of memory at the last reading
	seen            timeline.Time
	shortSince      timeline.Time // since when without a break; meaningful if short or suspended
	lastShort       timeline.Time // when it last was; meaningful if everShort
	everShort       bool

	suspended bool
	unsure    bool          // the kernel has not confirmed that it is suspended or runs
	why       Reason        // of the last suspension or resumption
	pages     bool          // runs although it is out of memory
	turned    timeline.Time // last suspension or resumption, or start of a breath
	breath    timeline.Time // end of the last breath, or the suspension
	since     timeline.Time // of the suspension
	progress  progress
	stood     time.Duration // how long the last suspension was
}

// pending is an action that the kernel has not confirmed.
type pending struct {
	Action
	asked timeline.Time
	from  resource.Amount // the limit then
}

// demand is what the container would hold if it could.
func (c *container) demand() resource.Amount { return c.anonymous + c.swap }

// needs is what it would hold if it could, with the files that it uses again and again.
func (c *container) needs() resource.Amount {
	if c.reuses {
		return c.demand() + c.mapped
	}
	return c.demand()
}

// SwapReserve is the room on swap devices below which they count as full on a node of so much memory, bytes: what programs can
// swap out before anybody knows.
func SwapReserve(node resource.Amount) resource.Amount { return max(64*resource.MiB, node/64) }

// room is what the container takes of the node: the largest of the limits that are or may come into force.
func (c *container) room() resource.Amount {
	room := max(c.limit, c.target)
	for _, a := range c.overdue {
		room = max(room, a.Limit)
	}
	return room
}

// idle reports whether the kernel may be asked for something.
func (c *container) idle(now timeline.Time) bool { return c.pending == nil && now >= c.alone }

func (c *container) flex() bool { return c.Class == cluster.Flex }

// wants reports whether more memory would help the container now: it is out of memory, or suspended because it was and
// still holds more than its limit, or it has less than its least.
func (c *container) wants() bool {
	if !c.flex() || c.limit >= c.Max {
		return false
	}
	return c.short || c.tight || c.limit < c.Min || c.suspended && c.demand() > c.limit
}

// belowLeast reports whether programs run with less than their least, which is for those that stand still.
func (c *container) belowLeast() bool { return c.flex() && !c.suspended && c.limit < c.Min }

// isShort is the OCM heuristic (section 3.2): memory and swap together exceed the limit, and there is swap activity.
// Memory is anonymous memory only; a notice of the kernel counts as activity.
func (c *container) isShort(r *Reading) bool {
	if !c.flex() || r.Swap == 0 && !r.Pressed {
		return false
	}
	active := r.Pressed || c.read && (r.SwapTraffic > c.traffic || r.Swap > c.swap)
	return active && r.Anonymous+r.Swap >= c.limit
}

// observe takes over a reading.
func (c *container) observe(now timeline.Time, r *Reading, p *Parameters) {
	was := c.short
	c.progressed(now, r, p.Stall)
	c.short = c.isShort(r)
	// A sixty-fourth of the limit since the last reading: it does not merely pass through its files.
	c.thrashes = c.read && r.Refaulted-c.refaulted > int64(c.limit/64)
	c.reuses = c.reuses || c.thrashes
	c.anonymous, c.swap, c.traffic, c.read, c.seen = r.Anonymous, r.Swap, r.SwapTraffic, true, now
	c.climb(now)
	c.locked, c.mapped, c.refaulted = r.Locked, r.Mapped, r.Refaulted
	if c.needs() >= c.peak || now.Sub(c.peakAt) >= p.Hold {
		c.peak, c.peakAt = c.needs(), now
	}
	if c.short {
		if !was && !c.suspended && !c.pages {
			c.shortSince = now
		}
	}
	if c.wants() {
		c.lastShort, c.everShort = now, true
	}
}

// climb notes whether c has come to hold more than a little more in memory.
func (c *container) climb(now timeline.Time) {
	if c.anonymous > c.level+c.limit/256 {
		c.climbed, c.climbedAt = true, now
	} else if c.anonymous >= c.level {
		return
	}
	c.level = c.anonymous
}

// suspend notes that c is suspended from now on.
func (c *container) suspend(now timeline.Time) {
	c.suspended, c.turned, c.since, c.breath = true, now, now, now
	if !c.short {
		c.shortSince = now
	}
}

// holding reports whether the container was out of memory so lately that it is not shrunk.
func (c *container) holding(now timeline.Time, hold time.Duration) bool {
	return c.everShort && now.Sub(c.lastShort) < hold
}
