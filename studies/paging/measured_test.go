package paging

import (
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/sim"
)

// What comes with bellows is complete, and says what studies/measured.md says of it.
func TestMeasuredPaging(t *testing.T) {
	p := Measured()
	if p.Date == "" || p.Device == "" || p.Kernel == "" || p.Swap != "file" {
		t.Errorf("when and where: %+v", p)
	}
	want := map[string]float64{ // break-even, 0 means none
		"merge": 0, "sort": 0.95, "hash": 0, "scan": 0.944,
	}
	if len(p.Curves) != len(want) {
		t.Errorf("%d curves, want %d", len(p.Curves), len(want))
	}
	for _, c := range p.Curves {
		from, ok := c.BreakEven()
		if w := want[c.Pattern]; ok != (w > 0) || from < w-0.002 || from > w+0.002 {
			t.Errorf("%s: break-even %v %v, want %v", c.Pattern, from, ok, w)
		}
		if len(c.Points) < 9 || c.Points[0].Share > 0.1 {
			t.Errorf("%s: %d sizes from %v", c.Pattern, len(c.Points), c.Points[0].Share)
		}
		for _, at := range c.Points {
			if !at.Spill.Known() || !at.Page.Known() {
				t.Errorf("%s at %v: not measured both ways", c.Pattern, at.Share)
			}
			cheaper := ok && at.Share >= from && at.Share < 1
			faster := at.Share < 1 && at.Page.Failures == 0 && !at.Page.AtLeast() && at.Page.Median() <= at.Spill.Median()
			if cheaper != faster {
				t.Errorf("%s at %v: cheaper to page is %v, but it took %.2f s and spilling %.2f s", c.Pattern, at.Share, cheaper,
					at.Page.Median(), at.Spill.Median())
			}
			if at.Share <= 0.9 && cheaper {
				t.Errorf("%s at %v: paging is cheaper, studies/measured.md says nowhere below 94 %%", c.Pattern, at.Share)
			}
		}
	}
}

// The simulator's curve is that of the program that merges.
func TestCurveOfTheSimulator(t *testing.T) {
	p := Measured()
	curve, ok := p.Curve("merge")
	if !ok {
		t.Fatal("merge has not been measured")
	}
	var want sim.Paging
	for _, at := range curve.Points {
		if s, ok := curve.PageSlowdown(at.Share); ok {
			want = append(want, sim.PagingPoint{Resident: at.Share, Slowdown: s.Factor})
		}
	}
	if !slices.Equal(sim.MeasuredPaging, want) {
		t.Errorf("the simulator has %v, measured were %v", sim.MeasuredPaging, want)
	}
}
