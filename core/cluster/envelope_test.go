package cluster

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A REGULAR container keeps its grant. The limit of a FLEX container is bounded by its stage and its node, and is never
// below its grant.
func TestEnvelope(t *testing.T) {
	const gib = resource.GiB
	for _, c := range []struct {
		name                string
		class               Class
		coordinator         bool
		most, granted, node resource.Amount
		want                Envelope
	}{
		{"regular", Regular, false, 0, gib, 8 * gib, Envelope{Min: gib, Max: gib, Rank: 7}},
		{"coordinator", Flex, true, 0, gib, 8 * gib, Envelope{Min: gib, Max: gib, Rank: 7}},
		{"flex", Flex, false, 0, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 8 * gib}},
		{"flex with a maximum", Flex, false, 3 * gib, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 3 * gib}},
		{"flex on a smaller node", Flex, false, 9 * gib, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 8 * gib}},
		{"granted more than its maximum", Flex, false, gib, 2 * gib, 8 * gib, Envelope{Class: Flex, Min: 2 * gib, Max: 2 * gib}},
	} {
		j := Job{ID: 7, Class: c.class, Stages: []Stage{{MaxMemory: c.most, Coordinator: c.coordinator, Duration: time.Minute, HeartbeatTimeout: time.Hour}}}
		if c.want.HeartbeatTimeout = time.Hour; c.want.Class == Flex { // a program is also silent while it is paused or throttled
			c.want.Rank, c.want.Duration = 7, time.Minute
		}
		if got := j.Envelope(0, c.granted, c.node); got != c.want {
			t.Errorf("%s: envelope is %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Where the policy grants CPU as a weight, a container may use what its stage requests, at most what its node has. It keeps that for life,
// also under a policy that does not.
func TestMostCPU(t *testing.T) {
	for _, c := range []struct {
		weighs      bool
		ideal, want resource.Amount // cores
	}{{false, 2, 0}, {true, 2, 2}, {true, 9, 4}} {
		s, j := newSnapshot(), growing(Regular)
		j.Stages[0].Ideal = gb(c.ideal, 4)
		s.Weighs = c.weighs
		events := []Event{joins(0), {Kind: JobSubmitted, NewJob: j}, {Kind: Synced}}
		for i := range events {
			if err := s.apply(0, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		is := func(decisions []Decision, err error) {
			t.Helper()
			if err != nil || decisions[0].Envelope.MostCPU != c.want*resource.Core {
				t.Errorf("%+v: decided %+v (%v)", c, decisions, err)
			}
		}
		p := newPlan(0, s, 0)
		task := p.StartPhased(s.Jobs[0], 0, s.Nodes[0], j.GrantIn(0, 0), Because(ResumedByOwner))
		is(p.close(nil))
		if err := s.apply(0, &Event{Kind: DecisionDone, Task: task.ID, Decision: 1}); err != nil {
			t.Fatal(err)
		}
		s.Weighs = !c.weighs
		p = newPlan(timeline.Seconds(10), s, 1)
		p.Resize(task, j.GrantIn(0, 1), Because(ResumedByOwner))
		is(p.close(nil))

		s = newSnapshot()
		for i := range events[:2] {
			if err := s.apply(0, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		found := Event{Kind: TaskAdopted, Task: task.ID, Grant: gb(2, 6), Found: &Condition{ByPhase: true, MostCPU: -1}}
		if err := s.apply(0, &found); err == nil {
			t.Error("adopted with a negative amount")
		}
		found.Found.MostCPU = c.want * resource.Core
		if err := s.apply(0, &found); err != nil || s.task(task.ID).MostCPU != found.Found.MostCPU {
			t.Errorf("adopted %+v (%v)", s.task(task.ID), err)
		}
	}
}
