package book

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// TestLack: the reason of a job that waits for room names what no node has enough of, and nothing else.
func TestLack(t *testing.T) {
	const gb, core = resource.GB, resource.Core
	for _, c := range []struct {
		name  string
		nodes []resource.Vector // free on each node
		keep  bool              // the first node is reserved
		need  resource.Vector
		want  string
	}{
		{"cores", []resource.Vector{resource.Of(core/5, 8*gb)}, false, resource.Of(300, gb), "no node has 300m cores free"},
		{"memory", []resource.Vector{resource.Of(4*core, gb)}, false, resource.Of(core, 2*gb), "no node has 2GB free"},
		{"both", []resource.Vector{resource.Of(core, gb)}, false, resource.Of(2*core, 2*gb),
			"no node has 2GB and 2 cores free"},
		{"each elsewhere", []resource.Vector{resource.Of(core, 8*gb), resource.Of(8*core, gb)}, false,
			resource.Of(2*core, 2*gb), "no node has 2GB and 2 cores free"},
		{"on a reserved node", []resource.Vector{resource.Of(core, 8*gb), resource.Of(core, gb)}, true,
			resource.Of(2*core, 2*gb), "no node has 2 cores free"},
		{"no node", nil, false, resource.Of(core, gb), "no node has 1GB and 1 core free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSnapshot()
			apply := func(e cluster.Event) {
				t.Helper()
				if err := s.apply(0, &e); err != nil {
					t.Fatal(err)
				}
			}
			for i, v := range c.nodes {
				e := joins(cluster.NodeID(i))
				e.NewNode.Capacity = v
				apply(e)
			}
			apply(cluster.Event{Kind: cluster.JobSubmitted, NewJob: twoStages(1)})
			apply(cluster.Event{Kind: cluster.Synced})
			p := newPlan(0, s, 0)
			j := s.Jobs[0]
			if c.keep {
				p.Reserve(s.Nodes[0], j, 0, cluster.BecauseNodeReserved(1))
			}
			p.Wait(j, 0, 0, cluster.BecauseNoRoom(c.need))
			if got := j.Waiting.Words(nil); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	// A reason that does not say what lacks names both resources.
	if got := cluster.BecauseNoRoom(resource.Of(core, gb)).Words(nil); got != "no node has 1GB and 1 core free" {
		t.Error(got)
	}
}
