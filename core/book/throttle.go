package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Throttled is the newest bound on what a running task may use of the resources that are rates.
type Throttled struct {
	Order
	// Most is zero from the decision to end the throttle until that is carried out.
	cluster.Bound
	// Why is the reason of the decision; a task that was found running has none.
	Why cluster.Reason

	begun  timeline.Time
	before time.Duration // for which earlier Throttles lasted

	// A task with a known end that went on from since on at its usual pace would end at ends.
	since, ends timeline.Time
}

// Bounded returns what bounds t now, whether or not the order has been carried out yet; ok is false if t is not
// throttled, or no longer.
func (t *TaskState) Bounded(now timeline.Time) (throttled *Throttled, ok bool) {
	if t.Throttled == nil || !t.Throttled.Lasts(now) {
		return nil, false
	}
	return t.Throttled, true
}

// ThrottledFor returns for how long t was throttled until now, from the decisions on, by all its throttles. What an
// earlier engine saw of them does not count.
func (t *TaskState) ThrottledFor(now timeline.Time) time.Duration {
	if t.Throttled == nil {
		return 0
	}
	return t.Throttled.before + max(0, min(now, t.Throttled.Until).Sub(t.Throttled.begun))
}

// Throttle bounds what a running task may use of each rate until the given time, when the throttle ends by itself. A
// component of 0 is no bound, and a zero bound ends the throttle. A later Throttle of the task replaces an earlier one;
// if that was not carried out yet, it is answered with DecisionSuperseded. A Throttle of a task that is being killed is
// ignored, and so is an end while the task has no throttle.
func (p *Plan) Throttle(t *TaskState, bound resource.Vector, until timeline.Time, why cluster.Reason) {
	ends := bound == resource.Vector{}
	if _, throttled := t.Bounded(p.now); t.Killing || ends && !throttled {
		return
	}
	for k, most := range bound {
		if kind := resource.Kind(k); most < 0 || most > 0 && !kind.IsRate() {
			p.fail("throttle task %s to %d of %s: only rates can be bounded, by 0 or more", t.ID, most, kind)
			return
		}
	}
	switch {
	case !t.Running:
		p.fail("throttle task %s: it is not running", t.ID)
		return
	case !ends && (until <= p.now || until == timeline.Never):
		p.fail("throttle task %s until %v: must be after now, %v, and not for ever", t.ID, until, p.now)
		return
	case ends:
		until = 0
	}
	d := p.add(cluster.Throttle, t.ID, t.Node.ID, why)
	d.Bound, d.At = bound, until
	newer := Throttled{Order: t.order(cluster.WantBound).next(d.ID, resource.Vector{}),
		Bound: cluster.Bound{Most: bound, Until: until}, Why: why, begun: p.now, before: t.ThrottledFor(p.now)}
	usual := t.usualEnd(p.now)
	t.Throttled = &newer
	t.endsAt(p.now, usual)
	p.progressed(p.now, t)
}

// answeredThrottle is what follows from the answer to the newest Throttle of t. After a failure, t is not throttled.
func (s *Snapshot) answeredThrottle(now timeline.Time, t *TaskState) {
	if th := t.Throttled; th.Failed || th.Most == (resource.Vector{}) {
		usual := t.usualEnd(now)
		if th.Bound = (cluster.Bound{}); len(th.earlier) == 0 {
			t.Throttled = nil
		}
		t.endsAt(now, usual)
	}
	s.progressed(now, t)
}
