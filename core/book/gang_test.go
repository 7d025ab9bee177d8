package book

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// A plan refuses half a gang: the tasks of a stage that start together.
func TestGangOrNothing(t *testing.T) {
	start := func(tasks int) error {
		s := newSnapshot()
		for _, e := range []cluster.Event{{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(4*resource.Core, 4*resource.GiB)}},
			{Kind: cluster.JobSubmitted,
				NewJob: &cluster.Job{ID: 1,
					Stages: []cluster.Stage{{Tasks: 3, Together: true, Ideal: resource.Of(resource.Core, resource.GiB)}}}},
			{Kind: cluster.Synced}} {
			if err := s.apply(0, &e); err != nil {
				t.Fatal(err)
			}
		}
		p := newPlan(1, s, 0)
		for range tasks {
			p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GiB, cluster.BecauseFits(resource.GiB))
		}
		_, err := p.close(nil)
		return err
	}
	for tasks, want := range map[int]string{0: "", 1: "2 of them were not started", 2: "1 of them were not started",
		3: ""} {
		if err := start(tasks); want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d of 3 tasks: %v, want %q", tasks, err, want)
		}
	}
}
