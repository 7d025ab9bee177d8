package book

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Progress returns how far a running task has come.
func (t *TaskState) Progress() cluster.Progress {
	p := cluster.Progress{Phase: t.Phase, PhaseSince: t.PhaseSince, SuspendedBy: t.SuspendedBy,
		SuspendedSince: t.SuspendedSince, SuspendedFor: t.SuspendedFor, Holding: t.Holding}
	switch {
	case t.end == timeline.Never:
	case t.Throttled != nil:
		p.Since, p.Ends = t.Throttled.since, t.Throttled.ends
	default:
		p.Ends = t.end
	}
	return p
}

// checkProgress returns an error if a task of j cannot have come that far. Whether its end can be is not checked: it
// is an estimate.
func (j *JobState) checkProgress(id cluster.TaskID, p *cluster.Progress) error {
	switch {
	case p == nil || id.Stage < 0 || int(id.Stage) >= len(j.Stages):
	case p.Phase < 0 || p.Phase > 0 && int(p.Phase) >= len(j.Stages[id.Stage].Phases):
		return fmt.Errorf("in phase %d, and its stage has a forecast of %d phases", p.Phase, len(j.Stages[id.Stage].Phases))
	case p.SuspendedFor < 0 || p.SuspendedBy > cluster.AllHolders:
		return fmt.Errorf("stood still for %v, held by %s", p.SuspendedFor, p.SuspendedBy)
	case p.Held < 0:
		return fmt.Errorf("holds %d bytes", p.Held)
	}
	return nil
}

// resume makes a running task that was adopted go on where it had come to, if that is known.
func (t *TaskState) resume(now timeline.Time, p *cluster.Progress) {
	since, ends := now, t.end
	if p != nil {
		t.enter(p.Phase, p.PhaseSince)
		t.Holding = p.Holding
		t.SuspendedFor = p.SuspendedFor
		t.Suspended, t.SuspendedBy, t.SuspendedSince = p.SuspendedBy != 0, p.SuspendedBy, p.SuspendedSince
		if p.Ends != 0 {
			ends = p.Ends
		}
		if p.Since != 0 {
			since = p.Since
		}
	}
	if t.Throttled == nil && t.Suspended {
		since = min(since, t.SuspendedSince)
	}
	t.endsAt(since, ends)
}
