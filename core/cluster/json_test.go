package cluster

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// roundTrip checks that a value that can be read is written so that reading returns the same value. A value without a
// kind is skipped.
func roundTrip[T any](t *testing.T, text []byte, isNothing func(*T) bool) {
	t.Helper()
	var first, second T
	if json.Unmarshal(text, &first) != nil || isNothing(&first) {
		return
	}
	written, err := json.Marshal(&first)
	if err != nil {
		t.Fatalf("%q was read as %+v, but cannot be written: %v", text, first, err)
	}
	if err := json.Unmarshal(written, &second); err != nil {
		t.Fatalf("%q was written as %q, which cannot be read: %v", text, written, err)
	}
	again, err := json.Marshal(&second)
	if err != nil || !bytes.Equal(written, again) {
		t.Fatalf("%q was written as %q and then as %q (%v)", text, written, again, err)
	}
}

func seeds(f *testing.F, values ...any) {
	f.Helper()
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
}

var fullJob = Job{ID: 7, Name: "A", Owner: "ada", Queue: "q", Weight: 2.5, Submitted: 3, Class: Flex, MaxAttempts: 4,
	Stages: []Stage{
		{Name: "map", Tasks: 3, Ideal: resource.Vector{1, 2, 3, 4}, MinMemory: 1, Duration: time.Second,
			Elasticity: Elasticity{Kind: SawTooth, Factor: 1.5, DiskRate: 9}},
		{Name: "am", Tasks: 1, Coordinator: true},
		{Tasks: 1, Parents: []int{0, 1}, Ideal: resource.Of(1, 2),
			Elasticity: Elasticity{Kind: Points, Points: []ElasticityPoint{{1, 2}, {2, 1}}}}}}

var fullEvents = []any{
	Event{Kind: NodeJoined, NewNode: &Node{ID: 1, Name: "n", Capacity: resource.Of(1, 2)}},
	Event{Kind: NodeJoined, NewNode: &Node{ID: 2, Name: "u", Capacity: resource.Of(1, 2),
		Unknown: resource.KindsOf(resource.Disk, resource.Network)}},
	Event{Kind: JobSubmitted, NewJob: &fullJob},
	Event{Kind: TaskEnded, Node: 1, Task: TaskID{1, 2, 3}, Outcome: OutOfMemory, Detail: "d", Run: 2,
		Exit: &Exit{Code: 137, Signal: 9, OOMKills: 1, Peak: 5, CPUTime: 6, Started: 7, Ended: 8}},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 0}, Grant: resource.Of(3, 4), Launched: 5,
		Found: &Condition{Bound: resource.Vector{0, 0, 6, 7}, Until: 8, Progress: &Progress{Phase: 2, PhaseSince: 9}}},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 0}, Grant: resource.Of(3, 4), Launched: 5,
		Found: &Condition{ByPhase: true, MostCPU: 7, Was: resource.Of(2, 4), Why: Because(ResumedByOwner), Resized: 6}},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 1}, Found: &Condition{HeldBy: HeldByOwner | HeldByLeveling, HeldUntil: 6,
		HeldFor: TaskID{2, 1, 0}}},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 1}, Decision: 7, Found: &Condition{HeldBy: HeldByLeveling, HeldUntil: 6,
		HeldSince: 5, HeldWhy: Because(NotShifted), HoldFailed: true}},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 1}, Decision: 7, Found: &Condition{Booked: 4}},
	Event{Kind: Continued, Decision: 8},
	Event{Kind: NodeMemory, Node: 1, Held: 5},
	Event{Kind: NodeLeftover, Node: 1, Held: 5},
	Event{Kind: TaskIdle, Task: TaskID{1, 0, 0}, Found: &Condition{Idle: true}},
	Event{Kind: TaskHolds, Task: TaskID{1, 0, 0}, Held: 5},
	Event{Kind: NodeSuits, Node: 1, Job: 3, Found: &Condition{Keeps: true, Fails: true}},
	Event{Kind: NodePagedOut, Node: 1, Held: 5},
	Event{Kind: TaskAdopted, Task: TaskID{1, 0, 0},
		Found: &Condition{Progress: &Progress{Holding: Holding{Held: 5, Renewed: 6, RenewedWhy: Because(NotShifted),
			Raised: true}}}},
	Event{Kind: TaskPhase, Task: TaskID{1, 0, 0}, Phase: 2},
	Event{Kind: TaskSuspended, Task: TaskID{1, 0, 0}, By: HeldByMemory},
	Event{Kind: TaskResumed, Task: TaskID{1, 0, 0}},
	Event{Kind: NodePressed, Node: 1, Found: &Condition{Bound: resource.Vector{0, 0, 5, 0}}},
	Event{Kind: JobPaused, Job: 3},
	Event{Kind: Answered, Node: 1, Decision: 9, Answer: &Answer{Shifts: []Shift{{TaskID{1, 0, 2}, 3, 4}}, Value: 2.5,
		Bound: 2.25, States: 7}},
	Event{Kind: Answered, Node: 1, Decision: 9, Answer: &Answer{Failed: "no schedule"}},
	Event{Kind: Answered, Node: 1, Decision: 9, Answer: &Answer{Proved: true}},
	Event{Kind: JobPaused, Job: 3, Found: &Condition{PageOut: true}},
	Event{Kind: QuotasSet,
		Found: &Condition{Quotas: &Quotas{Users: map[string]Limits{"": {QuotaMemory: {Most: 5}},
			"ada": {QuotaRunning: {Most: Unlimited, Refuses: true}}}, Queues: map[string]Limits{"q": {QuotaCPU: {Most: 6}}}}}},
	Event{Kind: TaskPagedOut, Task: TaskID{1, 0, 0}, Found: &Condition{Out: 5, Stays: "swap is full"}},
	Event{Kind: JobResumed, Job: 3, Task: TaskID{Job: 3, Stage: 1, Index: 2}},
	Event{Kind: DecisionFailed, Decision: 4, Task: TaskID{1, 0, 0}},
}

var fullDecision = Decision{ID: 1, Kind: Start, Task: TaskID{1, 2, 3}, Node: 4, Grant: resource.Vector{1, 2, 3, 4},
	Duration: 5, At: 6, For: TaskID{4, 5, 6}, Bound: resource.Vector{0, 0, 8, 9}, Preempt: true, ByPhase: true,
	PageOut: true, Envelope: Envelope{Class: Flex, Min: 1, Max: 2, Rank: 3, Duration: 4, HeartbeatTimeout: 5,
		MostCPU: 6}, Reason: BecauseFitsUnderSized(7, 8, 9)}

// TestJSON checks that a file preserves every field.
func TestJSON(t *testing.T) {
	for _, v := range append(fullEvents, fullJob, fullDecision) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal(text, back.Interface()); err != nil {
			t.Fatal(err)
		}
		if got := back.Elem().Interface(); !reflect.DeepEqual(got, v) {
			t.Errorf("%s was read as\n%+v\nwant\n%+v", text, got, v)
		}
	}
}

// TestNames checks that every name is read back, and that no other name is accepted.
func TestNames(t *testing.T) {
	for k := NodeJoined; k <= QuotasSet; k++ {
		var back EventKind
		if err := back.UnmarshalText([]byte(k.String())); err != nil || back != k {
			t.Errorf("event kind %s is read as %s: %v", k, back, err)
		}
	}
	for k := Start; k <= Ask; k++ {
		var back DecisionKind
		if err := back.UnmarshalText([]byte(k.String())); err != nil || back != k {
			t.Errorf("decision kind %s is read as %s: %v", k, back, err)
		}
	}
	for o := Succeeded; o <= Preempted; o++ {
		var back Outcome
		if err := back.UnmarshalText([]byte(o.String())); err != nil || back != o {
			t.Errorf("outcome %s is read as %s: %v", o, back, err)
		}
	}
	for h := range Holders(AllHolders + 1) {
		var back Holders
		if err := back.UnmarshalText([]byte(h.String())); err != nil || back != h {
			t.Errorf("holders %s are read as %s: %v", h, back, err)
		}
	}
	for k := NotElastic; k <= SawToothTable; k++ {
		var back ElasticityKind
		if err := back.UnmarshalText([]byte(k.String())); err != nil || back != k {
			t.Errorf("elasticity kind %s is read as %s: %v", k, back, err)
		}
	}
	for _, c := range []struct {
		into interface{ UnmarshalText([]byte) error }
		want string
	}{
		{new(EventKind), `event kind "x": unknown`},
		{new(DecisionKind), `decision kind "x": unknown`},
		{new(Outcome), `outcome "x": unknown`},
		{new(Holders), `holders "x": unknown`},
		{new(Class), `class "x": must be regular or flex`},
		{new(ElasticityKind), `elasticity kind "x": must be one of none, step, sawtooth, points, sawtooth-table`},
	} {
		if err := c.into.UnmarshalText([]byte("x")); err == nil || err.Error() != c.want {
			t.Errorf("error is %v, want %q", err, c.want)
		}
	}
	if EventKind(99).String() != "event(99)" || DecisionKind(99).String() != "decision(99)" ||
		Outcome(99).String() != "outcome(99)" || ElasticityKind(99).String() != "elasticity(99)" {
		t.Error("what has no name must be printed as a number")
	}
}

// TestReasons checks that every reason has its own words.
func TestReasons(t *testing.T) {
	seen := map[string]ReasonCode{}
	for code := Fits; int(code) < len(sentences); code++ {
		words := (Reason{code, 1, 2, 3}).Words(nil)
		if other, twice := seen[words]; twice || words == "no reason recorded" || strings.Contains(words, "%!") {
			t.Errorf("reason %d reads %q, like %d", code, words, other)
		}
		seen[words] = code
	}
	if NoRoom != 5 || QueueFull != 19 || Assigned != 66 || RetryLater != 75 {
		t.Errorf("codes in event logs mean something else: %d %d %d %d", NoRoom, QueueFull, Assigned, RetryLater)
	}
	if got := (Reason{}).Words(nil); got != "no reason recorded" {
		t.Errorf("no reason reads %q", got)
	}
}

func FuzzEventJSON(f *testing.F) {
	seeds(f, fullEvents...)
	f.Fuzz(func(t *testing.T, text []byte) { roundTrip(t, text, func(e *Event) bool { return e.Kind == 0 }) })
}

func FuzzDecisionJSON(f *testing.F) {
	seeds(f, fullDecision)
	f.Fuzz(func(t *testing.T, text []byte) { roundTrip(t, text, func(d *Decision) bool { return d.Kind == 0 }) })
}

func FuzzJobJSON(f *testing.F) {
	seeds(f, fullJob)
	f.Fuzz(func(t *testing.T, text []byte) { roundTrip(t, text, func(*Job) bool { return false }) })
}
