package book

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Throttled is the newest bound on what a running task may use of the resources that are rates.
type Throttled struct {
	// Bound is the most that the task may use of each rate; a component of 0 is no bound. It is zero from the decision to
	// end the throttle until that is carried out.
	Bound resource.Vector
	// Until is when the throttle ends by itself.
	Until timeline.Time
	// Why is the reason of the decision; a task that was found running has none.
	Why cluster.Reason
	// Decision is the newest Throttle of the task; 0 if the task was found throttled. InForce says that it was carried
	// out.
	Decision cluster.DecisionID
	InForce  bool

	earlier []cluster.DecisionID // Throttles before the newest that have not been answered
	begun   timeline.Time
	before  time.Duration // for which earlier Throttles lasted

	// A task with a known end that went on from since on at its usual pace would end at ends.
	since, ends timeline.Time
}

// Bounded returns what bounds t now, whether or not the order has been carried out yet; ok is false if t is not
// throttled, or no longer.
func (t *TaskState) Bounded(now timeline.Time) (throttled *Throttled, ok bool) {
	if t.Throttled == nil || t.Throttled.Until <= now || t.Throttled.Bound == (resource.Vector{}) {
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
	t.throttle(p.now, Throttled{Bound: bound, Until: until, Why: why, Decision: d.ID})
	p.progressed(p.now, t)
}

// throttle replaces the throttle of t by a newer one, which has not been carried out.
func (t *TaskState) throttle(now timeline.Time, newer Throttled) {
	usual := t.usualEnd(now)
	newer.begun, newer.before = now, t.ThrottledFor(now)
	if last := t.Throttled; last != nil {
		newer.earlier = last.earlier
		if !last.InForce {
			newer.earlier = append(newer.earlier, last.Decision)
		}
	}
	t.Throttled = &newer
	t.endsAt(now, usual)
}

// answersThrottle reports whether an event answers a Throttle of t.
func (t *TaskState) answersThrottle(e *cluster.Event) bool {
	th := t.Throttled
	return th != nil && e.Decision != 0 && (th.Decision == e.Decision && !th.InForce ||
		slices.Contains(th.earlier, e.Decision))
}

// answerThrottle records the answer to a Throttle of t. After the newest has failed, t is not throttled.
func (s *Snapshot) answerThrottle(now timeline.Time, t *TaskState, e *cluster.Event) error {
	th := t.Throttled
	switch {
	case e.Decision != th.Decision:
		th.earlier = slices.DeleteFunc(th.earlier, func(id cluster.DecisionID) bool { return id == e.Decision })
		return nil
	case e.Kind == cluster.DecisionSuperseded:
		return fmt.Errorf("task %s: throttle %d is superseded, but it is the newest", t.ID, e.Decision)
	}
	th.InForce = true
	if e.Kind == cluster.DecisionFailed || th.Bound == (resource.Vector{}) {
		usual := t.usualEnd(now)
		th.Bound, th.Until = resource.Vector{}, 0
		if len(th.earlier) == 0 {
			t.Throttled = nil
		}
		t.endsAt(now, usual)
	}
	s.progressed(now, t)
	return nil
}
