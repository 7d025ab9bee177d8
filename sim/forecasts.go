package sim

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// Forecasts says how good the forecasts were that earlier runs of applications gave, as the first task of each stage
// found them. A stage counts if it had such a forecast and at least one of its tasks succeeded.
type Forecasts struct {
	// Stages had a forecast. Timed of them had their run time from it, too, because it was not stated.
	Stages, Timed int
	// RunTimeError is the mean over the timed stages of |forecast - mean run time of the tasks| / mean run time; 0
	// without any.
	RunTimeError float64
	// DemandError is the mean over all stages, their tasks and the resources that were forecast or demanded, of the area
	// between forecast and demand over time, as a share of the area below the higher one of both: 0 is as forecast, 1 has
	// nothing in common.
	DemandError float64
}

// Add adds the forecasts of another run.
func (r *Forecasts) Add(o Forecasts) {
	mean := func(a float64, n int, b float64, m int) float64 {
		return (a*float64(n) + b*float64(m)) / float64(max(n+m, 1))
	}
	r.RunTimeError = mean(r.RunTimeError, r.Timed, o.RunTimeError, o.Timed)
	r.DemandError = mean(r.DemandError, r.Stages, o.DemandError, o.Stages)
	r.Stages, r.Timed = r.Stages+o.Stages, r.Timed+o.Timed
}

// foretold compares what a stage was forecast with what its tasks did.
type foretold struct {
	stage  cluster.Stage
	timed  bool
	tasks  int
	lasted time.Duration // of these tasks
	missed float64       // sum of the demand errors of these tasks
}

// tell records the forecasts of a job that are submitted to the engine before the first task of the job has started.
// untimed are the stages of which no run time was stated.
func (t *teaching) tell(spec *cluster.Job, untimed []int) {
	t.told = make([]foretold, len(spec.Stages))
	for i := range t.told {
		t.told[i] = foretold{stage: spec.Stages[i], timed: slices.Contains(untimed, i)}
	}
}

// compare takes in how a task went.
func (f *foretold) compare(took time.Duration, phases []cluster.Phase) {
	if f.stage.Told.Samples == 0 {
		return
	}
	f.tasks++
	f.lasted += took
	f.missed += demandError(profile.Lasting(f.stage.Phases, f.stage.RunTime()), phases)
}

// judge adds the forecasts of a job that has ended.
func (r *Forecasts) judge(told []foretold) {
	for i := range told {
		f := &told[i]
		if f.tasks == 0 {
			continue
		}
		one := Forecasts{Stages: 1, DemandError: f.missed / float64(f.tasks)}
		if is := f.lasted.Seconds() / float64(f.tasks); f.timed && is > 0 {
			one.Timed, one.RunTimeError = 1, math.Abs(f.stage.RunTime().Seconds()-is)/is
		}
		r.Add(one)
	}
}

// demandError is the area between two courses of demand as a share of the area below the higher one, as the mean over
// the resources that either demands; 0 if neither demands anything.
func demandError(a, b []cluster.Phase) float64 {
	var between, below [resource.NumKinds]float64
	for len(a) > 0 || len(b) > 0 {
		var now, other cluster.Phase
		length := time.Duration(math.MaxInt64)
		if len(a) > 0 {
			now, length = a[0], min(length, a[0].Duration)
		}
		if len(b) > 0 {
			other, length = b[0], min(length, b[0].Duration)
		}
		for k := range resource.NumKinds {
			x, y := float64(now.Demand[k]), float64(other.Demand[k])
			between[k] += math.Abs(x-y) * length.Seconds()
			below[k] += max(x, y) * length.Seconds()
		}
		a, b = without(a, length), without(b, length)
	}
	sum, kinds := 0.0, 0.0
	for k := range below {
		if below[k] > 0 {
			sum, kinds = sum+between[k]/below[k], kinds+1
		}
	}
	return sum / max(kinds, 1)
}

// without returns what is left of phases after a time no longer than the first of them.
func without(phases []cluster.Phase, length time.Duration) []cluster.Phase {
	if len(phases) == 0 || phases[0].Duration <= length {
		return phases[min(1, len(phases)):]
	}
	left := slices.Clone(phases)
	left[0].Duration -= length
	return left
}
