package profile

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/resource"
)

// sqlite sorting a table that fits its cache from 300 MiB on: below 75 MiB its indexes no longer do. One run of each
// size.
var sqlite = []measured{{60, 0, []float64{47.24}}, {134, 0, []float64{4.51}}, {300, 0, []float64{2.81}}}

// TestCliffIsNotSmoothedAway: one kind smooths 16.8 times into 1.75, and has the smaller error with one size left out.
func TestCliffIsNotSmoothedAway(t *testing.T) {
	for _, c := range []struct {
		name string
		runs []measured
	}{
		{"three sizes", sqlite},
		{"alone on the machine", []measured{{60, 0, []float64{60.0}}, {75, 0, []float64{10.7}}, {150, 0, []float64{6.9}},
			{300, 0, []float64{4.2}}}},
		{"it writes a log with more memory", []measured{{60, 0, []float64{47.24}}, {134, 1, []float64{4.51}},
			{300, 40, []float64{2.81}}}},
		{"it spills before the cliff", []measured{{60, 40, []float64{47.24}}, {134, 0, []float64{4.51}},
			{300, 0, []float64{2.81}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, report, err := Fit(samples(c.runs), Program{Buffer: Buffer{Share: 0.35}})
			if err != nil {
				t.Fatal(err)
			}
			least, most := c.runs[0], c.runs[len(c.runs)-1]
			want := least.seconds[0] / most.seconds[0]
			e := m.Elasticity()
			if got := e.Worst(); got < 0.99*want || got > 1.01*want {
				t.Errorf("%s: %.2f times as long at worst, measured %.2f", report.Explain(), got, want)
			}
		})
	}
}

func TestContradictedKindsAreRefused(t *testing.T) {
	_, report, err := Fit(samples(sqlite), Program{Buffer: WholeMemory})
	if err != nil {
		t.Fatal(err)
	}
	if text := report.Explain(); !strings.Contains(text, "at 134MiB, where 4.51s was measured") {
		t.Errorf("%q: must say why a step is refused", text)
	}
}

// TestFitIsFaithful: whatever was measured, the model that is chosen is not contradicted by it.
func TestFitIsFaithful(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSamples(t)
		m, report, err := Fit(s, drawProgram(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range s {
			if got := m.Duration(x.Memory); x.Contradicts(got) {
				t.Fatalf("%s says %v at %s, measured %v", report.Chosen, got, resource.FormatMemory(x.Memory), x.Duration)
			}
		}
	})
}

func TestContradicts(t *testing.T) {
	s := Sample{Duration: 10 * time.Second, Repeats: []time.Duration{10 * time.Second, 20 * time.Second}}
	for _, c := range []struct {
		seconds float64
		want    bool
	}{{8, true}, {9, false}, {15, false}, {22, false}, {24, true}} {
		if got := s.Contradicts(duration(c.seconds)); got != c.want {
			t.Errorf("%v s, measured 10 to 20 s: contradicts %v", c.seconds, got)
		}
	}
}

func TestNoise(t *testing.T) {
	for _, c := range []struct {
		name    string
		seconds []float64
		ok      bool
		reached bool
	}{
		{"one run", []float64{10}, false, false},
		{"alike", []float64{10, 10.2, 10.4}, true, true},
		{"one slow run", []float64{10, 10.2, 30}, true, true},
		{"two of three slow", []float64{10, 20, 30}, true, false},
		{"H2 beside other work", []float64{10, 24, 29.4, 44.2}, true, false},
	} {
		s := measured{memory: 64, seconds: c.seconds}.sample()
		if _, ok := s.Noise(); ok != c.ok {
			t.Errorf("%s: noise known %v", c.name, ok)
		}
		fitted := samples([]measured{{32, 0, []float64{10, 10}}, {128, 0, []float64{10, 10}}})
		m, _, err := Fit(fitted, Program{Buffer: WholeMemory})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Evaluate(m, fitted, []Sample{s})
		if err != nil || e.Reached() != c.reached || e.Judged() != c.reached {
			t.Errorf("%s: goal reached %v, judged %v, %v", c.name, e.Reached(), e.Judged(), err)
		}
	}
}
