package sim

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// throttling bounds the rates of a task in addition to its grant.
type throttling struct {
	orders []cluster.Decision // not carried out yet
	bound  resource.Vector    // 0 is no bound
	until  timeline.Time      // when it ends by itself; 0 if nothing is bounded
	since  timeline.Time      // when the task began to be bounded without a pause; only if something is bounded
}

// orderThrottle takes an order to throttle a task. It is carried out at once, but after the step in which it was
// decided. The end of a task answers its orders.
func (r *run) orderThrottle(d *cluster.Decision) {
	t := r.latest(d.Task)
	if t == nil || t.ended() {
		return
	}
	if t.throttle == nil {
		t.throttle = new(throttling)
	}
	t.throttle.orders = append(t.throttle.orders, *d)
	r.agenda.push(r.now, throttled, t.index)
}

// keepThrottled carries out the next order to throttle a task, or ends its throttle if its time has come.
func (r *run) keepThrottled(t *task) {
	th := t.throttle
	switch {
	case t.ended() || th == nil:
	case len(th.orders) > 0:
		d := th.orders[0]
		th.orders = th.orders[1:]
		r.hinder(t, d.Bound, d.At)
		answer := cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: t.id, Node: t.node}
		if !r.rebound(t) {
			answer.Kind, answer.Detail = cluster.DecisionFailed, "in this simulation no rate is bounded"
			r.hinder(t, resource.Vector{}, 0)
			r.rebound(t)
		} else if d.At > r.now {
			r.agenda.push(d.At, throttled, t.index)
		}
		r.stepOne(answer)
	case th.until > 0 && th.until <= r.now:
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
	f := t.flow
	f.bound = t.bound
	switch {
	case t.ending != 0: // it is over
	case f.flexible:
		r.repace(t.container)
	default:
		here := &r.nodes[t.node]
		here.demand = here.demand.Sub(f.demand)
		f.slow(1)
		r.setPace(t, f.speed)
		here.demand = here.demand.Add(f.demand)
		r.unsettle(t.node)
	}
	return true
}
