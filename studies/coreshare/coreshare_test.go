package coreshare

import (
	"math"
	"testing"

	"github.com/bellows-rm/bellows/sim"
)

// What comes with bellows is complete, and the curve of the simulator is what was measured.
func TestMeasured(t *testing.T) {
	s := Measured()
	if s.Date == "" || s.Processor == "" || s.Kernel == "" || s.Counters == "" || len(s.Programs) < 5 {
		t.Errorf("when, where and what: %+v", s)
	}
	for _, p := range s.Programs {
		if len(p.Points) != 4 {
			t.Errorf("%s: %d points", p.Name, len(p.Points))
		}
		for i := range p.Points {
			at := &p.Points[i]
			e := at.Efficiency()
			if len(at.Pairs) < 5 || !(e.Least <= e.Median && e.Median <= e.Most) {
				t.Errorf("%s with %d copies: %d pairs, %+v", p.Name, at.Copies, len(at.Pairs), e)
			}
		}
	}
	if s.Loss() != sim.SharedCoreLoss {
		t.Errorf("the simulator has %+v, measured was %+v", sim.SharedCoreLoss, s.Loss())
	}
}

// The curve goes through the efficiency of two programs per core, and not below the least.
func TestLossOf(t *testing.T) {
	for _, c := range []struct {
		two, least float64
		want       sim.Loss
	}{
		{0.8, 0.5, sim.Loss{Slope: 0.25, Floor: 0.5}},
		{0.99, 0.99, sim.Loss{Slope: 0.0101, Floor: 0.99}},
		{1.01, 0.98, sim.Loss{}},
	} {
		got := lossOf(c.two, c.least)
		if got != c.want || c.two < 1 && math.Abs(got.Efficiency(2)-c.two) > 1e-3 {
			t.Errorf("%v, %v: %+v", c.two, c.least, got)
		}
	}
}

func TestRatios(t *testing.T) {
	run := func(cpu, wall float64) Run { return Run{CPU: cpu, Wall: wall} }
	p := Point{Copies: 2, Pairs: []Pair{{Together: run(2, 4), Apart: run(1, 8)}, {Together: run(1, 1), Apart: run(1, 1)},
		{Together: run(4, 1), Apart: run(3, 3)}, {Together: run(1, 2), Apart: run(0.9, 2)}}}
	if got := p.Efficiency(); math.Abs(got.Median-0.825) > 1e-9 || got.Least != 0.5 || got.Most != 1 {
		t.Errorf("efficiency %+v", got)
	}
	if got := p.Throughput(); got.Median != 1.5 || got.Least != 1 || got.Most != 3 {
		t.Errorf("throughput %+v", got)
	}
	s := Series{Programs: []Program{{Ordinary: true, Points: []Point{p}}, {Ordinary: true, Points: []Point{{Copies: 2,
		Pairs: []Pair{{Together: run(1, 1), Apart: run(1, 1)}}}}}, {Points: []Point{{Copies: 2,
		Pairs: []Pair{{Together: run(9, 1), Apart: run(1, 1)}}}}}}}
	if mean, ok := s.Mean(2); !ok || math.Abs(mean-math.Sqrt(0.825)) > 1e-9 {
		t.Errorf("mean %v", mean)
	}
	if _, ok := s.Mean(4); ok {
		t.Error("four copies were not measured")
	}
}

// A file that lacks something is refused.
func TestRead(t *testing.T) {
	const pair = `{"together":{"wall_s":1,"cpu_s":1},"apart":{"wall_s":1,"cpu_s":1}}`
	for text, good := range map[string]bool{
		`{"programs":[{"name":"a","points":[{"copies":2,"pairs":[` + pair + `]},{"copies":4,"pairs":[` + pair + `]}]}]}`: true,
		`{"programs":[{"name":"a","points":[{"copies":1,"pairs":[` + pair + `]}]}]}`:                                     false,
		`{"programs":[{"name":"a","points":[{"copies":2,"pairs":[` + pair + `]},{"copies":2,"pairs":[` + pair + `]}]}]}`: false,
		`{"programs":[{"name":"a","points":[{"copies":2,"pairs":[]}]}]}`:                                                 false,
		`{"programs":[{"name":"a","points":[{"copies":2,"pairs":[{"together":{"wall_s":1},"apart":{}}]}]}]}`:             false,
		`{`: false,
	} {
		if _, err := read([]byte(text)); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}
