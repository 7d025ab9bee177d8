package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/follow"
)

// No program reports which phase of its forecast it is in. Its run time alone misleads: a program that others slow
// down on the disk is in an earlier phase than its run time suggests. So a policy that looks ahead is notified of the
// phase that a task's usage shows: see profile.Follow.

// When tasks are looked at.
const (
	// followEvery is the time between two looks, and so the time until a policy is notified of a phase.
	followEvery = follow.Every
	// followPart bounds the processor time that looking takes to 1/followPart of all time: with more samples, tasks are
	// looked at less often.
	followPart = 100
)

// follow looks at the running tasks again and again until ctx ends. What it reads and computes does not hold up the
// loop.
func (d *Driver) follow(ctx context.Context) {
	if traits := d.config.Policy.Traits(); !traits.LooksAhead && !traits.Renews || d.awaitInventory(ctx) != nil {
		return
	}
	for wait := followEvery; ; {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		wait = max(followEvery, followPart*drive.Effort(func() { d.lookAtTasks(ctx) }))
	}
}

// lookAtTasks notifies the engine of tasks whose usage shows another phase, or another time in it, than their run time,
// that hold noticeably more or less memory, or whose programs leave more or less of its cores.
func (d *Driver) lookAtTasks(ctx context.Context) {
	var all []follow.Task
	if d.look(ctx, func() { all = d.followed() }) != nil {
		return // The daemon ends, or the engine hangs.
	}
	found := false
	for i := range all {
		t := &all[i]
		u, err := d.backend.Usage(t.Container)
		if err != nil {
			continue // Part of it is missing, it was not measured, or the task has ended.
		}
		found = t.See(u) || found
		if ctx.Err() != nil {
			return
		}
	}
	if found {
		_ = d.do(ctx, func() {
			for i := range all {
				d.finds(&all[i])
			}
		})
	}
}

// followed returns the tasks to look at.
func (d *Driver) followed() (all []follow.Task) {
	now, traits := d.now(), d.config.Policy.Traits()
	for _, n := range d.engine.Snapshot().Nodes {
		for _, t := range n.Tasks {
			f, ok := follow.Of(t, now, traits.LooksAhead, traits.Renews)
			if j := d.jobs[t.ID.Job]; j != nil && ok {
				if r := j.newest(t.ID); r != nil && !r.ended() {
					f.Container = r.Container
					all = append(all, f)
				}
			}
		}
	}
	return all
}

// finds notifies the engine of what was found of a task.
func (d *Driver) finds(f *follow.Task) {
	e := cluster.Event{Task: f.Container.Task, Run: f.Container.Run}
	j, r := d.lookUp(&e)
	t := d.running(j, r)
	if t == nil {
		return
	}
	if phase, since, differs := f.Phase(t, d.now()); differs {
		e := e
		e.Kind, e.Node, e.Phase = cluster.TaskPhase, t.Node.ID, phase
		e.SetCondition(cluster.Condition{Progress: &cluster.Progress{PhaseSince: since}})
		d.enters(e)
	}
	if f.Held > 0 {
		e.Kind, e.Held = cluster.TaskHolds, f.Held
		d.holds(e)
	}
	if f.Turned && t.Leaves != f.Leaves {
		d.lend(j, e.Task, f.Leaves)
	}
}
