package pufferfish

import (
	"math"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

func TestMemoryWatch(t *testing.T) {
	one := cluster.ContainerID{Task: cluster.TaskID{Job: 1}, Run: 1}
	two := cluster.ContainerID{Task: cluster.TaskID{Job: 2}, Run: 1}
	again := two
	again.Run = 2
	state := func(at int, c cluster.ContainerID, gb resource.Amount) sim.ContainerMemory {
		return sim.ContainerMemory{At: timeline.Seconds(float64(at)), Container: c, Class: cluster.Flex,
			Limit: gb * resource.GB}
	}
	order := func(at int, c cluster.ContainerID, kind memory.ActionKind, why memory.ReasonCode) memoryOrder {
		return memoryOrder{timeline.Seconds(float64(at)),
			memory.Action{Kind: kind, Container: c, Reason: memory.Reason{Code: why}}}
	}
	w := memoryWatch{
		states: []sim.ContainerMemory{state(1, one, 4), state(2, two, 4), state(2, one, 6), state(5, two, 0),
			state(9, again, 4), state(10, one, 5)},
		orders: []memoryOrder{order(5, two, memory.Kill, memory.Exhausted), order(10, one, memory.Shrink, memory.Slack),
			order(12, again, memory.Grow, memory.RoomToGrow)},
	}
	all := func(sim.ContainerMemory) bool { return true }
	x, y := w.over(all, limitOf)
	if !slices.Equal(x, []float64{1, 2, 5, 9, 10}) || !slices.Equal(y, []float64{4, 10, 6, 10, 9}) {
		t.Errorf("limits of all: %v at %v", y, x)
	}
	if x, y = w.over(ofJob(2), limitOf); !slices.Equal(x, []float64{2, 5, 9}) || !slices.Equal(y, []float64{4, 0, 4}) {
		t.Errorf("limits of one: %v at %v", y, x)
	}
	if kills := w.kills(2); !slices.Equal(kills, []float64{5}) || w.back(2, 5) != 4 || !math.IsNaN(w.back(1, 10)) {
		t.Errorf("killed at %v, back after %v", kills, w.back(2, 5))
	}
	if shrunk, given := w.slackOf(1); shrunk != 10 || given != 2 {
		t.Errorf("slack at %v, given %v later", shrunk, given)
	}
}

// TestShortQueries: the stream uses the intended memory on average.
func TestShortQueries(t *testing.T) {
	for _, load := range []resource.Amount{queryLoad, heavyLoad} {
		var held []float64
		for seed := range uint64(20) {
			sum := 0.0
			for _, j := range shortQueries(seed, load) {
				s := j.Stages[0]
				sum += float64(s.Tasks) * float64(s.Ideal[resource.Memory]) * s.Duration.Seconds() / (15 * 60)
			}
			held = append(held, sum/float64(load))
		}
		if m := lab.Mean(held); m < 0.95 || m > 1.05 {
			t.Errorf("load of %s: %.3f of it on average", gigabytes(load), m)
		}
	}
}
