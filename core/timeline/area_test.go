package timeline

import (
	"math"
	"math/big"
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// TestArea compares areas with integers of any size.
func TestArea(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var got Area
		want := new(big.Int)
		for range rapid.IntRange(1, 20).Draw(rt, "terms") {
			amount := rapid.Int64Range(-(1<<50), 1<<50).Draw(rt, "amount")
			at := rapid.Int64Range(-(1<<62), 1<<62).Draw(rt, "time")
			term := new(big.Int).Mul(big.NewInt(amount), big.NewInt(at))
			if rapid.Bool().Draw(rt, "add") {
				got = got.Add(AreaOf(resource.Amount(amount), Time(at)))
				want.Add(want, term)
			} else {
				got = got.Sub(AreaOf(resource.Amount(amount), Time(at)))
				want.Sub(want, term)
			}
		}
		f, _ := new(big.Float).SetInt(want).Float64()
		if f /= 1e9; math.Abs(got.UnitSeconds()-f) > 1e-12*math.Abs(f) {
			rt.Fatalf("it is %v unit-seconds, want %v", got.UnitSeconds(), f)
		}
	})
}
