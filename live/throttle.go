package live

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/store"
)

// Bound is the most that a throttled task may transfer.
type Bound struct {
	Disk    int64 `json:"disk_bytes_per_s,omitempty" doc:"the most that it may read from the disk and write to it; omitted if that is not bounded"`
	Network int64 `json:"network_bytes_per_s,omitempty" doc:"the most that it may receive and send; omitted if that is not bounded"`
}

func boundOf(v resource.Vector) Bound {
	return Bound{Disk: int64(v[resource.Disk]), Network: int64(v[resource.Network])}
}

// Throttle is a bound on what a running task may use.
type Throttle struct {
	Bound
	Until   time.Time `json:"until" doc:"when it ends by itself"`
	Why     string    `json:"why,omitempty" doc:"one clause on why it was ordered"`
	How     string    `json:"how,omitempty" doc:"one clause on how it is carried out, if not by the kernel alone"`
	InForce bool      `json:"in_force" doc:"whether it has been carried out"`
	Failed  string    `json:"failed,omitempty" doc:"why it could not be carried out: then nothing is bounded"`
}

// throttleOf returns the throttle of a run at a time; nil if the run is not throttled.
func throttleOf(r *run, now timeline.Time) *Throttle {
	t := r.Throttle
	if t == nil || r.ended() || t.Until <= now {
		return nil
	}
	return &Throttle{Bound: boundOf(t.Bound), Until: instant(t.Until), Why: t.Why,
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
		d.log.Info("throttling container", "job", j.ID, "container", r.Container, "bound", decision.Bound, "until",
			clock(decision.At), "reason", r.Throttle.Why)
	}
	d.out.putRun(r)
	d.out.orders = append(d.out.orders, cluster.Order{Decision: *decision, Container: r.Container})
}

// throttled handles the answer to a throttle of a run. Only the newest throttle bounds the run.
func (d *Driver) throttled(j *job, r *run, e cluster.Event) {
	at := slices.Index(r.throttles, e.Decision)
	if at < 0 {
		d.log.Debug("ignored the answer to an unknown decision", "container", r.Container, "event", e.Kind, "decision",
			e.Decision)
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
	d.tell(j)
}

// adoptThrottle compares the stored throttle of a run with the throttle that the Backend found, which counts: an
// order may not have arrived.
func (d *Driver) adoptThrottle(r *run, e *cluster.Event) {
	was, found := store.Throttle{}, e.Condition()
	switch t := r.Throttle; {
	case t == nil || t.Failed != "":
	case t.Until > d.now():
		was = *t
	case found.Bound == resource.Vector{} && t.InForce:
		found.Bound, found.Until = t.Bound, t.Until // so that the engine knows what has slowed the task
		e.SetCondition(found)
		return
	}
	if was.Bound != found.Bound {
		d.log.Warn("the last throttle of a container did not arrive", "container", r.Container, "ordered", was.Bound,
			"found", found.Bound)
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
