package sim

import "github.com/bellows-rm/bellows/cluster"

// report is what a policy that looks ahead is told of a running task, as readings of a real machine would tell it.
type report struct {
	task  *task
	event cluster.Event
}

// report tells the policy of a running task, if it looks ahead, once the present happening has been handled.
func (r *run) report(t *task, e cluster.Event) {
	if !r.looksAhead || !t.launched || t.result.Coordinator {
		return
	}
	e.Task, e.Node = t.id, t.node
	r.reports = append(r.reports, report{t, e})
}

// reportPhase reports the phase that a task has entered. A phase of the truth is one of the forecast only if the
// forecast has as many phases; the first is reported by the launch.
func (r *run) reportPhase(t *task) {
	if at := t.flow.at; at > 0 && len(t.flow.phases) == len(t.job.Stages[t.id.Stage].Phases) {
		r.report(t, cluster.Event{Kind: cluster.TaskPhase, Phase: int32(at)})
	}
}

// reportStill reports that the memory manager suspended or resumed the programs of a task.
func (r *run) reportStill(t *task, still bool) {
	if still {
		r.report(t, cluster.Event{Kind: cluster.TaskStill, By: cluster.HeldByMemory})
	} else {
		r.report(t, cluster.Event{Kind: cluster.TaskGoesOn})
	}
}

// passOn hands over the reports of tasks that have not ended since.
func (r *run) passOn() {
	running := r.reports[:0]
	for i := range r.reports {
		if t := r.reports[i].task; !t.ended() && t.id == r.reports[i].event.Task {
			running = append(running, r.reports[i])
		}
	}
	if len(running) > 0 && r.err == nil {
		r.protocol.reported(running)
	}
	r.reports = r.reports[:0]
}
