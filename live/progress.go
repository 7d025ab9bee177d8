package live

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
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
		r.out = &api.PagedOut{Bytes: int64(c.Out), Stays: c.Stays}
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

// holds handles the event that a run holds noticeably more or less memory than before.
func (d *Driver) holds(e cluster.Event) {
	j, r := d.lookUp(&e)
	t := d.running(j, r)
	if t == nil || e.Held <= 0 || e.Held > resource.MostMemory {
		d.log.Debug("ignored what a container holds that does not run", "task", e.Task, "bytes", int64(e.Held))
		return
	}
	e.Node = t.Node.ID
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
