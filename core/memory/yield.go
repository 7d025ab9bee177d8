package memory

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Programs wait for each other: for a lock, for the other end of a pipe. A program that runs and waits for one that
// is suspended, while the first holds the memory that the other lacks, would wait for ever. From outside this looks
// like sleep. So a container that runs and makes no progress, while another is suspended for want of memory, yields:
// it comes after all others, and the memory that is taken from it goes to swap, but it is not kept suspended. A
// program that sleeps loses nothing by that until it wakes. A program that waits goes on at the speed of swap as soon
// as it can: two that wait for each other in turns run side by side, since swapping them out and in for each other
// would move more than they do in a turn. Once it has been awake for a while it is ranked again.

// leastWork is the share of the time that a program must compute, or the share of its limit that it must have swapped
// within Parameters.Stall, to make progress.
const leastWork = 0.01

// progress is when a container last made progress: computed, or swapped.
type progress struct {
	known   bool // its readings show how much it computes
	at      timeline.Time
	worked  time.Duration // at that time, as is traffic
	traffic int64
	awoke   moment // when it first made progress since it yields
	yielded int    // how often it has yielded
}

// made notes readings, and reports whether there was progress since the last: computing for some of stall, or
// swapping of some of the limit.
func (p *progress) made(r *Reading, stall time.Duration, limit resource.Amount) bool {
	p.known = r.Worked > 0
	return r.Worked-p.worked >= time.Duration(leastWork*float64(stall)) ||
		float64(r.SwapTraffic-p.traffic) > leastWork*float64(limit)
}

// noteProgress notes whether c has made progress.
func (c *container) noteProgress(now timeline.Time, r *Reading, stall time.Duration) {
	p := &c.progress
	if !p.made(r, stall, c.limit) && !c.state.suspended() {
		return
	}
	p.worked, p.traffic, p.at = r.Worked, r.SwapTraffic, now
	if c.place.standing == yielding && !c.state.suspended() && !p.awoke.happened {
		p.awoke = moment{now, true}
	}
}

// stalled reports whether c runs, and has made no progress for so long that it counts as asleep.
func (m *Manager) stalled(c *container) bool {
	return m.p.Stall > 0 && c.progress.known && !c.state.suspended() && c.pending == nil && m.now >= m.stallsAt(c)
}

func (m *Manager) stallsAt(c *container) timeline.Time {
	return max(c.progress.at, c.changedAt).Add(m.p.Stall)
}

// awakeUntil is when c, which yields and has woken, is ranked again; later each time, for a container that wakes
// again and again waits for another one in turns.
func (m *Manager) awakeUntil(c *container) timeline.Time {
	return c.progress.awoke.at.Add(m.p.Patience << min(c.progress.yielded-1, 6))
}

// updateYielding makes containers without progress yield to containers that lack memory, and ranks them again.
func (m *Manager) updateYielding() {
	if m.p.Stall == 0 {
		return
	}
	for _, c := range m.ordered {
		if !c.flex() {
			continue
		}
		p, yields := &c.progress, c.place.standing == yielding
		switch stalled := m.stalled(c); {
		case stalled && !yields && m.othersWait(c):
			at := m.p.ranked(&c.Envelope)
			at.standing = yielding
			m.move(c, at)
			p.awoke = moment{}
			p.yielded++
		case stalled:
			p.awoke = moment{}
		case yields && (p.awoke.happened && m.now >= m.awakeUntil(c) || c.demand() <= c.limit && !m.othersWait(c)):
			m.move(c, m.p.ranked(&c.Envelope))
		}
	}
	m.sort()
}

// refusedLately is longer than a container that was refused waits until it asks again.
const refusedLately = 3 * time.Second

// othersWait reports whether a container other than c is suspended, or pages, for want of memory, and is not being
// helped, or a FLEX container cannot start: all may wait for that one.
func (m *Manager) othersWait(c *container) bool {
	for _, o := range m.ordered {
		if o != c && o.wants() && !m.foreign(o, c.Owner) && o.pending == nil &&
			(o.mayPage || o.state.suspended() && m.now.Sub(o.suspendedAt) >= m.p.Settle) {
			return true
		}
	}
	return m.flexRefused.within(m.now, refusedLately)
}

// resumeYielding resumes containers that yield, once the memory that they give has been taken.
func (m *Manager) resumeYielding() {
	for _, c := range m.ordered {
		if c.place.standing == yielding && c.state.suspended() && !c.atRisk && c.ready(m.now) && c.limit >= c.Min &&
			m.settled(c) {
			c.mayPage = true
			m.order(Resume, c, 0, Reason{Code: Yields, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}
