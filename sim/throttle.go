package sim

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// throttling bounds the rates of a task in addition to its grant.
type throttling struct {
	bound resource.Vector // 0 is no bound
	until timeline.Time   // when it ends by itself; 0 if nothing is bounded
	since timeline.Time   // when the task began to be bounded without a pause; only if something is bounded
}

// throttle bounds the rates of a task. If it cannot, why says so, and nothing is bounded.
func (r *run) throttle(t *task, d *cluster.Decision) (why string) {
	if t.throttle == nil {
		t.throttle = new(throttling)
	}
	r.hinder(t, d.Bound, d.At)
	if !r.rebound(t) {
		r.hinder(t, resource.Vector{}, 0)
		r.rebound(t)
		return "in this simulation no rate is bounded"
	}
	if d.At > r.now {
		r.agenda.push(d.At, wanted, t.index)
	}
	return ""
}

// endThrottle ends the throttle of a task if its time has come.
func (r *run) endThrottle(t *task) {
	if th := t.throttle; th != nil && th.until > 0 && th.until <= r.now {
		r.hinder(t, resource.Vector{}, 0)
		r.rebound(t)
	}
}

// hinder bounds the rates of a task from now on, and counts how often and for how long it is bounded: by throttles that
// replace each other once. A zero bound ends that.
func (r *run) hinder(t *task, bound resource.Vector, until timeline.Time) {
	th, none := t.throttle, resource.Vector{}
	was, is := th.bound != none, bound != none
	switch {
	case was && !is && r.now > th.since: // a throttle that fails is taken back at once
		j := &r.result.Jobs[t.job.index]
		j.Throttles, j.Throttled = j.Throttles+1, j.Throttled+r.now.Sub(th.since)
	case is && !was:
		th.since = r.now
	}
	th.bound, th.until = bound, until
}

// rebound makes a task that runs go on within its grant and its throttle, after one of the two has changed. It
// reports false if it cannot: in a simulation that is not fluid, tasks take as long as they take.
func (r *run) rebound(t *task) bool {
	t.bound = r.caps(t)
	if t.throttle != nil {
		for k, most := range t.throttle.bound {
			if most > 0 && (t.bound[k] == 0 || most < t.bound[k]) {
				t.bound[k] = most
			}
		}
	}
	if t.result.Coordinator {
		return true // it uses no rates
	}
	if t.flow == nil {
		use := r.plainUse(t)
		switch {
		case allowedPace(&use, &t.bound) == 1:
			return true
		case !r.fluid:
			return false
		}
		r.becomeFlow(t)
	}
	if t.flow.bound = t.bound; t.ending == 0 { // else it is over
		r.reslow(t)
	}
	return true
}
