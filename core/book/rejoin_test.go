package book

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// The ID of a node that left can be used again. Nothing of the earlier node is left, and whoever keeps what it
// computed for a node sees by the version that this is another.
func TestNodeJoinsAgain(t *testing.T) {
	s := example(t)
	before := s.Nodes[0].Version
	other := cluster.Node{ID: 0, Name: "other", Capacity: resource.Of(8000, 64*resource.GB)}
	if err := s.apply(1, &cluster.Event{Kind: cluster.NodeJoined, NewNode: &other}); err == nil ||
		!strings.Contains(err.Error(), "of a node that left") {
		t.Errorf("joined twice: %v", err)
	}
	name, present, capacity := s.Nodes[0].Name, s.Present, s.Capacity.Sub(s.Nodes[0].Capacity).Add(other.Capacity)
	for _, e := range []cluster.Event{{Kind: cluster.NodePaused, Node: 0}, {Kind: cluster.NodeLeft, Node: 0},
		{Kind: cluster.NodeJoined, NewNode: &other}} {
		if err := s.apply(2, &e); err != nil {
			t.Fatal(err)
		}
	}
	n := s.Nodes[0]
	if n.Gone || n.Paused || n.Free != other.Capacity || n.Version <= before || len(n.Tasks) > 0 ||
		s.Present != present || s.Capacity != capacity {
		t.Errorf("the node is %+v, the snapshot has %d nodes of %v", n, s.Present, s.Capacity)
	}
	if _, here := s.byName[name]; here || s.byName["other"] != n {
		t.Errorf("the names are %v", s.byName)
	}
	p := newPlan(5, s, 0)
	p.Start(s.Jobs[0], 0, n, resource.GB, cluster.BecauseFits(0))
	if _, err := p.close(nil); err != nil {
		t.Error(err)
	}
}
