package book

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

func fewerTasks(a, b *NodeState) bool { return len(a.Tasks) < len(b.Tasks) }

// ofNodes returns a step of a cluster in which a job with many tasks of one core and 1 GB waits.
func ofNodes(t rapid.TB, every time.Duration, capacities []resource.Vector) (*Plan, *JobState) {
	b := NewBook(nil)
	b.Snapshot().Heartbeats.Every = every
	events := []cluster.Event{{Kind: cluster.JobSubmitted,
		NewJob: &cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 100, Ideal: resource.Of(resource.Core, resource.GB)}}}}}
	for i, c := range capacities {
		events = append(events,
			cluster.Event{Kind: cluster.NodeJoined, NewNode: &cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint(i),
				Capacity: c}})
	}
	p := b.Open(0)
	for _, e := range append(events, cluster.Event{Kind: cluster.Synced}) {
		if err := b.Enter(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	return p, p.Jobs[0]
}

// Best is the first in the order of less of the nodes that FirstFit finds one after the other.
func TestBestIsTheLeastOfAllThatFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(t, what) }
		var capacities []resource.Vector
		for range number("nodes", 0, 9) {
			capacities = append(capacities, resource.Of(resource.Amount(number("cores", 1, 4))*resource.Core,
				resource.Amount(number("memory", 1, 4))*resource.GB))
		}
		every := time.Duration(number("heartbeats", 0, 1))
		p, j := ofNodes(t, every, capacities)
		for _, n := range p.Nodes {
			if every > 0 && number("reports", 0, 1) == 1 {
				p.Changes.Heartbeats = append(p.Changes.Heartbeats, n.ID)
			}
			for range number("tasks", 0, 4) {
				if j.Stages[0].Ideal.FitsIn(n.Free) {
					p.Start(j, 0, n, resource.GB, cluster.Reason{})
				}
			}
			if number("reserved", 0, 4) == 0 {
				p.Reserve(n, j, 0, cluster.Reason{})
			}
		}
		need := resource.Of(resource.Amount(number("need", 0, 4))*resource.Core,
			resource.Amount(number("need", 0, 4))*resource.GB)
		var want *NodeState
		for _, n := range p.Nodes {
			if p.Takes(n) && n.ReservedFor == nil && need.FitsIn(n.Free) && (want == nil || fewerTasks(n, want)) {
				want = n
			}
		}
		if got, ok := p.Best(need, fewerTasks); got != want || ok != (want != nil) {
			t.Fatalf("best is %+v, want %+v", got, want)
		}
		if _, fits := p.FirstFit(need); fits != (want != nil) {
			t.Fatalf("a node fits: %v, and the best is %+v", fits, want)
		}
	})
}

// To look for the best node allocates nothing.
func TestBestAllocatesNothing(t *testing.T) {
	p, j := ofNodes(t, 0, []resource.Vector{resource.Of(resource.Core, resource.GB),
		resource.Of(resource.Core, resource.GB)})
	if n := testing.AllocsPerRun(10, func() { p.Best(j.Stages[0].Ideal, fewerTasks) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkBest looks for the node with the fewest tasks, where all nodes have room, and where one in a hundred has.
func BenchmarkBest(b *testing.B) {
	for _, full := range []bool{false, true} {
		for _, nodes := range []int{100, 10_000} {
			b.Run(fmt.Sprintf("full=%v/nodes=%d", full, nodes), func(b *testing.B) {
				capacities := make([]resource.Vector, nodes)
				for i := range capacities {
					if !full || i%100 == 0 {
						capacities[i] = resource.Of(resource.Core, resource.GB)
					}
				}
				p, j := ofNodes(b, 0, capacities)
				for b.Loop() {
					p.Best(j.Stages[0].Ideal, fewerTasks)
				}
			})
		}
	}
}
