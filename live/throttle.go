package live

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/store"
	"github.com/bellows-rm/bellows/timeline"
)

// Throttle is a bound on what a running task may use.
type Throttle struct {
	Disk    int64     `json:"disk_bytes_per_s,omitempty" doc:"the most that it may read from the disk and write to it; omitted if that is not bounded"`
	Network int64     `json:"network_bytes_per_s,omitempty" doc:"the most that it may receive and send; omitted if that is not bounded"`
	Until   time.Time `json:"until" doc:"when it ends by itself"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was ordered"`
	How     string    `json:"how,omitempty" doc:"one clause on how it is carried out, if not by the kernel alone"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: then nothing is bounded"`
}

// throttleOf returns the view of what throttles a run at a time; nil if nothing does.
func throttleOf(r *run, now timeline.Time) *Throttle {
	t := r.Throttle
	if t == nil || r.ended() || t.Until <= now {
		return nil
	}
	return &Throttle{Disk: int64(t.Bound[resource.Disk]), Network: int64(t.Bound[resource.Network]), Until: instant(t.Until), Why: t.Why,
		How: t.How, InForce: t.InForce, Failed: t.Failed}
}

// throttle makes the order to throttle a task.
func (d *Driver) throttle(j *job, decision *cluster.Decision) {
	r := j.newest(decision.Task)
	if r == nil || r.ended() {
		return // The engine is yet to learn that it has ended, which answers the order.
	}
	r.Throttle = &store.Throttle{Bound: decision.Bound, Until: decision.At, Why: decision.Reason.Words(clock)}
	r.throttles = append(r.throttles, decision.ID)
	d.remember(j, r)
	if (decision.Bound == resource.Vector{}) {
		d.log.Info("ending the throttle of container", "job", j.ID, "container", r.Container, "reason", r.Throttle.Why)
	} else {
		d.log.Info("throttling container", "job", j.ID, "container", r.Container, "bound", decision.Bound, "until", clock(decision.At), "reason", r.Throttle.Why)
	}
	d.out.putRun(r)
	d.out.orders = append(d.out.orders, cluster.Order{Decision: *decision, Container: r.Container})
}

// throttled takes in the answer to a throttle of a run. Only the newest says what the run is bounded by.
func (d *Driver) throttled(j *job, r *run, e cluster.Event) {
	at := slices.Index(r.throttles, e.Decision)
	if at < 0 {
		d.log.Debug("ignored the answer to an unknown decision", "container", r.Container, "event", e.Kind, "decision", e.Decision)
		return
	}
	newest := at == len(r.throttles)-1
	r.throttles = slices.Delete(r.throttles, at, at+1)
	if newest && e.Kind == cluster.DecisionSuperseded {
		d.log.Warn("ignored that the newest throttle is superseded", "container", r.Container, "decision", e.Decision)
		return
	}
	switch t := r.Throttle; {
	case !newest:
	case e.Kind == cluster.DecisionFailed:
		d.log.Warn("cannot throttle container", "job", j.ID, "container", r.Container, "reason", e.Detail)
		r.Throttle = &store.Throttle{Bound: t.Bound, Until: t.Until, Why: t.Why, Failed: e.Detail}
	case t.Bound == resource.Vector{}:
		r.Throttle = nil
	default:
		r.Throttle = &store.Throttle{Bound: t.Bound, Until: t.Until, Why: t.Why, How: e.Detail, InForce: true}
	}
	d.out.putRun(r)
	d.step(e)
	d.remember(j, r)
	j.tell()
}

// adoptThrottle compares what was ordered of a run with what the Backend found. What was found counts: an order may not
// have arrived.
func (d *Driver) adoptThrottle(r *run, e *cluster.Event) {
	was, found := store.Throttle{}, e.Condition()
	switch t := r.Throttle; {
	case t == nil || t.Failed != "":
	case t.Until > d.now():
		was = *t
	case found.Bound == resource.Vector{} && t.InForce:
		e.SetCondition(cluster.Condition{Bound: t.Bound, Until: t.Until}) // the engine is told what has slowed the task
		return
	}
	if was.Bound != found.Bound {
		d.log.Warn("the last throttle of a container did not arrive", "container", r.Container, "ordered", was.Bound, "found", found.Bound)
		was = store.Throttle{}
	}
	switch {
	case found.Bound != resource.Vector{}:
		r.Throttle = &store.Throttle{Bound: found.Bound, Until: found.Until, Why: was.Why, How: e.Detail, InForce: true}
	case r.Throttle == nil:
		return
	default:
		r.Throttle = nil
	}
	d.out.putRun(r)
}
