package profile

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
)

// Each number has the model that errs least at runs that it was not fitted to: for each model of each number the
// error is that of fits without one run, made one by one, and no other row has a smaller one.
func TestLeastErrorWithOneRunLeftOut(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	s := makeSynthetic(random)
	var h History
	for i := range 12 {
		if _, err := h.Observe(app, s.run(float64(i%4+1), float64(i%3+i/3+1), func(share float64) float64 {
			return math.Exp(share * random.NormFloat64())
		})); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := h.Estimate(app, Features{Cores: 2 * resource.Core, Input: 3 * resource.GiB})
	if len(e.Variants) != 1 {
		t.Fatalf("%d variants", len(e.Variants))
	}
	chosen := map[string]int{}
	for i := range h.apps[app].learned[1][0].targets {
		t0 := &h.apps[app].learned[1][0].targets[i]
		best := t0.models[0]
		chosen[best.name]++
		least := math.Inf(1)
		for _, r := range append([]*row{nil}, &rows[0], &rows[1], &rows[2], &rows[3]) {
			missed, ok := missedOneByOne(t0, r)
			if !ok {
				continue
			}
			least = min(least, missed)
			if (r == nil && best.row == nil || r != nil && best.row != nil && r.name == best.row.name) &&
				math.Abs(missed-best.missed) > 1e-12 {
				t.Errorf("target %d, %s: error %v, one by one %v", i, best.name, best.missed, missed)
			}
		}
		if best.missed > least+1e-12 {
			t.Errorf("target %d: %s errs by %v, another row by %v", i, best.name, best.missed, least)
		}
	}
	if len(chosen) < 2 {
		t.Errorf("all numbers have the same model: %v", chosen)
	}
}

// missedOneByOne returns the weighted mean of the relative errors of a row, nil for the median, at each run of t,
// fitted to a target without that run.
func missedOneByOne(t *target, r *row) (missed float64, ok bool) {
	b := basisOf(t.runs, true)
	total := 0.0
	for _, w := range t.weight {
		total += w
	}
	for i, want := range t.values {
		var x [][]float64
		var y, weight, unit []float64
		for j := range t.runs {
			if j == i || r == nil {
				continue
			}
			x, weight = append(x, r.columns(b, &t.runs[j].Features)), append(weight, t.weight[j])
			if r.log {
				y, unit = append(y, math.Log(t.values[j])), append(unit, 1)
			} else {
				y, unit = append(y, t.values[j]), append(unit, max(t.values[j], t.floor))
			}
		}
		got := t.median(t.runs[i].Input, i)
		if r != nil {
			for _, v := range y {
				if math.IsInf(v, 0) {
					return 0, false
				}
			}
			var l learner
			line, fitted := r.fit(&l, x, y, weight, unit)
			if !fitted {
				return 0, false
			}
			got = r.value(line, r.columns(b, &t.runs[i].Features))
		}
		missed += t.weight[i] / total * math.Abs(got-want) / max(want, t.floor, math.SmallestNonzeroFloat64)
	}
	return missed, true
}
