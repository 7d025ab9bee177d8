package cluster

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/timeline"
)

// EstimatedEnd returns when the task should end, as far as known at now; an overdue task should end now. A task that
// stands still should go on now. A throttled task goes on as slowly as its bound demands, until the throttle ends: see
// pace. ok is false if its run time is unknown.
func (s *Snapshot) EstimatedEnd(t *TaskState, now timeline.Time) (end timeline.Time, ok bool) {
	if t.end == timeline.Never {
		return timeline.Never, false
	}
	if t.Still {
		return max(now, t.endAfter(now)), true
	}
	return max(now, t.end), true
}

// endAfter is when a task with a known end should end if it goes on at now, or has gone on since.
func (t *TaskState) endAfter(now timeline.Time) timeline.Time {
	switch {
	case !t.Still || now <= t.StillSince:
		return t.end
	case t.Throttled != nil && t.end != timeline.Never:
		return t.slowedEnd(now, t.usualEnd(now))
	}
	return t.end.Add(now.Sub(t.StillSince))
}

// foreseeEnd computes when t should end.
func (s *Snapshot) foreseeEnd(t *TaskState) {
	from := t.Launched
	if !t.Running {
		from = s.LaunchTime(t.Job.Submitted, t.Booked)
	}
	t.end = timeline.Never
	if t.Duration > 0 {
		t.end = from.Add(t.Duration)
	}
}

// enterPhase records that a task has entered a phase of its forecast. It should end after that phase and those that
// follow, stretched or shortened as the whole task is with its grant.
func (s *Snapshot) enterPhase(now timeline.Time, id TaskID, phase int32) error {
	t, err := s.running(id)
	if err != nil {
		return err
	}
	stage := t.Stage()
	switch {
	case phase < 0 || int(phase) >= len(stage.Phases):
		return fmt.Errorf("task %s entered phase %d: its stage has a forecast of %d phases", id, phase, len(stage.Phases))
	case t.Phase == phase:
		return fmt.Errorf("task %s entered phase %d: it is in that phase already", id, phase)
	case t.Still:
		return fmt.Errorf("task %s entered phase %d: it stands still", id, phase)
	}
	t.Phase, t.PhaseSince = phase, now
	if total := sumPhases(stage.Phases); total > 0 && t.Duration > 0 {
		left := float64(sumPhases(stage.Phases[phase:])) / float64(total)
		t.endsAt(now, now.Add(time.Duration(left*float64(t.Duration))))
	}
	s.progressed(now, t)
	return nil
}

func sumPhases(phases []Phase) (total time.Duration) {
	for i := range phases {
		total += phases[i].Duration
	}
	return total
}

// stand records that a running task makes no progress from now on.
func (s *Snapshot) stand(now timeline.Time, id TaskID, by Holder) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case t.Still:
		return fmt.Errorf("task %s stands still: it has since %v", id, t.StillSince)
	case by == 0 || int(by) >= len(holderNames):
		return fmt.Errorf("task %s stands still by %s: must be one of %v", id, by, holderNames[1:])
	}
	t.Still, t.StillSince, t.StillBy = true, now, by
	s.progressed(now, t)
	return nil
}

// goOn records that a task that stood still runs again, and ends later by as long as it stood.
func (s *Snapshot) goOn(now timeline.Time, id TaskID) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case !t.Still:
		return fmt.Errorf("task %s goes on: it does not stand still", id)
	}
	usual := t.usualEnd(now)
	t.Stood += now.Sub(t.StillSince)
	t.Still, t.StillSince, t.StillBy = false, 0, 0
	t.endsAt(now, usual)
	s.progressed(now, t)
	return nil
}

func (s *Snapshot) running(id TaskID) (*TaskState, error) {
	t, ok := s.byTask[id]
	if !ok || !t.Running {
		return nil, fmt.Errorf("task %s: is not running", id)
	}
	return t, nil
}

// progressed notes that the estimated end of a running task has changed.
func (s *Snapshot) progressed(now timeline.Time, t *TaskState) {
	t.Node.Version++
	t.Job.Version++
	s.Estimates.StaleSince = min(s.Estimates.StaleSince, now)
}
