package profile

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// planted is a program of five phases that spills if its memory is less than half of its input.
func planted(f Features) (seconds []float64) {
	gib := func(a resource.Amount) float64 { return float64(a) / float64(resource.GiB) }
	input, cores, memory := gib(f.Input), float64(f.Cores)/float64(resource.Core), gib(f.Memory)
	spills := 1.0
	if memory < input/2 {
		spills = 2.5
	}
	return []float64{3 + 40*input/cores, 5 * input * spills, 2 + 8*input, 4 * input / cores * spills,
		20 * input / math.Sqrt(cores)}
}

func drawFeatures(r *rand.Rand) Features {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, r.Float64()) }
	return Features{resource.Amount(between(1000, 8000)), resource.Amount(between(1e9, 16e9)),
		resource.Amount(between(1e9, 8e9))}
}

// phasesOf returns the phases of a run with noise of 8 %.
func phasesOf(f Features, slower float64, r *rand.Rand) (phases []time.Duration) {
	for _, s := range planted(f) {
		phases = append(phases, time.Duration(s*slower*math.Exp(0.08*r.NormFloat64())*float64(time.Second)))
	}
	return phases
}

// missedBy returns the mean relative error of predictions of what is planted.
func missedBy(t *testing.T, slower float64, predict func(f Features) []float64) (mean float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(77, 1))
	const n = 300
	for range n {
		f := drawFeatures(r)
		got := predict(f)
		for i, want := range planted(f) {
			mean += math.Abs(got[i]/(slower*want)-1) / 5 / n
		}
	}
	return mean
}

func (m *PhaseModel) seconds(t *testing.T) func(f Features) []float64 {
	return func(f Features) (all []float64) {
		phases, ok := m.Predict(f)
		if !ok {
			t.Fatalf("no prediction for %+v", f)
		}
		for _, d := range phases {
			all = append(all, d.Seconds())
		}
		return all
	}
}

// With many samples it is better than a power law, with few it does not predict.
func TestPhaseModelLearns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 11))
	var m PhaseModel
	var x, logs [][]float64
	errors := map[int][2]float64{}
	for n := 1; n <= 200; n++ {
		f := drawFeatures(r)
		phases := phasesOf(f, 1, r)
		if err := m.Observe(f, phases); err != nil {
			t.Fatal(err)
		}
		x = append(x, []float64{math.Log(float64(f.Cores)), math.Log(float64(f.Input)), math.Log(float64(f.Memory))})
		var y []float64
		for _, d := range phases {
			y = append(y, math.Log(d.Seconds()))
		}
		logs = append(logs, y)
		if _, ok := m.Predict(f); ok != (n >= FewestPhaseSamples) {
			t.Fatalf("after %d samples it predicts: %v", n, ok)
		}
		if n != 60 && n != 120 && n != 200 {
			continue
		}
		var lines []linear
		for i := range logs[0] {
			var h huber
			var y []float64
			for _, l := range logs {
				y = append(y, l[i])
			}
			line, ok := h.fit(x, y, ones(len(x)), ones(len(x)))
			if !ok {
				t.Fatal("there is no line")
			}
			lines = append(lines, line)
		}
		law := missedBy(t, 1, func(f Features) (all []float64) {
			for _, line := range lines {
				all = append(all, math.Exp(line.at([]float64{math.Log(float64(f.Cores)), math.Log(float64(f.Input)),
					math.Log(float64(f.Memory))})))
			}
			return all
		})
		errors[n] = [2]float64{missedBy(t, 1, m.seconds(t)), law}
		t.Logf("%d samples, %d rules: errors of %.1f %%, of power laws %.1f %%", n, len(m.rules), 100*errors[n][0], 100*law)
	}
	if e := errors[200]; e[0] > 0.09 || e[0] > 0.9*e[1] || errors[60][0] > 0.2 {
		t.Errorf("errors are %v", errors)
	}
}

// A program that becomes slower is followed.
func TestPhaseModelFollowsDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 11))
	var m PhaseModel
	observe := func(n int, slower float64) {
		for range n {
			f := drawFeatures(r)
			if err := m.Observe(f, phasesOf(f, slower, r)); err != nil {
				t.Fatal(err)
			}
		}
	}
	observe(200, 1)
	before := missedBy(t, 1.4, m.seconds(t))
	observe(100, 1.4)
	after := missedBy(t, 1.4, m.seconds(t))
	t.Logf("errors of %.1f %% when it became 40 %% slower, of %.1f %% after 100 samples", 100*before, 100*after)
	if before < 0.25 || after > 0.13 {
		t.Errorf("errors are %v, then %v", before, after)
	}
}

// Whatever is observed, predictions are durations, and the same for the same calls.
func TestPhaseModelOnDegenerateData(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		amount := func(what string, most resource.Amount) resource.Amount {
			return resource.Amount(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 3),
				rapid.Int64Range(0, int64(most))).Draw(rt, what))
		}
		features := func() Features {
			return Features{amount("cores", resource.MostCPU), amount("input", resource.MostMemory),
				amount("memory", resource.MostMemory)}
		}
		kinds := []Features{features(), features(), features()}
		count := rapid.IntRange(1, 3).Draw(rt, "phases")
		var a, b PhaseModel
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		for range rapid.SampledFrom([]int{10, 60, 130, 450}).Draw(rt, "samples") {
			f := kinds[r.IntN(len(kinds))]
			var phases []time.Duration
			for range count {
				phases = append(phases, []time.Duration{0, 1, time.Second, cluster.LongestTime,
					time.Duration(r.Int64N(1e12))}[r.IntN(5)])
			}
			if a.Observe(f, phases) != nil || b.Observe(f, slices.Clone(phases)) != nil {
				rt.Fatal("a run was refused")
			}
		}
		for _, f := range append(kinds, features()) {
			got, ok := a.Predict(f)
			again, same := b.Predict(f)
			if ok != same || !reflect.DeepEqual(got, again) || ok != (len(got) == count) {
				rt.Fatalf("got %v, %v, then %v, %v", got, ok, again, same)
			}
			for _, d := range got {
				if d < leastPhase || d > cluster.LongestTime {
					rt.Fatalf("a phase of %v", d)
				}
			}
		}
	})
}

func TestPhaseModelRefuses(t *testing.T) {
	var m PhaseModel
	if err := m.Observe(Features{}, []time.Duration{1, 2}); err != nil {
		t.Fatal(err)
	}
	for want, phases := range map[string][]time.Duration{
		"0 phases: must be 2, as in runs before":                nil,
		"1 phases: must be 2, as in runs before":                {1},
		"phase 2 duration -1ns: must be 0s to 87600h0m0s":       {1, -1},
		"phase 1 duration 87600h0m0.000000001s: must be 0s to ": {cluster.LongestTime + 1, 1},
	} {
		if err := m.Observe(Features{}, phases); err == nil || len(err.Error()) < len(want) ||
			err.Error()[:len(want)] != want {
			t.Errorf("%v: got %v, want %s", phases, err, want)
		}
	}
	if err := new(PhaseModel).Observe(Features{}, nil); err == nil {
		t.Error("a run without phases was taken")
	}
}

// Far outside of what was measured, and without a feature that matters, it does not predict.
func TestPhaseModelKnowsItsRange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 11))
	var m PhaseModel
	for range 100 {
		f := drawFeatures(r)
		f.Memory = 0
		if err := m.Observe(f, phasesOf(f, 1, r)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		f    Features
		want bool
	}{
		{Features{Cores: 2000, Input: 4e9}, true},
		{Features{Cores: 2000, Input: 100e9}, true},
		{Features{Cores: 2000, Input: 1000e9}, false},
		{Features{Cores: 2000}, false},
		{Features{Input: 4e9}, false},
	} {
		if phases, ok := m.Predict(c.f); ok != c.want {
			t.Errorf("%+v: got %v, %v", c.f, phases, ok)
		}
	}
}

func BenchmarkPhaseModelObserve(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 11))
	var m PhaseModel
	b.ReportAllocs()
	for b.Loop() {
		f := drawFeatures(r)
		if err := m.Observe(f, phasesOf(f, 1, r)); err != nil {
			b.Fatal(err)
		}
	}
}
