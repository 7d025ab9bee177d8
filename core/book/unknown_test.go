package book

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// A node without a number for its network takes every request, and the cluster has no total while it is there.
func TestUnknownCapacity(t *testing.T) {
	s := newSnapshot()
	enter := func(e cluster.Event) {
		t.Helper()
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
		coherent(t, s)
	}
	known := resource.Of(4*resource.Core, 10*resource.GB).With(resource.Network, 100*resource.MB)
	enter(cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: 0, Name: "known", Capacity: known}})
	enter(cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{ID: 1, Name: "not", Capacity: known.With(resource.Network, 0),
			Unknown: resource.KindsOf(resource.Network)}})
	if s.Capacity[resource.Network] != 0 || s.Capacity[resource.CPU] != 8*resource.Core ||
		s.Unknown != resource.KindsOf(resource.Network) {
		t.Errorf("the cluster has %v, unknown %v", s.Capacity, s.Unknown)
	}
	// As many tasks as fit by cores, each with as much as one may request: what is unknown is never used up.
	need := resource.Of(resource.Core, resource.GB).With(resource.Network, resource.MostRate)
	job := &cluster.Job{ID: 1, Name: "A", Stages: []cluster.Stage{{Tasks: 9, Ideal: need}}}
	if err := s.CheckFits(job, false); err != nil {
		t.Error(err)
	}
	enter(cluster.Event{Kind: cluster.JobSubmitted, NewJob: job})
	enter(cluster.Event{Kind: cluster.Synced})
	p := newPlan(0, s, 0)
	for range 4 {
		n, ok := s.FirstOpen(need, 0)
		if !ok || n.Name != "not" {
			t.Fatalf("the first node with room is %v", n)
		}
		p.Start(s.Jobs[0], 0, n, need[resource.Memory], cluster.BecauseFits(0))
	}
	// The other node has cores, but not as much network.
	if why, ok := s.NoRoom(need); !ok || why.Code != cluster.NoBandwidth {
		t.Errorf("a fifth task does not fit because of %+v", why)
	}
	if _, err := p.close(nil); err != nil {
		t.Fatal(err)
	}
	coherent(t, s)
	p.reset(0)
	p.Start(s.Jobs[0], 0, s.Nodes[1], need[resource.Memory], cluster.BecauseFits(0))
	if _, err := p.close(nil); err == nil ||
		err.Error() != `policy at 0s: start of a task of job 1 on node "not" with cpu=1 memory=1GB network=1000PB/s: only memory=6GB network=unknown are free` {
		t.Errorf("the error is %v", err)
	}
	enter(cluster.Event{Kind: cluster.NodeLeft, Node: 1})
	if s.Capacity != known || s.Unknown != 0 || s.Largest() != known {
		t.Errorf("then the cluster has %v, unknown %v, largest %v", s.Capacity, s.Unknown, s.Largest())
	}
}
