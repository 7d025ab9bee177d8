package comparison

import (
	"encoding/json"
	"math"
)

// Estimate is a mean with the ends of its 95 % confidence interval, by Student's t distribution. The ends are NaN if there
// are fewer than two values; all are if there is none.
type Estimate struct{ Mean, Low, High float64 }

// Known reports whether there is a mean.
func (e Estimate) Known() bool { return !math.IsNaN(e.Mean) }

// Interval reports whether there is an interval.
func (e Estimate) Interval() bool { return !math.IsNaN(e.Low) && !math.IsNaN(e.High) }

// MarshalJSON leaves out what is not known.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := map[string]float64{}
	if e.Known() {
		out["mean"] = e.Mean
	}
	if e.Interval() {
		out["low"], out["high"] = e.Low, e.High
	}
	return json.Marshal(out)
}

// unknown is an estimate from nothing.
var unknown = Estimate{math.NaN(), math.NaN(), math.NaN()}

// Mean estimates the mean of what values are drawn from.
func Mean(values []float64) Estimate {
	n := float64(len(values))
	if n == 0 {
		return unknown
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	mean, squares := sum/n, 0.0
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return unknown
	}
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	if n < 2 {
		return Estimate{mean, math.NaN(), math.NaN()}
	}
	half := student(len(values)-1) * math.Sqrt(squares/(n-1)/n)
	return Estimate{mean, mean - half, mean + half}
}

// GeometricMean estimates the geometric mean of what ratios are drawn from: the mean of their logarithms, and back.
func GeometricMean(ratios []float64) Estimate {
	logs := make([]float64, len(ratios))
	for i, v := range ratios {
		logs[i] = math.Log(v)
	}
	e := Mean(logs)
	return Estimate{math.Exp(e.Mean), math.Exp(e.Low), math.Exp(e.High)}
}

// quantiles are those of Student's t distribution at 0.975 for 1 to 30 degrees of freedom.
var quantiles = []float64{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788,
	2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518,
	2.0484, 2.0452, 2.0423}

// student returns that quantile for any number of degrees of freedom, above 30 by the expansion of Cornish and Fisher, right
// to four digits there.
func student(freedom int) float64 {
	if freedom <= len(quantiles) {
		return quantiles[freedom-1]
	}
	const z = 1.959963985
	n := float64(freedom)
	return z + (z*z*z+z)/(4*n) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*n*n)
}
