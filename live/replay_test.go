package live

import (
	"reflect"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/format/eventlog"
)

// replay passes the events of a log to a new engine. It returns the first record with different decisions; ok reports
// that there is none.
func replay(t *testing.T, header eventlog.Header, log []eventlog.Record) (at int, ok bool) {
	t.Helper()
	return replayBy(t, header, log, func(p policy.Policy) policy.Policy { return p })
}

// checkReplay checks that a new engine takes the decisions that are in a log.
func (r *rig) checkReplay(log string) {
	r.t.Helper()
	header, records := readLog(r.t.(*testing.T), log)
	if at, ok := replay(r.t.(*testing.T), header, records); !ok {
		r.t.Errorf("the replay differs at record %d", at)
	}
}

// replayBy is replay by what is made of the policy of the log.
func replayBy(t *testing.T, header eventlog.Header, log []eventlog.Record,
	made func(policy.Policy) policy.Policy) (at int, ok bool) {
	t.Helper()
	p, err := policy.New(header.Policy, header.Settings)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(made(p), header.Configure)
	for i := 0; i < len(log); i++ {
		decisions, err := e.Step(log[i].Now, log[i].Events...)
		if err != nil {
			return i, false
		}
		var want []cluster.Decision
		if i+1 < len(log) && log[i+1].Decisions != nil {
			i++
			want = log[i].Decisions
		}
		if len(decisions) != len(want) || len(want) > 0 && !reflect.DeepEqual(decisions, want) {
			return i, false
		}
	}
	return 0, true
}

// ReplayBy exports replayBy to the tests that use the driver from outside.
var ReplayBy = replayBy

// ReadLog exports readLog to the tests that use the driver from outside.
var ReadLog = readLog
