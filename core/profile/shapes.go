package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// line is run time = ideal + cost*x, in seconds, with its squared relative error.
type line struct {
	ideal, cost, squares float64
}

// fitLine finds the line with the smallest sum of squared relative errors, cost not negative. x holds one value per
// sample. ok is false if the ideal is not positive.
//
// Errors are relative so that run times of 1 s and 10 s are predicted with the same relative precision.
func fitLine(s []Sample, x []float64) (l line, ok bool) {
	var uu, uv, vv, u, v float64
	for i, y := range s {
		a := 1 / y.Duration.Seconds()
		b := x[i] * a
		uu, uv, vv, u, v = uu+a*a, uv+a*b, vv+b*b, u+a, v+b
	}
	det := uu*vv - uv*uv
	if det > 1e-12*uu*vv {
		l.ideal, l.cost = (u*vv-v*uv)/det, (v*uu-u*uv)/det
	}
	if l.cost <= 0 {
		l.ideal, l.cost = u/uu, 0
	}
	for i, y := range s {
		e := (l.ideal+l.cost*x[i])/y.Duration.Seconds() - 1
		l.squares += e * e
	}
	return l, l.ideal > 0
}

// fitStep takes the split into under-sized and well-sized sizes with the smallest error.
func fitStep(s []Sample) (Model, error) {
	best := line{squares: math.Inf(1)}
	at := 0
	x := make([]float64, len(s))
	for _, w := range splits(s) {
		for i := range x {
			x[i] = 0
			if i < w {
				x[i] = 1
			}
		}
		if l, ok := fitLine(s, x); ok && l.squares < best.squares {
			best, at = l, w
		}
	}
	if at == 0 {
		return Model{}, errOneSided
	}
	return Model{
		IdealMemory:   s[at].Memory,
		IdealDuration: duration(best.ideal),
		UnderSized:    duration(best.ideal + best.cost),
	}, nil
}

// fitSawTooth finds the input size for which spilled bytes explain the run times best. The input determines the spilled
// bytes and which sizes are well-sized. The spilled bytes change only where the input is a multiple of a sample's
// buffer, so it suffices to try one input between each two neighbouring multiples. Where spills were measured, their
// error counts as much as the error of the run times.
func fitSawTooth(s []Sample, program Program) (Model, error) {
	buffer := program.Buffer
	if least := s[0].Memory; buffer.At(least) <= 1 {
		return Model{}, fmt.Errorf("the overhead of %s leaves no buffer at %s", resource.FormatMemory(buffer.Overhead),
			resource.FormatMemory(least))
	}
	best := line{squares: math.Inf(1)}
	var m Model
	for _, w := range splits(s) {
		for _, input := range inputs(s, w, program) {
			x := make([]float64, len(s))
			for i, y := range s[:w] {
				x[i] = float64(SpilledWhole(input, buffer.At(y.Memory)))
			}
			l, ok := fitLine(s, x)
			if !ok {
				continue
			}
			perByte, squares := fitExpansion(s[:w], x)
			if l.squares += squares; l.squares < best.squares {
				best = l
				m = Model{IdealMemory: s[w].Memory, Input: input, Expansion: perByte}
			}
		}
	}
	if math.IsInf(best.squares, 1) {
		return Model{}, errOneSided
	}
	m.Buffer = &buffer
	m.IdealDuration = duration(best.ideal)
	if best.cost > 0 {
		rate := 1 / best.cost
		if rate < 1 || rate > float64(maxMemory) {
			return Model{}, errors.New("the rate at which it spills is not between 1 and 2^52 bytes per second")
		}
		m.SpillRate = resource.Amount(math.Round(rate))
	}
	return m, nil
}

// mostTeeth is the largest number of multiples of one buffer that are tried as input; finer teeth differ by less than 1
// %.
const mostTeeth = 128

// inputs returns the input sizes worth trying if the first w sizes are under-sized. They are larger than the largest
// buffer of these w sizes and at most the smallest buffer of the remaining sizes, one between each two neighbouring
// multiples of a buffer; or the input of the program alone, if it is known and in this range.
func inputs(s []Sample, w int, program Program) []resource.Amount {
	buffer := program.Buffer
	low, high := buffer.At(s[w-1].Memory)+1, buffer.At(s[w].Memory)
	if program.Input > 0 {
		if program.Input < low || program.Input > high {
			return nil
		}
		return []resource.Amount{program.Input}
	}
	edges := []resource.Amount{low, high + 1}
	for _, y := range s[:w] {
		b := buffer.At(y.Memory)
		for k := max((low+b-1)/b, 1); k*b <= high && k <= mostTeeth; k++ {
			edges = append(edges, k*b)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	var tried []resource.Amount
	for i := 1; i < len(edges); i++ {
		tried = append(tried, edges[i-1]+(edges[i]-1-edges[i-1])/2)
	}
	return tried
}

// fitExpansion returns how many of the modelled bytes x became one measured spilled byte, and the squared relative
// error of the measured spills under that expansion; 0 and 0 if spills were not measured.
func fitExpansion(s []Sample, x []float64) (expansion, squares float64) {
	var top, bottom float64
	for i, y := range s {
		if !y.SpilledKnown || y.Spilled <= 0 {
			return 0, 0
		}
		r := x[i] / float64(y.Spilled)
		top, bottom = top+r, bottom+r*r
	}
	share := top / bottom // measured bytes per modelled byte
	for i, y := range s {
		e := share*x[i]/float64(y.Spilled) - 1
		squares += e * e
	}
	return 1 / share, squares
}

// fitPoints uses levels, one per sample, as the run times. The ideal is the smallest size that did not spill. If spills
// are unknown, it is the smallest size from which on more memory makes no difference.
//
// If spills are known, the run time jumps at the ideal: the first spill has a fixed cost, and it is unknown where
// between the last size that spilled and the first that did not spilling starts. The model is pessimistic there.
func fitPoints(s []Sample, levels []time.Duration) (Model, error) {
	last := len(s) - 1
	ideal := last
	w, known := firstWellSized(s)
	if known {
		ideal = min(w, last)
		// Memory serves other purposes than avoiding spills: where run times still fall, the ideal is higher.
		for ideal < last && slices.ContainsFunc(s[ideal:], func(y Sample) bool {
			return y.Contradicts(mean(levels[ideal:]))
		}) {
			ideal++
		}
	} else {
		for ideal > 0 && levels[ideal-1] == levels[last] {
			ideal--
		}
	}
	m := Model{IdealMemory: s[ideal].Memory, IdealDuration: mean(levels[ideal:])}
	for i, y := range s[:ideal] {
		m.Points = append(m.Points, Point{Memory: y.Memory, Duration: levels[i]})
	}
	if before := m.IdealMemory - 1; known && w == ideal && ideal > 0 && s[ideal-1].Memory < before {
		m.Points = append(m.Points, Point{Memory: before, Duration: levels[ideal-1]})
	}
	m.Points = append(m.Points, Point{Memory: m.IdealMemory, Duration: m.IdealDuration})
	return m, nil
}

func durations(s []Sample) []time.Duration {
	var d []time.Duration
	for _, y := range s {
		d = append(d, y.Duration)
	}
	return d
}

// nonIncreasing returns for each of s the run time of the closest non-increasing sequence: isotonic regression (least
// squares) by pooling neighbours that are in the wrong order.
func nonIncreasing(s []Sample) []time.Duration {
	type pool struct {
		sum float64 // nanoseconds
		n   int
	}
	var pools []pool
	for _, y := range s {
		pools = append(pools, pool{float64(y.Duration), 1})
		for len(pools) > 1 {
			a, b := pools[len(pools)-2], pools[len(pools)-1]
			if a.sum/float64(a.n) > b.sum/float64(b.n) {
				break
			}
			pools = append(pools[:len(pools)-2], pool{a.sum + b.sum, a.n + b.n})
		}
	}
	var d []time.Duration
	for _, p := range pools {
		level := time.Duration(math.Round(p.sum / float64(p.n)))
		for range p.n {
			d = append(d, level)
		}
	}
	return d
}

func mean(durations []time.Duration) time.Duration {
	var sum float64
	for _, d := range durations {
		sum += float64(d)
	}
	return time.Duration(math.Round(sum / float64(len(durations))))
}
