package trial

import (
	"encoding/json"
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a mean with its 95 % confidence interval, by Student's t distribution. Low and High are NaN if there are
// fewer than two values; all three are NaN if there is none.
type Estimate struct{ Mean, Low, High float64 }

// Confidence is the confidence level of the intervals.
const Confidence = 0.95

// Known reports whether there is a mean.
func (e Estimate) Known() bool { return !math.IsNaN(e.Mean) }

// Interval reports whether there is an interval.
func (e Estimate) Interval() bool { return !math.IsNaN(e.Low) && !math.IsNaN(e.High) }

// MarshalJSON omits unknown values.
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

// unknown is the estimate from no values.
var unknown = Estimate{math.NaN(), math.NaN(), math.NaN()}

// Mean estimates the mean of the distribution from which values are drawn.
func Mean(values []float64) Estimate {
	if len(values) == 0 {
		return unknown
	}
	mean := stat.Mean(values, nil)
	if math.IsNaN(mean) || math.IsInf(mean, 0) {
		return unknown
	}
	if len(values) < 2 {
		return Estimate{mean, math.NaN(), math.NaN()}
	}
	n := float64(len(values))
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile((1+Confidence)/2) * stat.StdErr(stat.StdDev(values, nil), n)
	return Estimate{mean, mean - half, mean + half}
}

// GeometricMean estimates the geometric mean of the distribution from which ratios are drawn, by way of the mean of
// their logarithms.
func GeometricMean(ratios []float64) Estimate {
	logs := make([]float64, len(ratios))
	for i, v := range ratios {
		logs[i] = math.Log(v)
	}
	e := Mean(logs)
	return Estimate{math.Exp(e.Mean), math.Exp(e.Low), math.Exp(e.High)}
}
