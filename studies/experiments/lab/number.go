package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim/trial"
)

// Decimals prints v with n digits after the point; a dash for an unknown value.
func Decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// Percent prints a share in whole percent.
func Percent(share float64) string {
	if math.IsNaN(share) {
		return "–"
	}
	return Decimals(100*share, 0) + " %"
}

// Exact prints a number so that it reads back exactly.
func Exact(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Median returns the middle of values, for an even number of values the mean of the middle two; NaN without values.
func Median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	n := len(s)
	if n == 0 {
		return math.NaN()
	}
	return (s[(n-1)/2] + s[n/2]) / 2
}

// InPairs heads columns of paired.
const InPairs = "geometric mean of the pairs and 95 % interval"

// Paired prints the ratios of numbers of the same runs: their geometric mean, and its confidence interval.
func Paired(over, under []float64) string {
	return Interval(trial.GeometricMean(Ratios(over, under)), 2)
}

// Interval prints an estimate with its confidence interval, if it has one.
func Interval(e trial.Estimate, digits int) string {
	if !e.Interval() {
		return Decimals(e.Mean, digits)
	}
	return fmt.Sprintf("%s (%s to %s)", Decimals(e.Mean, digits), Decimals(e.Low, digits), Decimals(e.High, digits))
}

// Mean returns the mean, added up in order, which stat.Mean does on some processors alone; NaN without values.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// ShareAtMost returns the share of values that are at most limit; NaN without values.
func ShareAtMost(values []float64, limit float64) float64 {
	n := 0
	for _, v := range values {
		if v <= limit {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

// Quantile returns the smallest value that at least the given share of values does not exceed; NaN without values.
func Quantile(values []float64, share float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return math.NaN()
	}
	return stat.Quantile(share, stat.Empirical, s, nil)
}

// Values returns a number of each element.
func Values[T any](of []T, number func(T) float64) []float64 {
	var all []float64
	for _, one := range of {
		all = append(all, number(one))
	}
	return all
}

// Pooled returns the numbers of all elements together.
func Pooled[T any](of []T, numbers func(T) []float64) []float64 {
	var all []float64
	for _, one := range of {
		all = append(all, numbers(one)...)
	}
	return all
}

// Scaled multiplies each value.
func Scaled(all []float64, by float64) []float64 {
	return Values(all, func(v float64) float64 { return v * by })
}

// Ratios divides each value of over by that of under.
func Ratios(over, under []float64) []float64 {
	var all []float64
	for i, v := range over {
		all = append(all, v/under[i])
	}
	return all
}

// Extremes returns the least and the largest value; NaN without values.
func Extremes(all []float64) (least, most float64) {
	return Quantile(all, 0), Quantile(all, 1)
}

// AcrossTraces prints the median of one value per trace, and their range.
func AcrossTraces(values []float64, digits int) string {
	if len(values) == 1 {
		return Decimals(values[0], digits)
	}
	return fmt.Sprintf("%s (%s to %s)", Decimals(Median(values), digits), Decimals(slices.Min(values), digits),
		Decimals(slices.Max(values), digits))
}

// Within reports whether v is from one number to another.
func Within(v, from, to float64) bool { return v >= from && v <= to }

// Gain returns the relative decrease from before to after.
func Gain(before, after float64) float64 { return 1 - after/before }

// at returns a share of an amount.
func PartOf(share float64, of resource.Amount) resource.Amount {
	return resource.Amount(math.Round(share * float64(of)))
}

// Varied is the noise of a run: see job.
func Varied(r *rand.Rand) func(float64) float64 {
	return func(spread float64) float64 { return math.Exp(spread * r.NormFloat64()) }
}
