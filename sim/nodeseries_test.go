package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
)

// Two nodes with a disk of 100 MB/s; the second leaves at 30 s, empty. On the first, two tasks demand 60 MB/s each
// for 60 s, which takes 72 s, and 10 MB/s each for 40 s more:
//
//	0 s to 72 s    demand 120, over 20 x 72 = 1440 MB
//	72 s to 112 s  demand 20, idle 80 x 40 = 3200 MB
func TestNodeSeries(t *testing.T) {
	reads := phases(phase(60*time.Second, vector(0.5, 0.5, 60, 0)), phase(40*time.Second, vector(1, 1, 10, 0)))
	c := sim.Config{Nodes: sim.Uniform(2, vector(2, 4, 100, 0)), Series: sim.SeriesOptions{Nodes: true},
		Incidents: []sim.Incident{{At: 30 * time.Second, Kind: sim.NodeLoss, Node: 1}}}
	r := simulate(t, c, "fifo", oneStage(1, 2, reads))
	if len(r.Nodes) != 2 || r.Series != nil {
		t.Fatalf("%+v", r)
	}
	areas := func(node int, k resource.Kind, from, until, wantIdle, wantOver float64) {
		t.Helper()
		idle, over := r.Nodes[node].Areas(k, timeline.Seconds(from), timeline.Seconds(until))
		if a, b := idle.UnitSeconds()/1e6, over.UnitSeconds()/1e6; a != wantIdle || b != wantOver {
			t.Errorf("node %d, %v from %vs to %vs: %v idle, %v over, want %v and %v", node, k, from, until, a, b, wantIdle,
				wantOver)
		}
	}
	areas(0, resource.Disk, 0, 112, 3200, 1440)
	areas(0, resource.Disk, 62, 82, 800, 200)
	areas(0, resource.Network, 0, 112, 0, 0)
	areas(1, resource.Disk, 0, 112, 3000, 0)
	for at, want := range map[float64]sim.NodeStep{
		0: {Capacity: vector(2, 4, 100, 0), Granted: vector(2, 2, 0, 0), Demand: vector(1, 1, 120, 0),
			Used: vector(1*5/6.0, 1, 100, 0)},
		72: {Capacity: vector(2, 4, 100, 0), Granted: vector(2, 2, 0, 0), Demand: vector(2, 2, 20, 0),
			Used: vector(2, 2, 20, 0)},
		112: {Capacity: vector(2, 4, 100, 0)},
	} {
		found := false
		for _, s := range r.Nodes[0].Steps {
			if s.At != timeline.Seconds(at) {
				continue
			}
			found = s.Capacity == want.Capacity && s.Granted == want.Granted && s.Demand == want.Demand
			for k := range s.Used {
				found = found && s.Used[k]-want.Used[k] <= 2 && want.Used[k]-s.Used[k] <= 2
			}
			if !found {
				t.Errorf("at %vs: %+v, want %+v", at, s, want)
			}
		}
		if !found {
			t.Errorf("no step at %vs as it should be", at)
		}
	}
}
