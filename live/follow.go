package live

import (
	"context"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/live/learn"
)

// No program reports which phase of its forecast it is in. Its run time alone misleads: a program that others slow
// down on the disk is in an earlier phase than its run time suggests. So a policy that looks ahead is notified of the
// phase that a task's usage shows: see profile.Follow.

// When tasks are looked at.
const (
	// followEvery is the time between two looks, and so the time until a policy is notified of a phase.
	followEvery = 5 * time.Second
	// followPart bounds the processor time that looking takes to 1/followPart of all time: with more samples, tasks are
	// looked at less often.
	followPart = 100
)

// The engine is notified, and decides again, if the remaining time of a task is off by more than offShare of its run
// time and by more than offLeast. If the task is in another phase, half of that is enough.
const (
	offShare = 0.1
	offLeast = 5 * time.Second
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

// looked is a task that is followed, and where it was found.
type looked struct {
	container cluster.ContainerID
	phases    []cluster.Phase
	phase     int
	into      time.Duration // of its forecast
	found     bool
	// granted and told are the memory that it is granted and that it held when that was last reported, 0 unless its
	// reservation is renewed, and held is what it holds if that is news, else 0; bytes
	granted, told, held resource.Amount
}

// see sets where a task is and what it holds by its usage so far.
func (l *looked) see(u usage.Usage) (news bool) {
	if len(l.phases) > 1 {
		l.phase, l.into, l.found = profile.Follow(l.phases, learn.Stretches(u))
	}
	if held, ok := u.Held(); ok && l.granted > 0 && book.NoticeHeld(held, l.told, l.granted) {
		l.held = held
	}
	return l.found || l.held > 0
}

// lookAtTasks notifies the engine of tasks whose usage shows another phase, or another time in it, than their run time,
// or that hold noticeably more or less memory.
func (d *Driver) lookAtTasks(ctx context.Context) {
	var all []looked
	if d.look(ctx, func() { all = d.followed() }) != nil {
		return // The daemon ends, or the engine hangs.
	}
	found := false
	for i := range all {
		t := &all[i]
		u, err := d.backend.Usage(t.container)
		if err != nil {
			continue // Part of it is missing, it was not measured, or the task has ended.
		}
		found = t.see(u) || found
		if ctx.Err() != nil {
			return
		}
	}
	if found {
		_ = d.do(ctx, func() {
			for i := range all {
				d.finds(&all[i])
				if l := &all[i]; l.held > 0 {
					d.holds(cluster.Event{Kind: cluster.TaskHolds, Task: l.container.Task, Run: l.container.Run, Held: l.held})
				}
			}
		})
	}
}

// followed returns the tasks to look at.
func (d *Driver) followed() (all []looked) {
	now, traits := d.now(), d.config.Policy.Traits()
	for _, n := range d.engine.Snapshot().Nodes {
		for _, t := range n.Tasks {
			var l looked
			if traits.LooksAhead && followable(t, now) {
				l.phases = t.Stage().Phases
			}
			if traits.Renews && t.Running && t.Job.Reserve == cluster.ReserveLearned {
				l.granted, l.told = t.WantedGrant()[resource.Memory], t.Held
			}
			if j := d.jobs[t.ID.Job]; j != nil && len(l.phases)+int(l.granted) > 0 {
				if r := j.newest(t.ID); r != nil && !r.ended() {
					l.container = r.Container
					all = append(all, l)
				}
			}
		}
	}
	return all
}

// finds notifies the engine of where a task was found, if that differs enough from where its run time puts it.
func (d *Driver) finds(l *looked) {
	e := cluster.Event{Kind: cluster.TaskPhase, Task: l.container.Task, Run: l.container.Run, Phase: int32(l.phase)}
	j, r := d.lookUp(&e)
	if !l.found || r == nil {
		return
	}
	t, now := d.running(j, r), d.now()
	if t == nil || !followable(t, now) {
		return
	}
	seems, ok := t.PhaseAt(now)
	end, known := t.UsualEnd(now)
	if !ok || !known {
		return
	}
	var total, after time.Duration
	for i := range l.phases {
		if total += l.phases[i].Duration; i > l.phase {
			after += l.phases[i].Duration
		}
	}
	stretch := float64(t.Duration) / float64(total)
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) * stretch) }
	lasts, into := scaled(l.phases[l.phase].Duration), scaled(l.into)
	seemsLeft, most := end.Sub(now)-scaled(after), max(offLeast, time.Duration(offShare*float64(t.Duration)))
	off, stays := (seemsLeft - (lasts - into)).Abs(), l.into == l.phases[l.phase].Duration
	switch told := t.Phase == e.Phase && t.PhaseSince != t.Launched; {
	case stays && told && (e.Phase != seems || seemsLeft <= followEvery):
	case stays && told && e.Phase == seems:
		return
	case e.Phase != seems && off > most/2, off > most:
	default:
		return
	}
	// The phase is longer than forecast, and its end is unknown: it lasts at least until the task seems to leave it.
	if stays {
		into = max(0, lasts-most-followEvery)
	}
	e.Node = t.Node.ID
	e.SetCondition(cluster.Condition{Progress: &cluster.Progress{PhaseSince: max(t.Launched, now.Add(-into))}})
	d.enters(e)
}

// followable reports whether a task runs and has a forecast of several phases. A stopped task enters no phase, also
// if it stands before one that needs more memory: what it used was looked at shortly before it stopped. The speed of
// a throttled task is known.
func followable(t *book.TaskState, now timeline.Time) bool {
	_, throttled := t.Bounded(now)
	return t.Running && !t.Suspended && !t.Killing && !throttled && len(t.Stage().Phases) > 1
}
