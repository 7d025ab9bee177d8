package policy

import (
	"math"
	"math/big"
	"testing"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"pgregory.net/rapid"
)

// TestByteTime compares the arithmetic of memory × time with that of integers of any size.
func TestByteTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var got byteTime
		want := new(big.Int)
		for range rapid.IntRange(1, 20).Draw(rt, "terms") {
			memory := rapid.Int64Range(0, 1<<50).Draw(rt, "memory")
			at := rapid.Int64Range(-(1<<62), 1<<62).Draw(rt, "time")
			term := new(big.Int).Mul(big.NewInt(memory), big.NewInt(at))
			if rapid.Bool().Draw(rt, "add") {
				got = got.add(over(resource.Amount(memory), timeline.Time(at)))
				want.Add(want, term)
			} else {
				got = got.sub(over(resource.Amount(memory), timeline.Time(at)))
				want.Sub(want, term)
			}
		}
		f, _ := new(big.Float).SetInt(want).Float64()
		if f /= 1e9; math.Abs(got.seconds()-f) > 1e-12*math.Abs(f)+1e-5 {
			rt.Fatalf("it is %v byte-seconds, want %v", got.seconds(), f)
		}
	})
}
