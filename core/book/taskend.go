package book

import (
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// EstimatedEnd returns when the task should end, as far as known at now; an overdue task should end now. A task that
// stands still should go on now, and one that waits for other stages (Waits) should leave its first phase now at the
// earliest. A throttled task goes on as slowly as its bound demands, until the throttle ends: see
// pace. ok is false if its run time is unknown.
func (s *Snapshot) EstimatedEnd(t *TaskState, now timeline.Time) (end timeline.Time, ok bool) {
	if t.end == timeline.Never {
		return timeline.Never, false
	}
	least := now
	if t.Waits && now > timeline.Earliest {
		least = now.Add(t.AfterFirst())
	}
	if t.Suspended {
		return max(least, t.endAfter(now)), true
	}
	return max(least, t.end), true
}

// endAfter is when a task with a known end should end if it goes on at now, or has gone on since.
func (t *TaskState) endAfter(now timeline.Time) timeline.Time {
	switch {
	case !t.Suspended || now <= t.SuspendedSince:
		return t.end
	case t.Throttled != nil && t.end != timeline.Never:
		return t.slowedEnd(now, t.usualEnd(now))
	}
	return t.end.Add(now.Sub(t.SuspendedSince))
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

// enterPhase records that a task has entered a phase of its forecast. The event says when, which may be in the past:
// a driver may notice the phase late, or correct an earlier report, even to an earlier phase. The task should end
// after that phase and the phases that follow, stretched or shortened as the whole task is with its grant.
func (s *Snapshot) enterPhase(now timeline.Time, e *cluster.Event) error {
	t, err := s.running(e.Task)
	if err != nil {
		return err
	}
	if err := t.CheckPhase(now, e); err != nil {
		return err
	}
	t.enter(e.Phase, phaseEntered(e, now))
	phases := t.Stage().Phases
	if total := sumPhases(phases); total > 0 && t.Duration > 0 {
		left := float64(sumPhases(phases[t.Phase:])) / float64(total)
		t.endsAt(now, t.PhaseSince.Add(time.Duration(left*float64(t.Duration))))
	}
	s.progressed(now, t)
	return nil
}

// phaseEntered is when the task of a TaskPhase entered its phase.
func phaseEntered(e *cluster.Event, now timeline.Time) timeline.Time {
	if e.Found == nil || e.Found.Progress == nil {
		return now
	}
	return e.Found.Progress.PhaseSince
}

// CheckPhase returns an error if the TaskPhase e is impossible for the running task t, or says nothing new.
func (t *TaskState) CheckPhase(now timeline.Time, e *cluster.Event) error {
	forecast, since := len(t.Stage().Phases), phaseEntered(e, now)
	switch {
	case e.Phase < 0 || int(e.Phase) >= forecast:
		return fmt.Errorf("task %s entered phase %d: its stage has a forecast of %d phases", t.ID, e.Phase, forecast)
	case since < t.Launched || since > now:
		return fmt.Errorf("task %s entered phase %d at %v: it was launched at %v, and now is %v", t.ID, e.Phase, since,
			t.Launched, now)
	case t.Phase == e.Phase && (e.Condition().Progress == nil || since == t.PhaseSince):
		return fmt.Errorf("task %s entered phase %d: it is in that phase already", t.ID, e.Phase)
	case t.Suspended:
		return fmt.Errorf("task %s entered phase %d: it stands still", t.ID, e.Phase)
	}
	return nil
}

func sumPhases(phases []cluster.Phase) (total time.Duration) {
	for i := range phases {
		total += phases[i].Duration
	}
	return total
}

// stand records that a running task makes no progress from now on, or that its holders have changed.
func (s *Snapshot) stand(now timeline.Time, id cluster.TaskID, by cluster.Holders) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case by == 0 || by > cluster.AllHolders:
		return fmt.Errorf("task %s stands still by %q: must be some of %v", id, by,
			strings.Split(cluster.AllHolders.String(), "+"))
	case t.Suspended && t.SuspendedBy == by:
		return fmt.Errorf("task %s stands still by %s: it has stood still by %s since %v", id, by, by, t.SuspendedSince)
	case t.Suspended:
		t.SuspendedBy = by
		s.relend(t)
		return nil
	}
	t.Suspension.begin(now, by)
	s.relend(t)
	s.progressed(now, t)
	return nil
}

// goOn records that a task that stood still runs again, and ends later by as long as it stood.
func (s *Snapshot) goOn(now timeline.Time, id cluster.TaskID) error {
	t, err := s.running(id)
	switch {
	case err != nil:
		return err
	case !t.Suspended:
		return fmt.Errorf("task %s goes on: it does not stand still", id)
	}
	usual := t.usualEnd(now)
	t.Suspension.end(now)
	s.relend(t)
	t.endsAt(now, usual)
	s.progressed(now, t)
	return nil
}

func (s *Snapshot) running(id cluster.TaskID) (*TaskState, error) {
	t, ok := s.byTask.get(id)
	if !ok || !t.Running {
		return nil, fmt.Errorf("task %s: is not running", id)
	}
	return t, nil
}

// progressed notes that the estimated end of a running task has changed.
func (s *Snapshot) progressed(now timeline.Time, t *TaskState) {
	t.Node.Version++
	t.Job.Version++
	s.Changes.Progress = append(s.Changes.Progress, t.Node.ID)
	s.Estimates.stale(now)
}
