package book

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// What suits a job is known until the node leaves or says otherwise, another engine learns of it, and of jobs that are
// not here nothing is kept.
func TestSuits(t *testing.T) {
	s := bookOf(t, driven())
	enter := func(e cluster.Event) {
		t.Helper()
		if err := s.apply(2, &e); err != nil {
			t.Fatal(err)
		}
	}
	node := *joins(cluster.NodeID(len(s.Nodes))).NewNode
	last := node.ID
	enter(cluster.Event{Kind: cluster.NodeJoined, NewNode: &node})
	keeps := &cluster.Condition{Keeps: true}
	suits := func(id cluster.NodeID, job cluster.JobID, c *cluster.Condition) {
		t.Helper()
		enter(cluster.Event{Kind: cluster.NodeSuits, Node: id, Job: job, Found: c})
	}
	want := func(want ...Suit) {
		t.Helper()
		other := newSnapshot()
		for _, e := range s.Inventory(2) {
			if err := other.apply(2, &e); err != nil {
				t.Fatal(err)
			}
		}
		for _, j := range []*JobState{s.Jobs[0], other.Jobs[0]} {
			if !slices.Equal(j.Suits, want) {
				t.Errorf("%v suit the job, want %v", j.Suits, want)
			}
		}
	}
	suits(last, 1, keeps)
	suits(0, 1, keeps)
	suits(0, 1, keeps)
	suits(0, 77, keeps)
	want(Suit{Node: 0, Keeps: true}, Suit{Node: last, Keeps: true})
	suits(0, 1, &cluster.Condition{Keeps: true, Fails: true})
	want(Suit{Node: 0, Keeps: true, Fails: true}, Suit{Node: last, Keeps: true})
	if j := s.Jobs[0]; !j.FailsOn(0) || j.FailsOn(last) {
		t.Errorf("it fails on %v", j.Suits)
	}
	suits(0, 1, keeps)
	want(Suit{Node: 0, Keeps: true}, Suit{Node: last, Keeps: true})
	suits(0, 1, nil)
	suits(0, 1, nil)
	want(Suit{Node: last, Keeps: true})
	enter(cluster.Event{Kind: cluster.NodeLeft, Node: last})
	want()
	refuses(t, s, &cluster.Event{Kind: cluster.NodeSuits, Node: last, Job: 1, Found: keeps}, "not in the cluster")
}

// How much memory on a node is in swap is known until it is said otherwise, or the node leaves, and another engine
// learns of it. It bounds nothing.
func TestPagedOut(t *testing.T) {
	s := bookOf(t, driven())
	enter := func(e cluster.Event, want resource.Amount) {
		t.Helper()
		free := s.Nodes[0].Free
		if err := s.apply(2, &e); err != nil {
			t.Fatal(err)
		}
		other := newSnapshot()
		for _, e := range s.Inventory(2) {
			if err := other.apply(2, &e); err != nil {
				t.Fatal(err)
			}
		}
		if n, o := s.Nodes[0], other.Nodes[0]; n.Out != want || o.Out != want || n.Free != free {
			t.Errorf("%d bytes are in swap, another engine knows of %d, want %d; free are %v, and were %v", n.Out, o.Out, want,
				n.Free, free)
		}
	}
	enter(cluster.Event{Kind: cluster.NodePagedOut, Held: 5}, 5)
	enter(cluster.Event{Kind: cluster.NodePagedOut}, 0)
	enter(cluster.Event{Kind: cluster.NodePagedOut, Held: 7}, 7)
	node := s.Nodes[0].Node
	for _, e := range []cluster.Event{{Kind: cluster.NodeLeft}, {Kind: cluster.NodeJoined, NewNode: &node}} {
		if err := s.apply(3, &e); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Nodes[0]; n.Out != 0 {
		t.Errorf("%d bytes are in swap of a node that has just joined", n.Out)
	}
}
