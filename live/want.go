package live

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// want makes the order that sets a field of what is wanted of a task.
func (d *Driver) want(j *job, decision *cluster.Decision, f cluster.WantField) {
	r := j.newest(decision.Task)
	if r == nil || r.ended() {
		return // The engine is yet to learn that it has ended, which answers the order.
	}
	r.open, r.failed[f] = append(r.open, *decision), ""
	about, why := []any{"job", j.ID, "container", r.Container}, decision.Reason.Words(clock)
	switch f {
	case cluster.WantSize:
		d.log.Debug("resizing container", append(about, "grant", decision.Grant, "reason", why)...)
	case cluster.WantHold:
		if decision.Kind == cluster.Resume {
			d.log.Info("resuming container", append(about, "reason", why)...)
			break
		}
		about = append(about, "by", decision.By, "reason", why)
		if decision.By&cluster.HeldByLeveling != 0 {
			about = append(about, "until", instant(decision.At))
		}
		d.log.Info("suspending container", about...)
	case cluster.WantBound:
		r.Throttle = &store.Throttle{Bound: decision.Bound, Until: decision.At, Why: why}
		if (decision.Bound == resource.Vector{}) {
			d.log.Info("ending the throttle of container", append(about, "reason", why)...)
			break
		}
		d.log.Info("throttling container", append(about, "bound", decision.Bound, "until", clock(decision.At), "reason",
			why)...)
	}
	if f != cluster.WantHold { // its job has that
		d.out.putRun(r)
		d.remember(j, r)
	}
	d.out.order(cluster.Order{Decision: *decision, Container: r.Container})
}

// wanted handles the answer to an order that sets a field of what is wanted of a run. What was ordered last of the
// field counts, but a run has each size that it was given.
func (d *Driver) wanted(j *job, r *run, e cluster.Event) {
	at := slices.IndexFunc(r.open, func(o cluster.Decision) bool { return o.ID == e.Decision })
	if at < 0 {
		d.log.Debug("ignored the answer to an unknown decision", "container", r.Container, "event", e.Kind, "decision",
			e.Decision)
		return
	}
	o := r.open[at]
	r.open = slices.Delete(r.open, at, at+1)
	f, _ := o.Kind.Sets()
	newest := !slices.ContainsFunc(r.open[at:], func(later cluster.Decision) bool {
		other, _ := later.Kind.Sets()
		return other == f
	})
	cannot, ignored := "cannot resize container", "ignored that the newest order is superseded"
	switch f {
	case cluster.WantHold:
		cannot = "cannot hold container still, or let it go on"
	case cluster.WantBound:
		cannot, ignored = "cannot throttle container", "ignored that the newest throttle is superseded"
	}
	switch {
	case newest && e.Kind == cluster.DecisionSuperseded:
		d.log.Warn(ignored, "container", r.Container, "decision", e.Decision)
		return
	case newest && e.Kind == cluster.DecisionFailed:
		r.failed[f] = e.Detail
		d.log.Warn(cannot, "job", j.ID, "container", r.Container, "reason", e.Detail)
	}
	switch {
	case f == cluster.WantSize && e.Kind == cluster.DecisionDone:
		r.Grant = o.Grant
	case f == cluster.WantBound && newest:
		r.throttleAnswered(&e)
	}
	if f == cluster.WantHold {
		d.step(e)
	} else {
		d.out.putRun(r)
		d.step(e)
		d.remember(j, r)
	}
	d.tell(j)
}

// adopt returns the events by which the engine takes over a run that was found running: how far it had come by what is
// stored, and what has changed about that since. What the Backend found counts: an order may not have arrived.
func (d *Driver) adopt(r *run, e cluster.Event) []cluster.Event {
	d.adoptThrottle(r, &e)
	if r.Grant != e.Grant {
		r.Grant = e.Grant
		d.out.putRun(r)
	}
	was, found := cluster.Holders(0), e.Condition()
	if found.Progress = r.Progress; r.Progress != nil {
		was = r.Progress.SuspendedBy
	}
	if found.Out > 0 { // what stays is reported again
		r.out = &api.PagedOut{Bytes: int64(found.Out)}
	}
	e.SetCondition(found)
	r.still, e.By = e.By, 0
	now := cluster.Event{Task: e.Task, Run: e.Run, Node: e.Node}
	switch {
	case r.still == was:
		return []cluster.Event{e}
	case r.still == 0:
		now.Kind = cluster.TaskResumed
	default:
		now.Kind, now.By = cluster.TaskSuspended, r.still
	}
	return []cluster.Event{e, now}
}
