package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Order is the newest decision that set a field of what is wanted of a running task, and how it was answered: see
// cluster.Want. Resized, Hold and Throttled are the order of a field each, with what it set.
type Order struct {
	// Decision is 0 if the task was found so. InForce says that it was carried out, Failed that it failed.
	Decision        cluster.DecisionID
	InForce, Failed bool

	earlier []unanswered // decisions about the field before the newest that have not been answered
}

// unanswered is a decision without an answer; grant is that of a Resize.
type unanswered struct {
	id    cluster.DecisionID
	grant resource.Vector
}

// ordered reports whether there is an order about any field.
func (o *Orders) ordered() bool { return o.Hold != nil || o.Throttled != nil || o.Resized != nil }

// order returns the newest order about a field; nil if there is none.
func (o *Orders) order(f cluster.WantField) *Order {
	switch {
	case f == cluster.WantSize && o.Resized != nil:
		return &o.Resized.Order
	case f == cluster.WantHold && o.Hold != nil:
		return &o.Hold.Order
	case f == cluster.WantBound && o.Throttled != nil:
		return &o.Throttled.Order
	}
	return nil
}

// next is the order that a decision replaces o with. o is nil if there was none; grant is what o granted.
func (o *Order) next(id cluster.DecisionID, grant resource.Vector) Order {
	next := Order{Decision: id}
	if o != nil {
		if next.earlier = o.earlier; !o.answered() {
			next.earlier = append(next.earlier, unanswered{o.Decision, grant})
		}
	}
	return next
}

func (o *Order) answered() bool { return o.InForce || o.Failed }

func (o *Order) earlierAt(id cluster.DecisionID) int {
	return slices.IndexFunc(o.earlier, func(u unanswered) bool { return u.id == id })
}

// awaits reports whether a decision about the field has not been answered.
func (o *Order) awaits(id cluster.DecisionID) bool {
	return o != nil && id != 0 && (o.Decision == id && !o.answered() || o.earlierAt(id) >= 0)
}

// underWay reports whether an order about t other than its start has no answer yet.
func (t *TaskState) underWay() bool {
	for f := range cluster.NumWantFields {
		if o := t.order(f); o != nil && (!o.answered() || len(o.earlier) > 0) {
			return true
		}
	}
	return t.Killing
}

// answerOrder records the answer to an order about a field of what is wanted of t. Nothing follows from the answer to
// an earlier one, except for the size: that may have changed in between.
func (s *Snapshot) answerOrder(now timeline.Time, t *TaskState, f cluster.WantField, e *cluster.Event) error {
	o, done := t.order(f), e.Kind == cluster.DecisionDone
	at := o.earlierAt(e.Decision)
	switch {
	case at >= 0:
		if f == cluster.WantSize && done && !o.answered() {
			t.Resized.Was = o.earlier[at].grant
		}
		o.earlier = slices.Delete(o.earlier, at, at+1)
	case e.Kind == cluster.DecisionSuperseded:
		return fmt.Errorf("task %s: the order %d is superseded, but it is the newest", t.ID, e.Decision)
	default:
		o.InForce, o.Failed = done, !done
	}
	switch {
	case f == cluster.WantSize:
		s.regrant(now, t, t.Resized.counts())
	case at >= 0:
	case f == cluster.WantHold:
		s.answeredHold(t)
	case f == cluster.WantBound:
		s.answeredThrottle(now, t)
	}
	return nil
}

// adoptOrders takes over what was carried out last of what is wanted of a task that was found running.
func (s *Snapshot) adoptOrders(now timeline.Time, t *TaskState, found *cluster.Condition) {
	if found.Was != (resource.Vector{}) {
		t.Resized = &Resized{Order: Order{InForce: true}, Want: t.Grant, Was: found.Was, Why: found.Why,
			Since: found.Resized}
	}
	if found.Bound != (resource.Vector{}) {
		t.Throttled = &Throttled{Order: Order{InForce: true},
			Bound: cluster.Bound{Most: found.Bound, Until: found.Until}, begun: now}
	}
	if found.HeldBy != 0 || found.HoldFailed {
		t.Hold = &Hold{Order: Order{InForce: !found.HoldFailed, Failed: found.HoldFailed}, By: found.HeldBy,
			Owner: Held{PageOut: found.PageOut}}
		if found.HeldBy&cluster.HeldByLeveling != 0 {
			t.Hold.Leveling = Held{Since: found.HeldSince, Why: found.HeldWhy, Until: found.HeldUntil, For: found.HeldFor,
				PageOut: found.PageOut}
			s.leveled.note(t)
		}
		s.unmet(t.Job)
	}
}
