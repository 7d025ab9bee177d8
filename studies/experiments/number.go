package experiments

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/bellows-rm/bellows/sim/trial"
)

// decimals prints v with n digits after the point; a dash for an unknown value.
func decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// percent prints a share in whole percent.
func percent(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return decimals(100*share, 0) + " %"
}

// exact prints a number so that it reads back exactly.
func exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// median returns the middle of values, for an even number of values the mean of the middle two; NaN without values.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// inPairs heads columns of paired.
const inPairs = "geometric mean of the pairs and 95 % interval"

// paired prints the ratios of numbers of the same runs: their geometric mean, and its confidence interval.
func paired(over, under []float64) string {
	return interval(trial.GeometricMean(ratios(over, under)), 2)
}

// interval prints an estimate with its confidence interval, if it has one.
func interval(e trial.Estimate, digits int) string {
	if !e.Interval() {
		return decimals(e.Mean, digits)
	}
	return fmt.Sprintf("%s (%s to %s)", decimals(e.Mean, digits), decimals(e.Low, digits), decimals(e.High, digits))
}

// mean returns the mean, added up in order, which stat.Mean does on some processors alone; NaN without values.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// shareAtMost returns the share of values that are at most limit; NaN without values.
func shareAtMost(values []float64, limit float64) float64 {
	n := 0
	for _, v := range values {
		if v <= limit {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

// quantile returns the smallest value that at least the given share of values does not exceed; NaN without values.
func quantile(values []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	return stat.Quantile(share, stat.Empirical, s, nil)
}

// values returns a number of each element.
func values[T any](of []T, number func(T) float64) []float64 {
	var all []float64
	for _, one := range of {
		all = append(all, number(one))
	}
	return all
}

// pooled returns the numbers of all elements together.
func pooled[T any](of []T, numbers func(T) []float64) []float64 {
	var all []float64
	for _, one := range of {
		all = append(all, numbers(one)...)
	}
	return all
}

// scaled multiplies each value.
func scaled(all []float64, by float64) []float64 {
	return values(all, func(v float64) float64 { return v * by })
}

// ratios divides each value of over by that of under.
func ratios(over, under []float64) []float64 {
	var all []float64
	for i, v := range over {
		all = append(all, v/under[i])
	}
	return all
}
