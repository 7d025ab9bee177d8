package sim

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// pending is a decision that sets a field of what is wanted of a task, and has not been carried out.
type pending struct {
	cluster.Decision
	turn uint64 // of its item in the agenda
}

// want takes a decision that sets a field of what is wanted of a task. It is carried out after the delay of the field,
// and after the step in which it was decided. The end of a task answers its orders.
func (r *run) want(d *cluster.Decision, f cluster.WantField) {
	t := r.latest(d.Task)
	if t == nil || t.ended() {
		return
	}
	if f == cluster.WantHold && t.holding == nil {
		t.holding = new(holding)
	}
	delays := [cluster.NumWantFields]time.Duration{cluster.WantSize: r.config.ResizeDelay,
		cluster.WantHold: r.config.HoldDelay} // a bound has none
	turn := r.agenda.turn()
	t.pending = append(t.pending, pending{*d, turn})
	r.agenda.pushAt(r.now.Add(delays[f]), turn, wanted, t.index)
}

// setWanted carries out the order of an item, or ends a throttle. If another throttle is pending then, that replaces it
// without a gap.
func (r *run) setWanted(t *task, i item) {
	if t.ended() {
		return
	}
	at := slices.IndexFunc(t.pending, func(p pending) bool { return p.turn == i.seq })
	if at < 0 {
		at = slices.IndexFunc(t.pending, func(p pending) bool { return p.Kind == cluster.Throttle })
	}
	if at < 0 {
		r.endThrottle(t)
		return
	}
	d, why := t.pending[at].Decision, ""
	t.pending = slices.Delete(t.pending, at, at+1)
	field, _ := d.Kind.Sets()
	switch field {
	case cluster.WantSize:
		if why = r.resize(t, &d); why == "" {
			r.result.Jobs[t.job.index].Resizes++
		}
	case cluster.WantHold:
		why = r.holdFor(t, &d)
	case cluster.WantBound:
		why = r.throttle(t, &d)
	}
	answer := cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: t.id, Node: t.node}
	if why != "" {
		answer.Kind, answer.Detail = cluster.DecisionFailed, why
	}
	r.stepOne(answer)
	if field == cluster.WantHold && why == "" {
		r.reportStill(t)
	}
}
