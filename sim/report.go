package sim

import (
	"math"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// report is an event about a running task or a node for a policy that looks ahead. On a real machine, readings are its
// source.
type report struct {
	task  *task // nil if it is about a node
	event cluster.Event
}

// report notifies the engine of a running task, once the present happening has been handled.
func (r *run) report(t *task, e cluster.Event) {
	if !t.launched || t.result.Coordinator {
		return
	}
	e.Task, e.Node = t.id, t.node
	r.reports = append(r.reports, report{t, e})
}

// reportPhase reports the phase that a task has entered, to a policy that looks ahead. A phase of the truth is one of
// the forecast only if the forecast has as many phases; the first is reported by the launch.
func (r *run) reportPhase(t *task) {
	if !r.traits.LooksAhead || t.found != nil {
		return
	}
	forecast := t.job.Stages[t.id.Stage].Phases
	if state, here := r.engine.Snapshot().Job(t.id.Job); here && r.config.History != nil {
		forecast = state.Stages[t.id.Stage].Phases
	}
	if at := t.flow.at; at > 0 && len(t.flow.phases) == len(forecast) {
		r.report(t, cluster.Event{Kind: cluster.TaskPhase, Phase: int32(at)})
	}
}

// reportHeld reports what memory the task of a container holds, to a policy that renews reservations.
func (r *run) reportHeld(c *container) {
	held, t := c.resident+c.swapped, c.task
	if r.traits.Renews && t.launched && t.ending == 0 && t.job.Reserve == cluster.ReserveLearned &&
		book.NoticeHeld(held, c.told, t.grant[resource.Memory]) {
		c.told = held
		r.report(t, cluster.Event{Kind: cluster.TaskHolds, Held: held})
	}
}

// reportStill reports who stops a running task, if that has changed. It reports to a policy that looks ahead, where
// tasks lend what they do not use, and if the engine stops the task.
func (r *run) reportStill(t *task) {
	now := t.stillFor()
	if t.holding == nil {
		if !t.launched || !r.traits.LooksAhead && !r.config.Lends || now == 0 {
			return
		}
		t.holding = new(holding)
	}
	if t.holding.told == now {
		return
	}
	t.holding.told = now
	if now == 0 {
		r.report(t, cluster.Event{Kind: cluster.TaskResumed})
	} else {
		r.report(t, cluster.Event{Kind: cluster.TaskSuspended, By: now})
	}
}

// pressureStep is the smallest change, as a share of capacity, of what a pressed node gives that it reports.
const pressureStep = 0.05

// reportPressure reports that a node has come under pressure, or is relieved, or gives noticeably more or less.
func (r *run) reportPressure(id cluster.NodeID) {
	here := &r.nodes[id]
	now, news := resource.Vector{}, false
	for _, k := range rates {
		if has := float64(here.capacity[k]); has > 0 && here.demand[k] > here.capacity[k] {
			if gives := here.effective(k, &r.config.Machine); r.config.Machine.presses(gives, has) {
				now[k] = resource.Amount(gives)
			}
		}
		before := here.pressed[k]
		news = news || (now[k] == 0) != (before == 0) ||
			math.Abs(float64(now[k]-before)) > pressureStep*float64(here.capacity[k])
	}
	if news {
		here.pressed = now
		r.reports = append(r.reports,
			report{event: cluster.Event{Kind: cluster.NodePressed, Node: id, Found: &cluster.Condition{Bound: now}}})
	}
}

// passOn hands over the reports, except of tasks that have ended since, and of nodes that have left.
func (r *run) passOn() {
	current := r.reports[:0]
	for i := range r.reports {
		t, e := r.reports[i].task, &r.reports[i].event
		if here := !r.engine.Snapshot().Nodes[e.Node].Gone; here && (t == nil || !t.ended() && t.id == e.Task) {
			current = append(current, r.reports[i])
		}
	}
	if len(current) > 0 && r.err == nil {
		r.protocol.reported(current)
	}
	r.reports = r.reports[:0]
}
