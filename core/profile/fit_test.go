package profile

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// drawSamples returns 2 to 9 sizes with any run times and, for half of the draws, spilled bytes.
func drawSamples(t *rapid.T) []Sample {
	known := rapid.Bool().Draw(t, "known")
	memory := resource.Amount(0)
	var s []Sample
	for range rapid.IntRange(2, 9).Draw(t, "sizes") {
		memory += resource.Amount(rapid.Int64Range(1, 500).Draw(t, "step")) * resource.MiB
		x := Sample{Memory: memory, Duration: time.Duration(rapid.Int64Range(1, 60_000).Draw(t, "ms")) * time.Millisecond,
			SpilledKnown: known}
		if known {
			x.Spilled = resource.Amount(rapid.Int64Range(0, 1000).Draw(t, "spilled")) * resource.MiB
		}
		s = append(s, x)
	}
	return s
}

func drawProgram(t *rapid.T) Program {
	return Program{Buffer: Buffer{
		Share:    rapid.Float64Range(0.3, 1).Draw(t, "share"),
		Overhead: resource.Amount(rapid.Int64Range(0, 20).Draw(t, "overhead")) * resource.MiB,
	}}
}

// The slow twin of pooling: the value at i is the least over starts a <= i of the greatest mean of a..b with b >= i.
func TestNonIncreasingIsMinMax(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSamples(t)
		got := nonIncreasing(s)
		for i := range s {
			want := math.Inf(1)
			for a := 0; a <= i; a++ {
				greatest := 0.0
				for b := i; b < len(s); b++ {
					sum := 0.0
					for _, x := range s[a : b+1] {
						sum += float64(x.Duration)
					}
					greatest = max(greatest, sum/float64(b+1-a))
				}
				want = min(want, greatest)
			}
			if math.Abs(float64(got[i])-want) > 1 {
				t.Fatalf("size %d: %d ns, want %.0f", i, got[i], want)
			}
		}
	})
}

func TestMonotoneNeverRises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSamples(t)
		m, err := FitKind(Monotone, s, Program{Buffer: WholeMemory})
		if err != nil {
			t.Fatal(err)
		}
		before := time.Duration(math.MaxInt64)
		for memory := resource.Amount(1); memory < s[len(s)-1].Memory+resource.GiB; memory += 7*resource.MiB + 1 {
			d := m.Duration(memory)
			if d <= 0 || d > before {
				t.Fatalf("at %d bytes: %v after %v with less memory", memory, d, before)
			}
			before = d
		}
	})
}

// Whatever was measured, a fit that succeeds is valid, survives its JSON form, does not depend on the order of samples,
// and gives the scheduler something valid.
func TestFitIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSamples(t)
		program := drawProgram(t)
		m, report, err := Fit(s, program)
		if err != nil {
			t.Fatal(err) // Monotone and Interpolated always fit
		}
		if again, _, _ := Fit(rapid.Permutation(s).Draw(t, "order"), program); !reflect.DeepEqual(m, again) {
			t.Fatalf("order matters: %+v and %+v", m, again)
		}
		if report.Chosen != m.Kind || !strings.HasPrefix(report.Explain(), m.Kind.String()) {
			t.Fatalf("report %+v explains another model than %+v: %s", report, m, report.Explain())
		}
		checkRoundTrip(t, m)
		checkScheduler(t, m)
	})
}

func checkScheduler(t rapid.TB, m Model) {
	t.Helper()
	job := cluster.Job{Name: "profiled", Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, 0)}}}
	m.Apply(&job.Stages[0])
	if err := job.Check(); err != nil {
		t.Fatalf("%v, from %+v", err, m)
	}
	for _, memory := range []resource.Amount{m.MinMemory, (m.MinMemory + m.IdealMemory) / 2, m.IdealMemory} {
		if d, ok := job.Stages[0].DurationAt(memory); !ok || d < 0 {
			t.Fatalf("run time at %d bytes: %v, %v, from %+v", memory, d, ok, m)
		}
	}
}

// Runs that follow the saw-tooth exactly are predicted exactly wherever the input is known, and the kind is found.
func TestSawToothIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		program := drawProgram(t)
		program.Input = resource.Amount(rapid.Int64Range(400, 4000).Draw(t, "input")) * resource.MiB
		rate := float64(rapid.Int64Range(20, 500).Draw(t, "MiB/s")) * float64(resource.MiB)
		ideal := rapid.Float64Range(0.5, 20).Draw(t, "ideal")
		expansion := rapid.Float64Range(0.5, 5).Draw(t, "expansion")
		at := func(memory resource.Amount) Sample {
			spilled := SpilledWhole(program.Input, program.Buffer.At(memory))
			return Sample{Memory: memory, Duration: duration(ideal + float64(spilled)/rate),
				Spilled: resource.Amount(float64(spilled) / expansion), SpilledKnown: true}
		}
		top := program.Buffer.MemoryBelow(program.Input, maxMemory) + resource.MiB
		var s []Sample
		for _, percent := range []resource.Amount{15, 24, 33, 52, 70, 95} {
			s = append(s, at(top*percent/100))
		}
		s = append(s, at(top))
		m, report, err := Fit(s, program)
		if err != nil {
			t.Fatal(err)
		}
		if m.Kind != SawTooth {
			t.Fatalf("chose %s", report.Explain())
		}
		for percent := resource.Amount(12); percent <= 100; percent += 3 {
			want := at(top * percent / 100).Duration
			if e := relative(m.Duration(top*percent/100), want); math.Abs(e) > 1e-4 {
				t.Fatalf("at %d %%: off by %g", percent, e)
			}
		}
		if math.Abs(m.Expansion/expansion-1) > 1e-4 {
			t.Fatalf("expansion %g, want %g", m.Expansion, expansion)
		}
		if lowest := report.Trials[1]; lowest.Missed > 1e-4 {
			t.Fatalf("sawtooth missed its own data by %g", lowest.Missed)
		}
	})
}

func TestTwoRunsAreEnoughForThePaper(t *testing.T) {
	program := Program{Buffer: WholeMemory, Input: 2010 * mb}
	runs := []Sample{{Memory: 1050 * mb, Duration: 205 * time.Second}, {Memory: 2500 * mb, Duration: 100 * time.Second}}
	m, err := FitKind(SawTooth, runs, program)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		memory resource.Amount // MB
		want   time.Duration
	}{{500, 300 * time.Second}, {1500, 250 * time.Second}, {2000, 300 * time.Second}, {2500, 100 * time.Second}} {
		if got := m.Duration(c.memory * mb); (got - c.want).Abs() > time.Millisecond {
			t.Errorf("at %d MB: %v, want %v", c.memory, got, c.want)
		}
	}
	if chosen, report, err := Fit(runs, program); err != nil || chosen.Kind != Step ||
		!strings.Contains(report.Explain(), "too few") {
		t.Errorf("two sizes: %s, %v, want a step and a word that two are few", report.Explain(), err)
	}
}

func TestFitRefuses(t *testing.T) {
	good := []Sample{{Memory: 1 * mb, Duration: time.Second}, {Memory: 2 * mb, Duration: time.Second}}
	for _, c := range []struct {
		name    string
		samples []Sample
		program Program
		want    string
	}{
		{"one size", good[:1], Program{Buffer: WholeMemory}, "samples 1: must be at least 2"},
		{"no memory", []Sample{{Duration: 1}, good[0]}, Program{Buffer: WholeMemory}, "sample memory 0 bytes"},
		{"no time", []Sample{{Memory: mb}, good[1]}, Program{Buffer: WholeMemory}, "duration 0s: must be above 0"},
		{"twice", []Sample{good[0], good[0]}, Program{Buffer: WholeMemory}, "must be given once"},
		{"negative spill", []Sample{good[0], {Memory: 3 * mb, Duration: 1, Spilled: -1, SpilledKnown: true}},
			Program{Buffer: WholeMemory}, "spilled -1 bytes"},
		{"no share", good, Program{}, "buffer share 0: must be above 0"},
		{"overhead", good, Program{Buffer: Buffer{Share: 1, Overhead: -1}}, "buffer overhead -1 bytes"},
		{"input", good, Program{Buffer: WholeMemory, Input: -1}, "input -1 bytes"},
	} {
		if _, _, err := Fit(c.samples, c.program); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want it to say %q", c.name, err, c.want)
		}
	}
	spills := []Sample{
		{Memory: 1 * mb, Duration: 2 * time.Second, Spilled: mb, SpilledKnown: true},
		{Memory: 2 * mb, Duration: time.Second, Spilled: mb, SpilledKnown: true},
	}
	if _, err := FitKind(Step, spills, Program{Buffer: WholeMemory}); err == nil ||
		!strings.Contains(err.Error(), "measure a larger") {
		t.Errorf("every size spills: error %v, want the advice to measure a larger size", err)
	}
}

func TestSampleSummaries(t *testing.T) {
	s := Sample{Duration: 2 * time.Second, Repeats: []time.Duration{3 * time.Second, 2 * time.Second, 4 * time.Second,
		2 * time.Second}}
	if Fastest(s.Repeats) != 2*time.Second || Median(s.Repeats) != 2500*time.Millisecond {
		t.Errorf("fastest %v, median %v", Fastest(s.Repeats), Median(s.Repeats))
	}
	if spread, ok := s.Spread(); !ok || spread != 1 {
		t.Errorf("spread %v, %v, want 1", spread, ok)
	}
	if _, ok := (Sample{Duration: 1, Repeats: s.Repeats[:1]}).Spread(); ok {
		t.Error("one repeat has no spread")
	}
}

// TestSpillsDecideWhereTimesDoNot: measured on a busy machine, where repeats differed by 3 to 37 %, samtools sort looks
// like a step to a clock; what it spilled shows the saw. With the spills unknown the simpler kind stays.
func TestSpillsDecideWhereTimesDoNot(t *testing.T) {
	measured := []struct {
		mib     resource.Amount
		seconds float64
		spread  float64
		spilled resource.Amount // MB
	}{{96, 4.23, .215, 57}, {152, 4.04, .31, 54}, {240, 4.74, .034, 60}, {380, 3.92, .244, 49}, {602, 3.70, .219, 41},
		{952, 1.99, .132, 0}}
	for _, known := range []bool{true, false} {
		var samples []Sample
		for _, m := range measured {
			d := time.Duration(m.seconds * float64(time.Second))
			samples = append(samples, Sample{Memory: m.mib * resource.MiB, Duration: d, Spilled: m.spilled * resource.MB,
				SpilledKnown: known, Repeats: []time.Duration{d, d + time.Duration(m.spread*float64(d))}})
		}
		_, report, err := Fit(samples, Program{Buffer: Buffer{Share: 0.8, Overhead: 16 * resource.MiB}})
		if err != nil {
			t.Fatal(err)
		}
		want := Step
		if known {
			want = SawTooth
		}
		if report.Chosen != want {
			t.Errorf("spills known %v: chose %v, want %v (%s)", known, report.Chosen, want, report.Explain())
		}
	}
}
