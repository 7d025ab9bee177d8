package book

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Where the policy grants CPU as a weight, a container may use what its stage requests, and where its stage states more
// as its most, that; at most what its node has. It keeps that for life, also under a policy that does not.
func TestMostCPU(t *testing.T) {
	for _, c := range []struct {
		weighs            bool
		ideal, most, want resource.Amount // cores
	}{{false, 2, 0, 0}, {true, 2, 0, 2}, {true, 9, 0, 4}, {false, 2, 3, 3},
		{false, 2, resource.MostCPU / resource.Core, 4},
		{false, 2, 2, 0}, {true, 2, 3, 3}, {true, 2, 2, 2}} {
		s, j := newSnapshot(), growing(cluster.Regular)
		j.Stages[0].Ideal, j.Stages[0].MaxCPU = gb(c.ideal, 4), c.most*resource.Core
		s.Weighs = c.weighs
		events := []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: j}, {Kind: cluster.Synced}}
		for i := range events {
			if err := s.apply(0, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		is := func(decisions []cluster.Decision, err error) {
			t.Helper()
			if err != nil || decisions[0].Envelope.MostCPU != c.want*resource.Core {
				t.Errorf("%+v: decided %+v (%v)", c, decisions, err)
			}
		}
		p := newPlan(0, s, 0)
		task := p.StartPhased(s.Jobs[0], 0, s.Nodes[0], j.GrantIn(0, 0), cluster.Because(cluster.ResumedByOwner))
		is(p.close(nil))
		if err := s.apply(0, &cluster.Event{Kind: cluster.DecisionDone, Task: task.ID, Decision: 1}); err != nil {
			t.Fatal(err)
		}
		s.Weighs = !c.weighs
		p = newPlan(timeline.Seconds(10), s, 1)
		p.Resize(task, j.GrantIn(0, 1), cluster.Because(cluster.ResumedByOwner))
		is(p.close(nil))

		s = newSnapshot()
		for i := range events[:2] {
			if err := s.apply(0, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		found := cluster.Event{Kind: cluster.TaskAdopted, Task: task.ID, Grant: gb(2, 6),
			Found: &cluster.Condition{ByPhase: true, MostCPU: -1}}
		if err := s.apply(0, &found); err == nil {
			t.Error("adopted with a negative amount")
		}
		found.Found.MostCPU = c.want * resource.Core
		if err := s.apply(0, &found); err != nil || s.task(task.ID).MostCPU != found.Found.MostCPU {
			t.Errorf("adopted %+v (%v)", s.task(task.ID), err)
		}
	}
}
