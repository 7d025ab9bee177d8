package cluster

import (
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Want is what the engine wants of a running task: whoever has the task brings it into this state, whatever state it
// is in. A decision to resize, suspend, resume or throttle the task is a version of the whole, and sets one field of
// it. Each version is answered once: it was carried out (DecisionDone), could not be (DecisionFailed), or a later
// version set the same field before (DecisionSuperseded).
type Want struct {
	Size  Size
	Hold  Hold
	Bound Bound
}

// Size is how large the container of a task is, and what its node may make of that.
type Size struct {
	Grant    resource.Vector `json:"grant"`
	Envelope Envelope        `json:"envelope"`
	Why      Reason          `json:"why,omitzero"` // the reason of the Resize; zero of the Start
}

// Hold says for which holders of the engine the programs of a task are stopped; the zero Hold lets them run, unless
// the memory manager of the node holds them.
type Hold struct {
	By Holders `json:"by,omitempty"`
	// Until is when leveling ends its hold, and For is the task that keeps going because of it; zero without leveling.
	Until timeline.Time `json:"until_ns,omitempty"`
	For   TaskID        `json:"for,omitzero"`
	// PageOut says that the memory of the task is to be paged out while it is held; otherwise it is to be brought back.
	PageOut bool `json:"page_out,omitempty"`
}

// Levels reports whether leveling is among the holders.
func (h *Hold) Levels() bool { return h.By&HeldByLeveling != 0 }

// Overdue reports whether leveling should have ended its hold some time before now.
func (h *Hold) Overdue(now timeline.Time, by time.Duration) bool {
	return h.Levels() && h.Until.Add(by) <= now
}

// Bound is the most that a task may use of each rate until a time; 0 is no bound, and the zero Bound bounds nothing.
type Bound struct {
	Most  resource.Vector `json:"most,omitzero"`
	Until timeline.Time   `json:"until_ns,omitempty"`
}

// Lasts reports whether b still bounds something at a time.
func (b *Bound) Lasts(now timeline.Time) bool { return b.Most != (resource.Vector{}) && b.Until > now }

// WantField names a field of a Want.
type WantField uint8

// The fields of a Want.
const (
	WantSize WantField = iota
	WantHold
	WantBound
	NumWantFields
)

// Sets returns the field of a Want that a decision of kind k sets; ok is false if it sets none.
func (k DecisionKind) Sets() (f WantField, ok bool) {
	switch k {
	case Resize:
		return WantSize, true
	case Suspend, Resume:
		return WantHold, true
	case Throttle:
		return WantBound, true
	}
	return 0, false
}

// Set makes d, which sets a field, the newest version.
func (w *Want) Set(d *Decision) {
	switch d.Kind {
	case Resize:
		w.Size = Size{Grant: d.Grant, Envelope: d.Envelope, Why: d.Reason}
	case Suspend, Resume:
		w.Hold = Hold{By: d.By, PageOut: d.PageOut}
		if w.Hold.Levels() {
			w.Hold.Until, w.Hold.For = d.At, d.For
		}
	case Throttle:
		w.Bound = Bound{Most: d.Bound, Until: d.At}
	}
}
