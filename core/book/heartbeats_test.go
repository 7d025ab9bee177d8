package book

import (
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Each node that reports may start its number of tasks, whatever the other nodes that report in the same step start.
func TestStartsPerHeartbeatCountForEachNode(t *testing.T) {
	s := newSnapshot()
	s.Heartbeats.Every, s.Heartbeats.Starts = time.Second, 1
	events := []cluster.Event{{Kind: cluster.Synced},
		{Kind: cluster.JobSubmitted,
			NewJob: &cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{{Tasks: 10, Ideal: resource.Of(1, 1)}}}}}
	for i := range 2 {
		events = append(events,
			cluster.Event{Kind: cluster.NodeJoined,
				NewNode: &cluster.Node{ID: cluster.NodeID(i), Capacity: resource.Of(100, 100)}})
	}
	for i := range events {
		if err := s.apply(0, &events[i]); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlan(0, s, 0)
	for step := range 2 {
		for i := range 2 {
			e := cluster.Event{Kind: cluster.Heartbeat, Node: cluster.NodeID(i)}
			if err := s.apply(timeline.Time(step), &e); err != nil {
				t.Fatal(err)
			}
		}
		var on []cluster.NodeID
		for n, ok := p.FirstFit(resource.Of(1, 1)); ok; n, ok = p.FirstFit(resource.Of(1, 1)) {
			p.Start(s.Jobs[0], 0, n, 1, cluster.BecauseFits(1))
			on = append(on, n.ID)
		}
		if !slices.Equal(on, []cluster.NodeID{0, 1}) {
			t.Errorf("step %d: tasks started on %v", step, on)
		}
		s.Changes.reset()
		p.reset(timeline.Time(step) + 1)
	}
}
