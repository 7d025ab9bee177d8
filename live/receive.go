package live

import (
	"context"
	"log/slog"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// receive handles an event of the Backend. It drops events that contradict what the Driver knows (a repeated end, an
// unknown container): the engine only sees consistent events.
func (d *Driver) receive(e cluster.Event) {
	if d.inventory.take(e) {
		if e.Kind == cluster.Synced {
			d.restore()
		}
		return
	}
	j, r := d.lookUp(&e)
	if j != nil && answers(e.Kind) {
		j.answered(&e)
	}
	if r != nil && r.launched && !r.ended() && answers(e.Kind) {
		d.wanted(j, r, e) // Its Start has been answered already.
		return
	}
	switch e.Kind {
	case cluster.DecisionDone:
		d.launched(e)
	case cluster.DecisionSuperseded:
		d.log.Debug("ignored the answer to an order of a run that has ended", "task", e.Task, "decision", e.Decision)
	case cluster.DecisionFailed, cluster.TaskEnded:
		d.ended(e)
	case cluster.TaskSuspended, cluster.TaskResumed:
		d.stands(e)
	case cluster.TaskPhase:
		d.enters(e)
	case cluster.TaskHolds:
		d.holds(e)
	case cluster.TaskPagedOut:
		d.leaves(e)
	case cluster.NodeLeft:
		d.nodeLeft(e)
		d.step(e)
	case cluster.NodeJoined, cluster.Heartbeat, cluster.NodeMemory, cluster.NodeLeftover:
		d.step(e)
	case cluster.NodePressed:
		d.step(e)
		d.pressed.raise()
	default:
		d.log.Warn("ignored unexpected event", "event", e.Kind, "task", e.Task)
	}
}

// answers reports whether an event answers an order.
func answers(k cluster.EventKind) bool {
	return k == cluster.DecisionDone || k == cluster.DecisionFailed || k == cluster.DecisionSuperseded
}

// lookUp returns the run that an event is about; nil if it is unknown.
func (d *Driver) lookUp(e *cluster.Event) (*job, *run) {
	j, ok := d.jobs[e.Task.Job]
	if !ok {
		return nil, nil
	}
	return j, j.find(cluster.ContainerID{Task: e.Task, Run: e.Run})
}

func (d *Driver) launched(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() || r.launched {
		d.log.Debug("ignored launch report for an unknown run", "container", cluster.ContainerID{Task: e.Task, Run: e.Run})
		return
	}
	d.starts(e.Node)
	r.launched, r.Started = true, e.Launched
	delete(j.faults, e.Task)
	if j.State.Started == 0 && r.Started != 0 {
		j.State.Started = r.Started
		d.out.putJob(j)
		d.log.Info("job started", "job", j.ID, "container", r.Container, "memory",
			resource.FormatMemory(r.Grant[resource.Memory]), "reason", r.Why)
	}
	d.log.Debug("container started", "job", j.ID, "container", r.Container)
	d.out.putRun(r)
	d.step(e)
	if r.still != 0 {
		d.step(cluster.Event{Kind: cluster.TaskSuspended, Task: e.Task, Run: e.Run, Node: e.Node, By: r.still})
		d.remember(j, r)
	}
	d.tell(j)
}

// ended handles the end of a run, or the failure of its start.
func (d *Driver) ended(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() {
		d.forgetUnknown(&e)
		return
	}
	if e.Kind == cluster.DecisionFailed {
		e.Outcome = cluster.Lost
	}
	if e.Outcome == cluster.Killed && r.preempts {
		e.Outcome = cluster.Preempted
	}
	if e.Kind == cluster.TaskEnded {
		d.close(j, r, &e)
		d.outgrew(j, r)
		e.Outcome = j.outcome(r)
		d.step(e)
		return
	}
	if e.Short && !r.killing {
		r.refused = true
		d.close(j, r, &e)
		d.pause(&e)
		d.step(e)
		return
	}
	d.log.Warn("cannot start container, trying again", "job", j.ID, "container", r.Container, "reason", e.Detail)
	r.refused = true
	d.close(j, r, &e)
	if d.health.broken == nil && !r.killing {
		d.holdBack(j, &e)
	}
	d.step(e)
}

// close records how a run ended.
func (d *Driver) close(j *job, r *run, e *cluster.Event) {
	j.mayHaveStarted(r, e)
	r.Outcome, r.Exit, r.Detail, r.Ended = e.Outcome, e.Exit, e.Detail, d.now()
	if e.Exit != nil && e.Exit.Ended > 0 {
		r.Ended = e.Exit.Ended
		r.Started = e.Exit.Started
	}
	if e.Kind == cluster.DecisionFailed {
		r.Started = 0 // A daemon that found the container while it started assumed that it ran.
	}
	j.superseded(r.Container.Task)
	d.out.putRun(r)
	d.out.fallShort(r.Teaches())
	d.out.forget(r.Container)
	d.touch(j.ID)
	d.counts.RunEnded(r.Outcome)
	if r.Exit != nil && r.Exit.Used > 0 {
		job := &j.Request.Job
		d.counts.Past(int64(job.Stages[r.Container.Task.Stage].Asked(job.Class)), int64(r.Grant[resource.Memory]),
			int64(r.Exit.Used))
	}
	d.logEnd(j, r)
}

// logEnd logs how a container ended. Success is not logged for each container, since a job may have thousands of tasks.
func (d *Driver) logEnd(j *job, r *run) {
	level := slog.LevelInfo
	if r.Outcome == cluster.Succeeded {
		level = slog.LevelDebug
	}
	d.log.Log(context.Background(), level, "container ended", "job", j.ID, "container", r.Container, "outcome",
		r.Outcome, "reason", r.Detail)
}

// nodeLeft records that the tasks on a node are lost; the engine does the same for itself.
func (d *Driver) nodeLeft(e cluster.Event) {
	nodes := d.engine.Snapshot().Nodes
	if int(e.Node) >= len(nodes) || nodes[e.Node].Gone {
		return
	}
	delete(d.pauses, e.Node)
	d.agenda.DropHeld(func(h *cluster.Event) bool { return h.Kind == cluster.NodeResumed && h.Node == e.Node })
	for _, t := range nodes[e.Node].Tasks {
		if j, ok := d.jobs[t.ID.Job]; ok {
			if r := j.newest(t.ID); r != nil && !r.ended() {
				d.close(j, r, &cluster.Event{Outcome: cluster.Lost, Detail: "its node left"})
			}
		}
	}
}
