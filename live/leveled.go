package live

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
)

// Leveled says until when leveling holds a running task, and why.
type Leveled struct {
	Since  time.Time      `json:"since,omitzero" doc:"when that was decided or, if an earlier daemon decided it, when its programs were stopped"`
	Until  time.Time      `json:"until" doc:"when leveling ends its hold by itself"`
	For    cluster.TaskID `json:"for,omitzero" doc:"the task that keeps going because of it; omitted if there is none"`
	Why    string         `json:"why,omitempty" doc:"one clause; omitted if an earlier daemon decided it"`
	Failed string         `json:"failed,omitempty" doc:"why its programs could not be stopped; they run"`
}

// leveledOf returns the view of a hold of leveling; nil if leveling does not hold the task.
func leveledOf(t *cluster.TaskState, r *run) *Leveled {
	h, ok := t.HeldUntil()
	if !ok {
		return nil
	}
	out := &Leveled{Since: instant(h.Since), Until: instant(h.Until), For: h.For}
	if h.Since == 0 && t.StillBy == cluster.HeldByLeveling {
		out.Since = instant(t.StillSince)
	}
	if h.Why.Code != 0 {
		out.Why = h.Why.Words(clock)
	}
	if r != nil && t.Hold.Failed {
		out.Failed = r.unheld
	}
	return out
}
