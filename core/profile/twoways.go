package profile

import (
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// half is some of the runs with equally many phases. why says how they differ from the other half.
type half struct {
	runs []*numbered
	why  string
}

// When runs are said to go two ways.
const (
	fewestOfWay  = 2   // runs of each way
	leastWay     = 0.2 // share of the runs that go each way
	gapOfNoise   = 3   // the gap between the ways, in standard deviations of the runs around their way
	leastSlower  = 1.3 // how much longer the one way takes
	leastShifted = 0.15
	// mostRounds bounds how often runs are assigned to ways and a regression is fitted to them.
	mostRounds = 5
)

// halves returns runs as they are, or in two parts if they went two ways: the one takes longer with the same
// features, or uses a resource at another time. Fewer than four runs show no two ways.
func halves(runs []*numbered) []half {
	if durations, ok := explained(runs); ok {
		if high, low, up, split := twoWays(runs, durations, math.Log(leastSlower)); split {
			ratio := math.Exp(up)
			return []half{{low, fmt.Sprintf("takes %.2gx as long with the same features", 1/ratio)},
				{high, fmt.Sprintf("takes %.2gx as long with the same features", ratio)}}
		}
	}
	for k := range resource.NumKinds {
		centres := make([]float64, len(runs))
		known := true
		for i, r := range runs {
			centre, ok := centreOf(r, k)
			centres[i], known = centre, known && ok
		}
		if !known {
			continue
		}
		if late, early, _, split := twoWays(runs, centres, leastShifted); split {
			return []half{{early, fmt.Sprintf("uses %v earlier in its run", k)},
				{late, fmt.Sprintf("uses %v later in its run", k)}}
		}
	}
	return []half{{runs: runs}}
}

// centreOf returns when r uses kind k in the mean, as a share of its duration.
func centreOf(r *numbered, k resource.Kind) (share float64, ok bool) {
	at, used, weighted := 0.0, 0.0, 0.0
	for i := range r.Phases {
		length := r.Phases[i].Duration.Seconds()
		work := float64(r.Phases[i].Demand[k]) * length
		used += work
		weighted += work * (at + length/2)
		at += length
	}
	if r.Unknown.Has(k) || !(used > 0) {
		return 0, false
	}
	return weighted / used / at, true
}

// twoWays splits runs by their values in two. ok is false if they do not clearly go two ways. up is the difference of
// the means.
func twoWays(runs []*numbered, values []float64, least float64) (high, low []*numbered, up float64, ok bool) {
	cut, gap, sd := bestCut(values)
	if math.IsNaN(cut) || gap < least || gap < gapOfNoise*sd {
		return nil, nil, 0, false
	}
	for i, r := range runs {
		if values[i] > cut {
			high = append(high, r)
			up += values[i]
		} else {
			low = append(low, r)
		}
	}
	up /= float64(len(high))
	for _, v := range values {
		if v <= cut {
			up -= v / float64(len(low))
		}
	}
	return high, low, up, true
}

// bestCut returns the value up to which values are low, so that the squared deviations from the means of low and high
// values are least; the gap above it; and the standard deviation around the means. cut is NaN if there are too few
// values.
func bestCut(values []float64) (cut, gap, sd float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	fewest := max(fewestOfWay, int(math.Ceil(leastWay*float64(n))))
	cut, least := math.NaN(), math.Inf(1)
	for i := fewest; i <= n-fewest; i++ {
		if within := deviation(v[:i]) + deviation(v[i:]); within < least {
			cut, gap, least = v[i-1], v[i]-v[i-1], within
		}
	}
	return cut, gap, math.Sqrt(least / float64(max(1, n-2)))
}

// deviation returns the squared deviations of v from their mean.
func deviation(v []float64) (squares float64) {
	mean := 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		squares += (x - mean) * (x - mean)
	}
	return squares
}

// explained returns the logarithms of the durations of runs, less what a regression on the features that differ
// explains. ok is false where features differ, but in too few runs for a regression.
func explained(runs []*numbered) (rest []float64, ok bool) {
	n := len(runs)
	y, one := make([]float64, n), make([]float64, n)
	alike := true
	for i, r := range runs {
		y[i], one[i] = math.Log(r.Duration.Seconds()), 1
		alike = alike && r.Features == runs[0].Features
	}
	if alike {
		return y, true
	}
	b := basisOf(runs, true)
	x := make([][]float64, n)
	for i, r := range runs {
		x[i] = append(logColumns(b, &r.Features), 0)
	}
	p := len(x[0]) - 1
	if p == 0 || different(x) < p+2 || n < 2*(p+2) {
		return nil, false
	}
	// Alternately: the runs above the best cut belong to the slower way, which is a column of its own; a regression gives
	// all ways the same dependence on features.
	var h huber
	plain := make([][]float64, n)
	for i := range x {
		plain[i] = x[i][:p]
	}
	line, ok := h.fit(plain, y, one, one)
	for range mostRounds {
		if !ok {
			return nil, false
		}
		rest = make([]float64, n)
		for i := range x {
			rest[i] = y[i] - line.B - dot(line.W[:p], x[i][:p])
		}
		cut, _, _ := bestCut(rest)
		if math.IsNaN(cut) {
			return nil, false
		}
		changed := false
		for i := range x {
			way := 0.0
			if rest[i] > cut {
				way = 1
			}
			changed = changed || x[i][p] != way
			x[i][p] = way
		}
		if !changed {
			break
		}
		line, ok = h.fit(x, y, one, one)
	}
	return rest, true
}
