package memory

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// orders are the actions on one container that the kernel was asked for, one at a time.
//
//	         order                  done
//	ready ──────────▶ under way ──────────────▶ ready
//	  ▲                   │ failed, or not answered within ActionTimeout
//	  │                   ▼
//	  └──────────── backing off
//	  RetryAfter, twice as long for each failure in a row
//
// A Kill does not wait until the action under way is over. A resize that was given up is overdue: it may still
// come into force.
type orders struct {
	pending  *underWay // under way; nil or &slot
	slot     underWay
	overdue  []Action // resizes that were given up
	failures int      // in a row
	retryAt  timeline.Time
}

// underWay is an action that the kernel has not answered yet.
type underWay struct {
	Action
	at   timeline.Time   // when it was ordered
	from resource.Amount // the limit then
}

// ready reports whether the kernel may be asked for something.
func (o *orders) ready(now timeline.Time) bool { return o.pending == nil && now >= o.retryAt }

// leaving reports whether the container is to end.
func (o *orders) leaving() bool { return o.doing(Kill) || o.doing(End) }

// doing reports whether an action of that kind is under way.
func (o *orders) doing(kind ActionKind) bool { return o.pending != nil && o.pending.Kind == kind }

// floor is the limit below which the last attempts to shrink a container have failed.
type floor struct {
	limit resource.Amount
	until timeline.Time // when it is tried again
	wait  time.Duration // from the last failure to until; 0 after a success
}

// failed notes a limit below which the container could not be shrunk: it is tried again after a second, and then after
// twice as long each time, up to most.
func (f *floor) failed(at resource.Amount, now timeline.Time, most time.Duration) {
	wait := min(max(time.Second, 2*f.wait), most)
	*f = floor{limit: at, until: now.Add(wait), wait: wait}
}

// succeeded notes that the container could be shrunk.
func (f *floor) succeeded() { f.wait = 0 }

// now is the limit; 0 if it is to be tried again.
func (f *floor) now(now timeline.Time) resource.Amount {
	if now < f.until {
		return f.limit
	}
	return 0
}

// order asks the kernel for an action and notes the state that it leads to.
func (m *Manager) order(kind ActionKind, c *container, limit resource.Amount, why Reason) {
	m.send(kind, c, limit, why)
	switch kind {
	case Grow, Shrink:
		c.target = limit
		c.allowance.end()
		c.grown = limit > c.Min
	case Suspend:
		c.suspend(m.now, why)
	case Resume:
		c.resume(m.now, why)
		if c.place.standing == promoted { // the order follows when it is next sorted
			c.place = m.p.ranked(&c.Envelope)
		}
	case Breathe:
		c.breathedAt = m.now.Add(m.p.BreathOf(c.HeartbeatTimeout))
	}
}

// send adds an action to those of this step and marks it as under way.
func (m *Manager) send(kind ActionKind, c *container, limit resource.Amount, why Reason) {
	m.lastID++
	m.counted = false
	a := Action{ID: m.lastID, Kind: kind, Container: c.Container, Limit: limit, Suspended: c.state.suspended(),
		Reason: why}
	m.actions = append(m.actions, a)
	m.giveUp(c)
	c.slot = underWay{a, m.now, c.limit}
	c.pending = &c.slot
	m.acting[a.ID] = c
}

// giveUp stops waiting for the action under way.
func (m *Manager) giveUp(c *container) {
	switch {
	case c.pending == nil:
	case c.doing(Grow) || c.doing(Shrink):
		c.overdue = append(c.overdue, c.pending.Action)
	default:
		delete(m.acting, c.pending.ID)
	}
}

// takeOutcome takes in the result of an action.
func (m *Manager) takeOutcome(o *Outcome) {
	c, ok := m.acting[o.Action]
	if !ok {
		return
	}
	delete(m.acting, o.Action)
	late := c.pending == nil || c.pending.ID != o.Action
	if !late {
		c.noteFloor(o, m.now, m.p.ActionTimeout)
	}
	if o.Limit > 0 {
		// The kernel carries out one action after the other: actions ordered before this one will not come into force any
		// more.
		c.limit = o.Limit
		c.overdue = slices.DeleteFunc(c.overdue, func(a Action) bool {
			if a.ID <= o.Action {
				delete(m.acting, a.ID)
			}
			return a.ID <= o.Action
		})
	}
	switch {
	case late && c.pending == nil:
		c.target = c.limit
	case late:
	case c.leaving() && !o.Failed: // under way until the container has ended
	default:
		m.finish(c, o.Failed)
	}
}

// noteFloor notes the limit to which the Shrink under way could not lower c: less than an eighth of the requested
// memory came free.
func (c *container) noteFloor(o *Outcome, now timeline.Time, most time.Duration) {
	if !c.doing(Shrink) || o.Limit <= c.pending.Limit {
		return
	}
	if was := c.pending.from; was-o.Limit >= (was-c.pending.Limit)/8 {
		c.floor.succeeded()
		return
	}
	c.floor.failed(o.Limit, now, most)
}

// finish ends the action under way of c.
func (m *Manager) finish(c *container, failed bool) {
	kind := c.pending.Kind
	c.pending, c.target = nil, c.limit
	m.counted = false
	c.grown = c.limit > c.Min
	if kind != Grow && kind != Kill && kind != End {
		if c.state.inDoubt() {
			c.changedAt = m.now // it changed now at the latest: even an action that failed may have changed it
		}
		c.state = c.state.to(verdict(failed))
	}
	if failed {
		c.retryAt = m.now.Add(m.p.RetryAfter << min(c.failures, 6))
		c.failures++
		return
	}
	c.failures = 0
	if kind == Grow {
		c.short = false // the next reading will say whether it still is
	}
}

// verdict is the stimulus that follows from an answer.
func verdict(failed bool) stimulus {
	if failed {
		return denied
	}
	return confirm
}

// expireOrders gives up actions that the kernel does not finish in time.
func (m *Manager) expireOrders() {
	for _, c := range m.ordered {
		if c.pending != nil && m.now.Sub(c.pending.at) >= m.p.ActionTimeout {
			m.giveUp(c)
			m.finish(c, true)
		}
	}
}

// orderAgain repeats the orders for states that are in doubt.
func (m *Manager) orderAgain() {
	for _, c := range m.ordered {
		if !c.state.inDoubt() || c.out || !c.ready(m.now) {
			continue
		}
		kind := Resume
		if c.state.suspended() {
			kind = Suspend
		}
		m.send(kind, c, 0, c.stateReason)
	}
}
