package cluster

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Progress is how far a running task has come: what an engine knows of the task in addition to its start. A driver stores it and
// hands it to the next engine.
type Progress struct {
	// Phase is the phase of its forecast that was last reported. PhaseSince is when the task entered it or, if it has gone on
	// slower or faster than forecast since, when it would have had to enter it to be, at its usual pace, where it is.
	Phase      int32         `json:"phase,omitempty"`
	PhaseSince timeline.Time `json:"phase_since_ns,omitempty"`
	// StillBy are its holders, 0 if it runs, and StillSince is when it stopped. Stood is how long it stood still before, in all.
	StillBy    Holders       `json:"still_by,omitempty"`
	StillSince timeline.Time `json:"still_since_ns,omitempty"`
	Stood      time.Duration `json:"stood_ns,omitempty"`
	// Ends is when it would end if it went on at its usual pace from Since on; a throttle, or that it stands still, delays
	// that. Ends is 0 if its end is unknown. Since is 0 if the task is not throttled.
	Since timeline.Time `json:"since_ns,omitempty"`
	Ends  timeline.Time `json:"ends_ns,omitempty"`
}

// Progress returns how far a running task has come.
func (t *TaskState) Progress() Progress {
	p := Progress{Phase: t.Phase, PhaseSince: t.PhaseSince, StillBy: t.StillBy, StillSince: t.StillSince, Stood: t.Stood}
	switch {
	case t.end == timeline.Never:
	case t.Throttled != nil:
		p.Since, p.Ends = t.Throttled.since, t.Throttled.ends
	default:
		p.Ends = t.end
	}
	return p
}

// check returns an error if a task of j cannot have come that far. Whether its end can be is not checked: it is an
// estimate.
func (p *Progress) check(j *JobState, id TaskID) error {
	switch {
	case p == nil || id.Stage < 0 || int(id.Stage) >= len(j.Stages):
	case p.Phase < 0 || p.Phase > 0 && int(p.Phase) >= len(j.Stages[id.Stage].Phases):
		return fmt.Errorf("in phase %d, and its stage has a forecast of %d phases", p.Phase, len(j.Stages[id.Stage].Phases))
	case p.Stood < 0 || p.StillBy > allHolders:
		return fmt.Errorf("stood still for %v, held by %s", p.Stood, p.StillBy)
	}
	return nil
}

// resume makes a running task that was adopted go on where it had come to, if that is known.
func (t *TaskState) resume(now timeline.Time, p *Progress) {
	since, ends := now, t.end
	if p != nil {
		t.Phase, t.PhaseSince, t.Stood = p.Phase, p.PhaseSince, p.Stood
		t.Still, t.StillBy, t.StillSince = p.StillBy != 0, p.StillBy, p.StillSince
		if p.Ends != 0 {
			ends = p.Ends
		}
		if p.Since != 0 {
			since = p.Since
		}
	}
	if t.Throttled == nil && t.Still {
		since = min(since, t.StillSince)
	}
	t.endsAt(since, ends)
}
