package leveling

import (
	"math"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// phase is one phase of a task, in seconds.
type phase struct {
	start, end float64
	cpu        resource.Amount
}

// spareOf returns what of a capacity of CPU phases leave.
func spareOf(capacity resource.Amount, phases []phase) *timeline.Timeline {
	var changes []timeline.Step
	for _, p := range phases {
		cpu := func(a resource.Amount) resource.Vector { return resource.Vector{}.With(resource.CPU, a) }
		changes = append(changes, timeline.Step{At: timeline.Seconds(p.start), Value: cpu(-p.cpu)},
			timeline.Step{At: timeline.Seconds(p.end), Value: cpu(p.cpu)})
	}
	var spare timeline.Timeline
	spare.Sum(resource.Vector{}.With(resource.CPU, capacity), changes)
	return &spare
}

// equation16 is RF of the paper, with R_k(s) of equation 15 for each task and stage.
func equation16(capacity resource.Amount, phases []phase, discount float64, ends []float64) (rf float64) {
	for s := 1; s < len(ends); s++ {
		var demand resource.Amount
		for _, p := range phases {
			if p.start <= ends[s-1] && ends[s] <= p.end {
				demand += p.cpu
			}
		}
		rf += math.Pow(discount, float64(s)) * math.Abs(float64(demand-capacity)) * (ends[s] - ends[s-1])
	}
	return rf
}

func TestFluctuation(t *testing.T) {
	const capacity = 4 * resource.Core
	for _, c := range []struct {
		what   string
		phases []phase
		ends   []float64 // of stages, after the begin
		over   float64   // seconds of the whole node, not discounted
	}{
		{"nothing demands", nil, []float64{0, 60}, 0},
		{"the paper's two phases", []phase{{0, 10, 1000}, {0, 30, 2000}}, []float64{0, 10, 30, 60}, 0},
		{"two phases exceed it later", []phase{{0, 10, 3000}, {10, 30, 4000}, {0, 20, 2000}}, []float64{0, 10, 20, 30, 60},
			0.25*10 + 0.5*10},
		{"a phase reaches beyond the window", []phase{{-5, 100, 5000}}, []float64{0, 60}, 0.25 * 60},
		{"a phase ends before it", []phase{{-5, 0, 9000}, {0, 60, 4000}}, []float64{0, 60}, 0},
	} {
		spare, now, until := spareOf(capacity, c.phases), timeline.Time(0), timeline.Seconds(60)
		for _, discount := range []float64{0.5, 0.9} {
			want := equation16(capacity, c.phases, discount, c.ends) / float64(capacity)
			f, _ := Detector{Discount: discount}.Fluctuation(spare, resource.CPU, capacity, now, until)
			if math.Abs(f.Sum()-want) > 1e-9 {
				t.Errorf("%s, discount %v: RF is %v, want %v", c.what, discount, f.Sum(), want)
			}
			for _, threshold := range []float64{want - 0.01, want + 0.01} {
				_, level := Detector{threshold, discount}.Fluctuation(spare, resource.CPU, capacity, now, until)
				if level != (c.over > 0 && threshold < want) {
					t.Errorf("%s: with threshold %v and RF %v, level is %v", c.what, threshold, want, level)
				}
			}
		}
		if f, _ := (Detector{Discount: 1}).Fluctuation(spare, resource.CPU, capacity, now,
			until); math.Abs(f.Over-c.over) > 1e-9 {
			t.Errorf("%s: %v s are over-allocated, want %v s", c.what, f.Over, c.over)
		}
		if f, level := (Detector{Discount: 1}).Fluctuation(spare, resource.CPU, 0, now, until); level || f.Sum() != 0 {
			t.Errorf("%s: without a capacity there is a fluctuation of %+v", c.what, f)
		}
		if f, level := (Detector{Discount: 1}).Fluctuation(spare, resource.CPU, capacity, until, now); level || f.Sum() != 0 {
			t.Errorf("%s: an empty window has a fluctuation of %+v", c.what, f)
		}
	}
}
