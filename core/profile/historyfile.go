package profile

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// historyVersion is the version of the JSON form of a History, the only one that is read.
const historyVersion = 1

// ErrHistoryVersion is returned by ReadHistory for the history of another version: what its numbers mean is not known.
var ErrHistoryVersion = errors.New("history of another version")

type historyForm struct {
	Version int       `json:"version"`
	Apps    []appForm `json:"apps"`
}

type appForm struct {
	App
	Observed int               `json:"observed"`        // runs, of which older ones may be left out
	Runs     []json.RawMessage `json:"runs"`            // the oldest first
	Older    []json.RawMessage `json:"older,omitempty"` // lists of integers: see outline
	Short    []json.RawMessage `json:"shortfalls,omitempty"`
}

// runForm is a numbered run as it is read: a list of amounts may be too short.
type runForm struct {
	numbered
	Phases []phaseForm       `json:"phases"`
	Peak   []resource.Amount `json:"peak"`
}

type phaseForm struct {
	Name     string            `json:"name"`
	Duration time.Duration     `json:"duration_ns"`
	Demand   []resource.Amount `json:"demand"`
}

// MarshalJSON writes all runs and shortfalls with a version; ReadHistory reads them back. Rows are not written.
func (h *History) MarshalJSON() ([]byte, error) {
	form := historyForm{Version: historyVersion, Apps: []appForm{}}
	for _, app := range h.Known() {
		p := h.apps[app]
		a := appForm{App: app, Observed: p.seen, Runs: []json.RawMessage{}}
		for i := range p.runs {
			text, err := json.Marshal(&p.runs[i])
			if err != nil {
				return nil, fmt.Errorf("history of %q: %w", app.Name, err)
			}
			a.Runs = append(a.Runs, text)
		}
		for i := range p.older {
			text, err := json.Marshal(p.older[i])
			if err != nil {
				return nil, fmt.Errorf("history of %q: %w", app.Name, err)
			}
			a.Older = append(a.Older, text)
		}
		for i := range p.short {
			text, err := json.Marshal(&p.short[i])
			if err != nil {
				return nil, fmt.Errorf("history of %q: %w", app.Name, err)
			}
			a.Short = append(a.Short, text)
		}
		form.Apps = append(form.Apps, a)
	}
	return json.Marshal(form)
}

// ReadHistory reads what MarshalJSON wrote. Runs that are not sound are left out or used in part, as by Observe;
// notes say so, in a sentence each. err says why nothing was read: the text is no JSON object of that form, or
// ErrHistoryVersion.
func ReadHistory(text []byte) (h *History, notes []string, err error) {
	h = &History{}
	var form historyForm
	if err := json.Unmarshal(text, &form); err != nil {
		return h, nil, fmt.Errorf("history: %w", err)
	}
	if form.Version != historyVersion {
		return h, nil, fmt.Errorf("version %d: must be %d: %w", form.Version, historyVersion, ErrHistoryVersion)
	}
	for _, a := range form.Apps {
		for i, text := range a.Runs {
			said, err := h.read(a.App, text)
			if err != nil {
				said = append(said, fmt.Sprintf("left out: %v", err))
			}
			for _, s := range said {
				notes = append(notes, fmt.Sprintf("%q run %d: %s", a.Name, i+1, s))
			}
		}
		if p := h.apps[a.App]; p != nil && a.Observed > p.seen {
			p.seen = min(a.Observed, mostObserved)
		}
		for i, text := range a.Older {
			if err := h.readOlder(a.App, text); err != nil {
				notes = append(notes, fmt.Sprintf("%q older run %d: left out: %v", a.Name, i+1, err))
			}
		}
		for i, text := range a.Short {
			var s Shortfall
			err := json.Unmarshal(text, &s)
			if err == nil {
				err = h.ObserveShortfall(a.App, s)
			}
			if err != nil {
				notes = append(notes, fmt.Sprintf("%q shortfall %d: left out: %v", a.Name, i+1, err))
			}
		}
	}
	return h, notes, nil
}

// mostObserved bounds numbers of runs that are read, so that they can be counted on.
const mostObserved = 1 << 40

// readOlder adds the outline of a run of app.
func (h *History) readOlder(app App, text json.RawMessage) error {
	p := h.apps[app]
	if p == nil {
		return errors.New("there is no newer run")
	}
	var list []int64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	o, err := readOutline(list, p.seen)
	if err == nil {
		p.keep(o)
	}
	return err
}

// read adds a run of app. What it lacks is unknown.
func (h *History) read(app App, text json.RawMessage) (notes []string, err error) {
	var form runForm
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, err
	}
	r := form.Run
	amounts := func(where string, list []resource.Amount) (v resource.Vector) {
		if list == nil {
			return v // all of them 0
		}
		copy(v[:], list)
		for k := range resource.NumKinds {
			if int(k) >= len(list) && !r.Unknown.Has(k) {
				notes = append(notes, fmt.Sprintf("%s has no %v, taken as unknown", where, k))
				r.Unknown |= resource.KindsOf(k)
			}
		}
		if len(list) > len(v) {
			notes = append(notes, fmt.Sprintf("%s has %d resources: must be at most %d, the rest is left out", where,
				len(list), len(v)))
		}
		return v
	}
	r.Phases = nil
	for i, p := range form.Phases {
		r.Phases = append(r.Phases, cluster.Phase{Name: p.Name, Duration: p.Duration,
			Demand: amounts(fmt.Sprintf("phase %d", i+1), p.Demand)})
	}
	r.Peak = amounts("peak", form.Peak)
	next := 0
	if p := h.apps[app]; p != nil {
		next = p.seen
	}
	if form.Number < next || form.Number >= mostObserved {
		notes = append(notes, fmt.Sprintf("number %d: must be %d to %d, taken as %d", form.Number, next, mostObserved-1,
			next))
		form.Number = next
	}
	said, err := h.observe(app, r, form.Number)
	return append(notes, said...), err
}
