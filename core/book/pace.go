package book

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// pace is how fast a throttled task runs, as a share of its usual pace, from 0 to 1. Per unit of progress a task
// demands what was forecast, at any pace, so the smallest ratio of bound to demand decides. A bound above the demand
// slows nothing. A task without a forecast demands its grant.
func pace(demand, bound *resource.Vector) float64 {
	slowest := 1.0
	for k, most := range bound {
		if most > 0 && demand[k] > most {
			slowest = min(slowest, float64(most)/float64(demand[k]))
		}
	}
	return slowest
}

// phaseWith returns the phase in which a task has the given time left to run at its usual pace, and how much of that
// time belongs to the phase. Phases are stretched or shortened as the whole task is. ok is false if the task has no
// forecast of some length.
func (t *TaskState) phaseWith(left time.Duration) (phase int32, of time.Duration, ok bool) {
	phases := t.Stage().Phases
	total := sumPhases(phases)
	if total == 0 || t.Duration == 0 {
		return 0, left, false
	}
	stretch := float64(t.Duration) / float64(total)
	for i := len(phases) - 1; i > 0; i-- {
		length := time.Duration(float64(phases[i].Duration) * stretch)
		if left <= length && length > 0 {
			return int32(i), left, true
		}
		left -= length
	}
	return 0, left, true
}

// walk follows a throttled task, which has the given time left to run at its usual pace, from one time until another or
// until it ends. It returns the time at which it stopped, and the time left to run then.
func (t *TaskState) walk(from timeline.Time, left time.Duration, until timeline.Time) (at timeline.Time,
	rest time.Duration) {
	th := t.Throttled
	for from < min(until, th.Until) && left > 0 {
		phase, part, ok := t.phaseWith(left)
		demand := &t.Grant
		if ok {
			demand = &t.Stage().Phases[phase].Demand
		}
		share := pace(demand, &th.Most)
		lasts, most := float64(part)/share, min(until, th.Until).Sub(from)
		if lasts >= float64(most) {
			from, left = from.Add(most), left-min(left, time.Duration(float64(most)*share))
			break
		}
		from, left = from.Add(max(1, time.Duration(lasts))), left-part
	}
	if left > 0 && from < until {
		most := min(left, until.Sub(from))
		from, left = from.Add(most), left-most
	}
	return from, left
}

// usualEnd returns when a task would end if from now on it went on at its usual pace; Never if its end is unknown.
func (t *TaskState) usualEnd(now timeline.Time) timeline.Time {
	th := t.Throttled
	switch {
	case t.end == timeline.Never:
		return timeline.Never
	case th == nil && t.Suspended:
		return t.end.Add(max(0, now.Sub(t.SuspendedSince)))
	case th == nil:
		return t.end
	case th.ends <= th.since:
		return th.ends // it was overdue
	}
	until := now
	if t.Suspended {
		until = min(now, t.SuspendedSince)
	}
	at, left := t.walk(th.since, th.ends.Sub(th.since), until)
	if left > 0 {
		at = now.Add(left)
	}
	return at
}

// slowedEnd returns when a throttled task ends. usual is when it would end at its usual pace from now on.
func (t *TaskState) slowedEnd(now, usual timeline.Time) timeline.Time {
	if usual <= now {
		return usual
	}
	end, _ := t.walk(now, usual.Sub(now), timeline.Never)
	return end
}

// endsAt sets the end of a task whose end is known. usual is when it would end at its usual pace from now on; a
// throttled task ends later.
func (t *TaskState) endsAt(now, usual timeline.Time) {
	if t.end == timeline.Never {
		return
	}
	t.end = usual
	if th := t.Throttled; th != nil {
		th.since, th.ends = now, usual
		t.end = t.slowedEnd(now, usual)
	}
	if t.Suspended && now > t.SuspendedSince {
		t.end = t.end.Add(t.SuspendedSince.Sub(now)) // if it had gone on then
	}
}

// UsualEnd returns when a task should end if it ran at its usual pace from now on: earlier than EstimatedEnd while it
// is throttled. ok is false if its run time is unknown.
func (t *TaskState) UsualEnd(now timeline.Time) (end timeline.Time, ok bool) {
	if end = t.usualEnd(now); end != timeline.Never && t.Waits {
		end = max(end, now.Add(t.AfterFirst()))
	}
	return max(now, end), end != timeline.Never
}

// PhaseAt returns the phase of its forecast that a running task is in: the one that was last reported, or a later one
// if that should have begun since. The time that the task stood still does not count, and time in which it is
// throttled counts as much as its pace. ok is false if it has no forecast.
func (t *TaskState) PhaseAt(now timeline.Time) (phase int32, ok bool) {
	if !t.Running || t.end == timeline.Never {
		return 0, false
	}
	if t.Waits {
		return t.Phase, t.Stage().ForecastLength() > 0 && t.Duration > 0
	}
	phase, _, ok = t.phaseWith(t.usualEnd(now).Sub(now))
	return max(phase, t.Phase), ok
}

// EnteredAt returns when a running task entered a phase that PhaseAt returns at the same time. If that was not
// reported, it is when the task would have entered the phase to be, at its usual pace, where it is.
func (t *TaskState) EnteredAt(now timeline.Time, phase int32) timeline.Time {
	if phase == t.Phase {
		return t.PhaseSince
	}
	phases := t.Stage().Phases
	share := float64(sumPhases(phases[phase:])) / float64(sumPhases(phases))
	return max(t.Launched, t.usualEnd(now).Add(-time.Duration(share*float64(t.Duration))))
}
