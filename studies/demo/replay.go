package demo

import (
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/eventlog"
)

// Replay is the result of replaying the recorded events of a machine with a new engine, without a machine.
type Replay struct {
	Decisions int `json:"decisions"` // recorded
	Equal     int `json:"equal"`     // of these, taken again before the first difference
	// Changed is Equal for a log with one changed event: the first job needs 1 MiB less.
	Changed int `json:"equal_with_one_event_changed"`
}

// replay replays a recorded log, unchanged and with one event changed.
func replay(log func() (io.ReadCloser, error)) (*Replay, error) {
	out := &Replay{}
	for _, change := range []bool{false, true} {
		file, err := log()
		if err != nil {
			return nil, fmt.Errorf("replay the event log: %w", err)
		}
		recorded, equal, err := decideAgain(file, change)
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("replay the event log: %w", err)
		}
		out.Decisions = recorded
		if change {
			out.Changed = equal
		} else {
			out.Equal = equal
		}
	}
	return out, nil
}

// decideAgain counts the decisions in a log, and how many of them a new engine takes again before the first different
// one.
func decideAgain(log io.Reader, change bool) (recorded, equal int, err error) {
	r, err := eventlog.NewReader(log, "event log")
	if err != nil {
		return 0, 0, err
	}
	p, err := policy.New(r.Header.Policy, r.Header.Settings)
	if err != nil {
		return 0, 0, err
	}
	e := engine.New(p, r.Header.Configure)
	var again []cluster.Decision // decisions of the newest step that are not compared yet
	same, changed := true, !change
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return recorded, equal, nil
		}
		if err != nil {
			return recorded, equal, err
		}
		if record.Decisions != nil {
			recorded += len(record.Decisions)
			for i, d := range record.Decisions {
				same = same && i < len(again) && reflect.DeepEqual(d, again[i])
				if same {
					equal++
				}
			}
			same = same && len(again) == len(record.Decisions)
			again = nil
			continue
		}
		same = same && len(again) == 0 // a step without recorded decisions had none
		if !same {
			continue // later events depend on other decisions
		}
		changed = changed || alter(record.Events)
		again, err = e.Step(record.Now, record.Events...)
		same = err == nil
	}
}

// alter changes the first event that submits a job, and reports whether there is one.
func alter(events []cluster.Event) bool {
	for i := range events {
		if j := events[i].NewJob; j != nil {
			j.Stages[0].Ideal[resource.Memory] -= resource.MiB
			return true
		}
	}
	return false
}
