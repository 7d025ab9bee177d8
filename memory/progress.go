package memory

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/timeline"
)

// Programs wait for each other: for a lock, for the other end of a pipe. One that runs and waits for one that stands still, since
// the first holds the memory that the other lacks, would wait for ever. From outside that cannot be told from sleep. So who runs and
// makes no progress, while another stands still for want of memory, yields: it comes after all others, and the memory that is taken
// from it goes to swap, but it is not kept still. A program that sleeps loses nothing by that until it wakes, and one that waits goes
// on at the speed of swap as soon as it can: two that wait for each other in turns run side by side, since to swap them in and out in
// turns would move more than they do in a turn. Once it has been awake for a while it has its place again.

// leastWork is the share of the time that a program must compute, or the share of its limit that it must have swapped within
// Parameters.Stall, to make progress.
const leastWork = 0.01

// progress is when a container last got on.
type progress struct {
	worked  time.Duration // at that time, as is traffic
	traffic int64
	at      timeline.Time
	known   bool          // somebody tells what it computes
	awake   timeline.Time // since when it has made progress, of those that yield; meaningful if awoke
	awoke   bool
	yielded int // how often it has, in a row
}

// progressed notes whether c has made progress.
func (c *container) progressed(now timeline.Time, r *Reading, stall time.Duration) {
	p := &c.progress
	p.known = r.Worked > 0
	worked := r.Worked-p.worked >= time.Duration(leastWork*float64(stall))
	swapped := float64(r.SwapTraffic-p.traffic) > leastWork*float64(c.limit)
	if !worked && !swapped && !c.suspended {
		return
	}
	p.worked, p.traffic, p.at = r.Worked, r.SwapTraffic, now
	if c.place.yields && !c.suspended && !p.awoke {
		p.awake, p.awoke = now, true
	}
}

// stalled reports whether c runs, and has made no progress for so long that it counts as asleep.
func (m *Manager) stalled(c *container) bool {
	return m.p.Stall > 0 && c.progress.known && !c.suspended && c.pending == nil && m.now >= m.stallsAt(c)
}

func (m *Manager) stallsAt(c *container) timeline.Time {
	return max(c.progress.at, c.turned).Add(m.p.Stall)
}

// awakeUntil is when c, which yields and has woken, has its place again; later each time, for what wakes again and again waits for
// another in turns.
func (m *Manager) awakeUntil(c *container) timeline.Time {
	return c.progress.awake.Add(m.p.Patience << min(c.progress.yielded-1, 6))
}

// yield has those that make no progress come after those that lack memory, and puts them back in their place again.
func (m *Manager) yield() {
	if m.p.Stall == 0 {
		return
	}
	moved := false
	for _, c := range m.ordered {
		if !c.flex() {
			continue
		}
		p := &c.progress
		switch stalled := m.stalled(c); {
		case stalled && !c.place.yields && m.waits(c):
			c.place = m.p.usual(&c.Envelope)
			c.place.yields, p.awoke, moved = true, false, true
			p.yielded++
		case stalled:
			p.awoke = false
		case c.place.yields && (p.awoke && m.now >= m.awakeUntil(c) || c.demand() <= c.limit && !m.waits(c)):
			c.place, moved = m.p.usual(&c.Envelope), true
		}
	}
	if moved {
		slices.SortFunc(m.ordered, byRank)
	}
}

// still reports whether c stands still, or yields.
func (c *container) still() bool { return c.suspended || c.place.yields }

// startsAgain is longer than who cannot start waits until it asks again.
const startsAgain = 3 * time.Second

// waits reports whether another container stands still, or pages, for want of memory, and is not being helped, or one cannot start:
// perhaps the one that all wait for.
func (m *Manager) waits(beside *container) bool {
	for _, c := range m.ordered {
		if c != beside && c.wants() && c.pending == nil && (c.pages || c.suspended && m.now.Sub(c.since) >= m.p.Settle) {
			return true
		}
	}
	return m.kept && m.now.Sub(m.keptAt) < startsAgain
}

// wakeYielding lets those that yield run on once what was to be taken from them is taken.
func (m *Manager) wakeYielding() {
	for _, c := range m.ordered {
		if c.place.yields && c.suspended && !c.tight && c.idle(m.now) && c.limit >= c.Min && m.settled(c) {
			c.pages = true
			m.ask(Resume, c, 0, Reason{Code: Yields, A: int64(c.demand()), B: int64(c.limit)})
		}
	}
}
