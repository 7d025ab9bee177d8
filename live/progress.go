package live

import (
	"github.com/bellows-rm/bellows/cluster"
)

// How far running tasks have come: the engine learns when their programs stand still, go on or enter a phase, and the store
// keeps it for the engine after a restart.

// stands takes in that the programs of a run came to stand still, or go on. The Backend may report it before the launch.
func (d *Driver) stands(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() || r.still == e.By {
		return
	}
	if r.still = e.By; r.launched {
		d.step(e)
		d.remember(j, r)
	}
}

// enters takes in that a run has entered a phase of its forecast.
func (d *Driver) enters(e cluster.Event) {
	j, r := d.lookUp(&e)
	if r == nil || r.ended() {
		return
	}
	t := d.running(j, r)
	if t == nil || t.Still || t.Phase == e.Phase || e.Phase < 0 || int(e.Phase) >= len(t.Stage().Phases) {
		d.log.Debug("ignored that a container entered a phase", "container", r.Container, "phase", e.Phase)
		return
	}
	d.step(e)
	d.remember(j, r)
}

// running returns the engine's state of a run; nil if the engine has none that runs.
func (d *Driver) running(j *job, r *run) *cluster.TaskState {
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
	was, found := cluster.Holder(0), e.Condition()
	if found.Progress = r.Progress; r.Progress != nil {
		was = r.Progress.StillBy
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
