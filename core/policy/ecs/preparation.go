package ecs

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A program takes the memory of its next phase as soon as it is in it, and a driver can notice that only afterwards.
// So a task is prepared for a phase that needs more memory some time before that should begin by the forecast: it is
// granted the memory or, if that is not free, stands in line for it.
//
// Forecasts are wrong. If the phase begins earlier than the lead allows for, the memory manager of the node serves
// the container, and the task is served as soon as its phase is known. If it begins later, its memory lies idle: at
// most from the lead before the time at which the phase should have begun until as long afterwards, and not as soon
// as the task is known to be further away from the phase. The task then gives the memory back, and is not prepared
// for that phase a second time: it would stop again and again for a phase that does not come.

// lookAhead says how long before a phase should begin its task is prepared for it.
type lookAhead struct {
	least time.Duration // 0: never
	share float64       // of the length of the phase before it, unless the mean error of the forecast is known
}

func newLookAhead(s *contract.Settings) (l lookAhead) {
	l.least = s.Declare("ahead", "2s",
		"with memory=phase: how long before a phase that needs more memory should begin its task is granted that "+
			"memory, or stops if it is not "+
			"free; at most half of the phase before; 0s is not before the task is in the phase").OrNever()
	l.share = s.Declare("ahead-share", "0.1",
		"the same as a share of the length of the phase before, if that is longer than ahead; if the forecast was "+
			"learned from several runs, "+
			"their mean error is the share instead").Share()
	return l
}

// lead returns how long before a phase should begin its task is prepared for it. before is the length of the phase
// before.
func (l *lookAhead) lead(told *cluster.Provenance, before time.Duration) time.Duration {
	share := l.share
	if told.Samples > 1 {
		share = told.Error
	}
	return min(before/2, max(l.least, time.Duration(min(share, 0.5)*float64(before))))
}

// preparation is for the next phase of a task that needs more memory than the present one.
type preparation struct {
	phase int32
	left  time.Duration // until the phase should begin
	lead  time.Duration // how long before that the task is prepared
	// run time of the task at which the phase should begin, or should have begun when the task was granted its memory
	after time.Duration
	given bool // it was
}

// upcoming returns the preparation of t for the next phase that needs more memory than the given one, which t is in.
// ok is false if there is no such phase, or if t was prepared for it before.
func (d *phased) upcoming(now timeline.Time, t *book.TaskState, phase int32) (next preparation, ok bool) {
	end, known := t.UsualEnd(now)
	if !d.memory || d.ahead.least == 0 || !known {
		return preparation{}, false
	}
	stage, phases := int(t.ID.Stage), t.Stage().Phases
	stretch := float64(t.Duration) / float64(t.Stage().ForecastLength())
	has, before, rest := d.memoryIn(t.Job.Job, stage, phase), time.Duration(0), time.Duration(0)
	for i := int(phase); i < len(phases); i++ {
		lasts := time.Duration(float64(phases[i].Duration) * stretch)
		switch {
		case ok:
			rest += lasts
		case lasts > 0 && d.memoryIn(t.Job.Job, stage, int32(i)) > has:
			next.phase, rest, ok = int32(i), lasts, true
		case lasts > 0:
			before = lasts
		}
	}
	next.left, next.lead = end.Sub(now)-rest, d.ahead.lead(&t.Stage().Told, before)
	next.after = ran(now, t) + next.left
	if r := t.Resized; r != nil && !r.Failed {
		switch {
		case r.Why.Code == cluster.PhaseLate && r.Why.A > int64(next.phase):
			ok = false
		case r.Why.Code == cluster.PhaseAhead && r.Why.A == int64(next.phase)+1:
			next.after, next.given = time.Duration(r.Why.C), true
		}
	}
	return next, ok
}

// gaveUp is the run time of the task at which it gives memory back that it was granted for a phase which has not begun.
func (p *preparation) gaveUp() time.Duration {
	if !p.given {
		return math.MaxInt64
	}
	return p.after + p.lead
}

// prepared returns the preparation of t, which is in the given phase, for a later one that should begin soon; ok is
// false if there is none.
func (d *phased) prepared(now timeline.Time, t *book.TaskState, phase int32) (next preparation, ok bool) {
	next, ok = d.upcoming(now, t, phase)
	return next, ok && next.left <= next.lead && ran(now, t) < next.gaveUp()
}

// preparedFor returns the phase of which t, which is in the given phase, is granted the memory: a later one that
// should begin soon, or that phase.
func (d *phased) preparedFor(now timeline.Time, t *book.TaskState, phase int32) int32 {
	if next, ok := d.prepared(now, t, phase); ok {
		return next.phase
	}
	return phase
}

// nextPrepared returns the earliest time after now at which t, which runs and is in the given phase, is to be
// prepared for a later one, or gives up; Never if there is none.
func (d *phased) nextPrepared(now timeline.Time, t *book.TaskState, phase int32) timeline.Time {
	next, ok := d.upcoming(now, t, phase)
	switch until := next.gaveUp() - ran(now, t); {
	case ok && next.left > next.lead:
		return now.Add(next.left - next.lead)
	case ok && until > 0:
		return now.Add(until)
	}
	return timeline.Never
}

// because says why t, which is in the given phase, has another grant from now on.
func (d *phased) because(now timeline.Time, t *book.TaskState, phase int32, grant resource.Vector) cluster.Reason {
	memory, stage := grant[resource.Memory], int(t.ID.Stage)
	if next, ok := d.prepared(now, t, phase); ok {
		return cluster.BecausePhaseAhead(next.phase, memory, next.after)
	}
	if later, ok := grantedFor(t); ok && later > phase && d.memoryIn(t.Job.Job, stage, later) > d.memoryIn(t.Job.Job,
		stage, phase) {
		return cluster.BecausePhaseLate(later, memory)
	}
	return cluster.BecausePhaseDemands(phase, grant)
}

// ran returns for how long a task has run, without the time that it stood still.
func ran(now timeline.Time, t *book.TaskState) time.Duration {
	d := now.Sub(t.Launched) - t.SuspendedFor
	if t.Suspended {
		d -= now.Sub(t.SuspendedSince)
	}
	return d
}
