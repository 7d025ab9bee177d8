package workload

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Quantiles of weighted values equal those of a list that repeats each value by its weight.
func TestQuantilesAreOfAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w weighted
		var list []float64
		for range rapid.IntRange(1, 10).Draw(t, "values") {
			v, n := float64(rapid.IntRange(0, 9).Draw(t, "value")), rapid.IntRange(1, 30).Draw(t, "weight")
			w.add(v, int64(n))
			list = append(list, slices.Repeat([]float64{v}, n)...)
		}
		slices.Sort(list)
		at := func(percent int) float64 { return list[(percent*len(list)+99)/100-1] }
		got := w.quantiles()
		want := Quantiles{Count: int64(len(list)), Min: list[0], P25: at(25), P50: at(50), P75: at(75), P90: at(90),
			P99: at(99), Max: list[len(list)-1], Mean: got.Mean}
		if got != want {
			t.Fatalf("%v gives %+v, want %+v", list, got, want)
		}
		sum := 0.0
		for _, v := range list {
			sum += v
		}
		if diff := got.Mean - sum/float64(len(list)); diff > 1e-9 || diff < -1e-9 {
			t.Fatalf("mean %v of %v", got.Mean, list)
		}
	})
}

func TestSummarise(t *testing.T) {
	need := resource.Of(2000, 1000)
	w := &Workload{Jobs: []Job{
		{After: -1, Job: cluster.Job{Submitted: timeline.Time(5 * time.Second), Stages: []cluster.Stage{
			{Tasks: 2, Ideal: need, Duration: 10 * time.Second, MinMemory: 10,
				Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2}},
			{Tasks: 1, Ideal: need, Duration: 7 * time.Second, Parents: []int{0}},
			{Tasks: 1, Coordinator: true},
		}}, Truth: []StageTruth{{Duration: ForEach([]time.Duration{4 * time.Second, 20 * time.Second})}, {}, {}}},
		{After: -1, Job: cluster.Job{Submitted: timeline.Time(65 * time.Second),
			Stages: []cluster.Stage{{Tasks: 1, Ideal: need, Duration: 8 * time.Second}}},
			Truth: []StageTruth{{Phases: ForAll([]cluster.Phase{
				{Duration: time.Second, Demand: resource.Vector{1000, 400, 10, 0}},
				{Duration: 3 * time.Second, Demand: resource.Vector{0, 800, 0, 2}},
			})}}},
	}}
	s := Summarise(w)
	if s.Jobs != 2 || s.Stages != 4 || s.Edges != 1 || s.Tasks != 4 || s.Elastic != 2 || s.Phased != 1 {
		t.Errorf("counts: %+v", s)
	}
	if s.Span != time.Minute || s.LongestPath != 27*time.Second || s.Gap.Count != 1 || s.Gap.Max != 60 {
		t.Errorf("span %v, longest path %v, gap %+v", s.Span, s.LongestPath, s.Gap)
	}
	// 24 s and 7 s, and phases of 1 s and 3 s, which are the truth of an estimate of 8 s.
	if want := [resource.NumKinds]float64{35 * 2000, 35 * 1000}; s.Work != want {
		t.Errorf("work %v, want %v", s.Work, want)
	}
	if want := [resource.NumKinds]float64{31*2000 + 1000, 31*1000 + 400 + 3*800, 10, 6}; s.Used != want {
		t.Errorf("used %v, want %v", s.Used, want)
	}
	if s.Largest != need || s.MemoryUsed.Min != 800 || s.Memory.Min != 1000 {
		t.Errorf("sizes: %+v", s)
	}
}
