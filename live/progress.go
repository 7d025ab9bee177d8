package live

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
)

// Progress of running tasks: the engine is notified when their programs are stopped, are resumed or enter a phase,
// and the store keeps it for the engine after a restart.

// stands handles the event that the programs of a run were stopped or resumed. The Backend may report it before the
// launch.
func (d *Driver) stands(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() || r.still == e.By {
		return
	}
	d.tell(j)
	if r.still = e.By; r.launched {
		d.step(e)
		d.remember(j, r)
	}
}

// leaves handles the event that memory of a run has left its node, or is back.
func (d *Driver) leaves(e cluster.Event) {
	j, r := d.lookUp(&e)
	if d.running(j, r) == nil {
		d.log.Debug("ignored that memory of a container that does not run has left", "task", e.Task)
		return
	}
	c := e.Condition()
	if r.out = nil; c.Out > 0 || c.Stays != "" {
		r.out = &PagedOut{Bytes: int64(c.Out), Stays: c.Stays}
	}
	d.log.Debug("memory of a container has left, or is back", "job", j.ID, "container", r.Container, "out", int64(c.Out),
		"stays", c.Stays)
	d.step(e)
	d.tell(j)
}

// enters handles the event that a run has entered a phase of its forecast.
func (d *Driver) enters(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() {
		return
	}
	t := d.running(j, r)
	if t == nil {
		d.log.Debug("ignored that a container that does not run entered a phase", "container", r.Container, "phase", e.Phase)
		return
	}
	if err := t.CheckPhase(d.now(), &e); err != nil {
		d.log.Debug("ignored that a container entered a phase", "container", r.Container, "error", err)
		return
	}
	d.step(e)
	d.remember(j, r)
}

// running returns the engine's state of a run; nil if the engine has none that runs, or if r is nil.
func (d *Driver) running(j *job, r *run) *book.TaskState {
	if r == nil {
		return nil
	}
	state := d.engineJob(j)
	if state == nil || !r.launched || r.ended() {
		return nil
	}
	for _, t := range state.Tasks {
		if t.ID == r.Container.Task && t.Running {
			return t
		}
	}
	return nil
}

// remember stores how far a run has come.
func (d *Driver) remember(j *job, r *run) {
	if t := d.running(j, r); t != nil {
		p := t.Progress()
		r.Progress = &p
		d.out.putRun(r)
	}
}

// adopt returns the events by which the engine takes over a run that was found running: how far it had come by what is
// stored, and what has changed about that since.
func (d *Driver) adopt(r *run, e cluster.Event) []cluster.Event {
	d.adoptThrottle(r, &e)
	d.adoptGrant(r, &e)
	was, found := cluster.Holders(0), e.Condition()
	if found.Progress = r.Progress; r.Progress != nil {
		was = r.Progress.StillBy
	}
	if found.Out > 0 { // what stays is reported again
		r.out = &PagedOut{Bytes: int64(found.Out)}
	}
	e.SetCondition(found)
	r.still, e.By = e.By, 0
	now := cluster.Event{Task: e.Task, Run: e.Run, Node: e.Node}
	switch {
	case r.still == was:
		return []cluster.Event{e}
	case r.still == 0:
		now.Kind = cluster.TaskGoesOn
	default:
		now.Kind, now.By = cluster.TaskStill, r.still
	}
	return []cluster.Event{e, now}
}
