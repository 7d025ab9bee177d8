package ecs

import (
	"math"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// TestDeviationsOfECS: the phases of the models deviate as Table I says, and make up the time of a task.
func TestDeviationsOfECS(t *testing.T) {
	for i := range benchmarks {
		b := &benchmarks[i]
		for k, phases := range [][]cluster.Phase{usual.phasesOfMap(b, 1), usual.phasesOfReduce(b, 1)} {
			if got := deviationOf(phases); math.Abs(got-b.deviations[k]) > 0.0005 {
				t.Errorf("%s, stage %d: deviation %.4f, want %.2f", b.name, k, got, b.deviations[k])
			}
			lasts := lab.UsageOf(phases).Lasts
			if want := []float64{usual.mapTime.Seconds(), usual.reduceTime.Seconds()}[k]; math.Abs(lasts-want) > 0.01 {
				t.Errorf("%s, stage %d: %.2f s, want %.0f", b.name, k, lasts, want)
			}
			for _, p := range phases {
				if p.Duration <= 0 || !p.Demand.FitsIn(usual.native) {
					t.Errorf("%s, stage %d: phase %s lasts %v and demands %v", b.name, k, p.Name, p.Duration, p.Demand)
				}
			}
		}
	}
	if got := deviationOf([]cluster.Phase{phase("", 3, demand(2, 1)), phase("", 1, demand(0, 1))}); math.Abs(
		got-math.Sqrt(3)/4) > 1e-9 {
		t.Errorf("2 cores for three quarters of the time deviate by %v of the peak", got)
	}
	if least := clusters[0].cores(); least != 252 || clusters[1].cores() != 260 ||
		len(clusters[0].cluster().Nodes) != 14 {
		t.Errorf("%d cores", least)
	}
	if n := clusters[1].cluster().Nodes; n[4].Capacity[resource.CPU] != 16*resource.Core ||
		n[5].Capacity[resource.CPU] != 20*resource.Core {
		t.Errorf("nodes %v", n)
	}
}
