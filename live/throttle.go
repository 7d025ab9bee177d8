package live

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

func boundOf(v resource.Vector) api.Bound {
	return api.Bound{Disk: int64(v[resource.Disk]), Network: int64(v[resource.Network])}
}

// throttleOf returns the throttle of a run at a time; nil if the run is not throttled.
func throttleOf(r *run, now timeline.Time) *api.Throttle {
	t := r.Throttle
	if t == nil || r.ended() || t.Until <= now {
		return nil
	}
	return &api.Throttle{Bound: boundOf(t.Bound), Until: instant(t.Until), Why: t.Why,
		How: t.How, InForce: t.InForce, Failed: t.Failed}
}

// throttleAnswered records the answer to the newest throttle of a run.
func (r *run) throttleAnswered(e *cluster.Event) {
	if r.Throttle == nil {
		return // Its end was answered before: the backend is wrong.
	}
	t := *r.Throttle // The outbox has the one before.
	switch {
	case e.Kind == cluster.DecisionFailed:
		t.Failed = e.Detail
	case t.Bound == resource.Vector{}:
		r.Throttle = nil
		return
	default:
		t.How, t.InForce = e.Detail, true
	}
	r.Throttle = &t
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
