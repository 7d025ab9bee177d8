package leveling

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestShort(t *testing.T) {
	for _, c := range []struct {
		durations []time.Duration
		want      time.Duration
	}{
		{nil, 0},
		{[]time.Duration{7}, 0},
		{[]time.Duration{7, 7, 7}, 0},
		{[]time.Duration{9, 7}, 7},
		{[]time.Duration{100, 9, 110, 7, 12, 95}, 12},
		{[]time.Duration{1, 1, 1, 1, 1000}, 1},
		{[]time.Duration{1, 1000, 1000, 1000}, 1},
		{[]time.Duration{0, math.MaxInt64}, 0},
		{[]time.Duration{math.MaxInt64 - 1, math.MaxInt64}, math.MaxInt64 - 1},
	} {
		if got := Short(c.durations); got != c.want {
			t.Errorf("%v: got %v, want %v", c.durations, got, c.want)
		}
	}
}

// No other way to divide durations, in any order, has smaller squares.
func TestShortIsBest(t *testing.T) {
	squares := func(all []time.Duration) (sum float64) {
		mean := 0.0
		for _, d := range all {
			mean += d.Seconds() / float64(len(all))
		}
		for _, d := range all {
			sum += (d.Seconds() - mean) * (d.Seconds() - mean)
		}
		return sum
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 10))
		var durations []time.Duration
		for range 2 + r.IntN(8) {
			durations = append(durations, time.Duration(r.IntN(20))*time.Second)
		}
		divided := func(in func(i int) bool) float64 {
			var short, long []time.Duration
			for i, d := range durations {
				if in(i) {
					short = append(short, d)
				} else {
					long = append(long, d)
				}
			}
			return squares(short) + squares(long)
		}
		best := math.Inf(1)
		for bits := range 1 << len(durations) {
			best = min(best, divided(func(i int) bool { return bits>>i&1 == 1 }))
		}
		longest := Short(durations)
		if got := divided(func(i int) bool { return durations[i] <= longest && longest > 0 }); got > best+1e-9 &&
			longest > 0 {
			t.Errorf("%v up to %v: squares %v, want %v", durations, longest, got, best)
		}
	}
}
