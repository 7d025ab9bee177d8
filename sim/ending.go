package sim

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// end ends the process of a task, or the launch that was to become one.
func (r *run) end(t *task, how cluster.Outcome) {
	if how == cluster.OutOfMemory {
		r.fallShort(t)
	}
	r.stop(t, how)
	r.protocol.finished(t)
}

// stop takes a task off its node and counts how it ended.
func (r *run) stop(t *task, how cluster.Outcome) {
	if t.ordered {
		r.giveUp(t, how)
	}
	stood := time.Duration(0)
	if t.container != nil {
		stood = t.container.stood
	}
	r.letGo(t)
	t.job.early.forget(t)
	if t.throttle != nil {
		r.hinder(t, resource.Vector{}, 0)
	}
	r.still = 0
	t.result.Finished, t.result.Outcome = r.now, how
	r.grant(t.node, r.heldBy(t), resource.Vector{})
	r.use(t, resource.Vector{})
	if r.fluid && t.launched && !t.result.Coordinator {
		r.vacate(t)
	}
	if how == cluster.Succeeded {
		r.observe(t, stood)
		if !t.result.Coordinator {
			t.job.unended--
			r.inVain = 0
		}
		r.letFollowersGoOn(t)
		return
	}
	if how == cluster.Killed || how == cluster.Preempted {
		r.inVain++
	}
	if t.result.Coordinator {
		t.job.master.dead = true
	}
	r.countLoss(t, how)
}

func (r *run) countLoss(t *task, how cluster.Outcome) {
	j := &r.result.Jobs[t.job.index]
	switch how {
	case cluster.OutOfMemory:
		j.OutOfMemory++
	case cluster.Killed:
		j.Killed++
	case cluster.Preempted:
		j.Preempted++
	case cluster.Lost:
		j.Lost++
	}
	if t.launched && !t.result.Coordinator {
		j.LostWork += t.result.Finished.Sub(t.result.Launched)
	}
}

// forfeit revokes the success of a task whose node left before it could report the task's end.
func (r *run) forfeit(t *task) {
	t.result.Outcome = cluster.Lost
	if !t.result.Coordinator {
		t.job.unended++
	}
	r.countLoss(t, cluster.Lost)
}

// afterLoss applies the engine's judgement of a task that ended without success, or whose job is failing. The engine
// has already been notified of the end. The task runs again, its job starts to fail, or its job has ended with it.
func (r *run) afterLoss(t *task, how cluster.Outcome) {
	j := t.job
	state, here := r.engine.Snapshot().Job(j.ID)
	switch {
	case j.done:
		return
	case how == cluster.Succeeded: // before it could be killed with its job
	case here && !state.Status.Ended():
		j.unstarted++
		r.waiting++
		if !t.result.Coordinator {
			r.result.Jobs[j.index].Retries++
		}
	case j.failing == "":
		j.failing = r.whyFailed(t, how)
	}
	if !here {
		r.endJob(j)
	}
}

// whyFailed says why the job of t failed after the last attempt of t.
func (r *run) whyFailed(t *task, how cluster.Outcome) string {
	j := t.job
	runs := max(1, j.MaxAttempts)
	why := how.String()
	if how == cluster.OutOfMemory {
		why = fmt.Sprintf("out of memory with %s", resource.FormatMemory(t.grant[resource.Memory]))
	}
	if !j.RetryOn.After(how) {
		return fmt.Sprintf("task %d of stage %q ended %s, after which it is not tried again", t.id.Index,
			j.StageName(int(t.id.Stage)), why)
	}
	return fmt.Sprintf("task %d of stage %q ended without success in all its %d runs, the last %s", t.id.Index,
		j.StageName(int(t.id.Stage)), runs, why)
}
