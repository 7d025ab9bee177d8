package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Nodes without news skip their heartbeats. When a barrier opens, all nodes must be notified: the only node that can
// run the next stage may not be the one that reports the end of the previous stage.
func TestBarrierWakesNodes(t *testing.T) {
	nodes := sim.Uniform(2, resource.Of(resource.Core, 4*resource.GB))
	nodes[1].Capacity[resource.Memory] = 8 * resource.GB
	for _, coordinator := range []time.Duration{0, time.Second} {
		for _, name := range policy.Names() {
			p, err := policy.New(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			w := &workload.Workload{Jobs: []workload.Job{{After: -1, Job: cluster.Job{ID: 1, Name: "A", Stages: []cluster.Stage{
				{Name: "map", Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB), Duration: 10 * time.Second},
				{Name: "reduce", Tasks: 1, Parents: []int{0}, Ideal: resource.Of(resource.Core, 8*resource.GB),
					Duration: 10 * time.Second},
			}}}}}
			res, err := sim.Run(sim.Config{Nodes: nodes, Heartbeat: time.Second, StartsPerHeartbeat: 1,
				CoordinatorHeartbeat: coordinator}, w, p)
			if err != nil {
				t.Fatal(err)
			}
			if left := res.Unfinished(); len(left) > 0 {
				t.Errorf("%s with coordinator heartbeat %v: job does not end: %s", name, coordinator, left[0].Stuck)
			}
		}
	}
}
