package profile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Goals of a profile, from YARN-ME section 2.3: most sizes within Near and all within Far, or within the noise of the
// repeats at that size if that is larger (a goal is judged only where the noise is at most MostNoise).
const (
	Near = 0.05
	Far  = 0.10
)

// Miss is the errors of predictions for one held-out size. Errors are shares of the measured run time; positive means
// that the predicted time is too long.
type Miss struct {
	Memory    resource.Amount `json:"memory_bytes" doc:"the held-out size"`
	Measured  time.Duration   `json:"measured_ns" doc:"measured run time"`
	Predicted time.Duration   `json:"predicted_ns" doc:"prediction of the model"`
	Model     float64         `json:"model_error" doc:"(prediction − measured time) / measured time"`
	// Constant is the error of the mean of the fitted sizes, Linear that of the straight line between the smallest and
	// the largest fitted size.
	Constant float64 `json:"constant_error" doc:"the same for the mean of the fitted sizes"`
	Linear   float64 `json:"linear_error" doc:"the same for the line between the smallest and the largest size"`
	// Noise is the noise of the repeats at this size (Sample.Noise), a share; meaningful only if NoiseKnown.
	Noise      float64 `json:"noise" doc:"(median − fastest run) / fastest run; says nothing unless noise_known"`
	NoiseKnown bool    `json:"noise_known" doc:"there were enough repeats"`
}

// Within reports whether the model's error is at most limit, or at most the noise of the repeats if that is larger.
func (m Miss) Within(limit float64) bool {
	if m.NoiseKnown {
		limit = max(limit, m.Noise)
	}
	return math.Abs(m.Model) <= limit
}

// Evaluation compares a model with two trivial models, at sizes that it was not fitted to.
type Evaluation struct {
	Misses []Miss `json:"misses" doc:"by memory, ascending"`
	// Mean absolute errors over all sizes.
	ModelMean    float64 `json:"model_mean_error" doc:"mean absolute error of the model"`
	ConstantMean float64 `json:"constant_mean_error" doc:"that of the mean of the fitted sizes"`
	LinearMean   float64 `json:"linear_mean_error" doc:"that of the line between the smallest and the largest size"`
}

// Evaluate compares m, which was fitted to the samples in fitted, with the measurements in heldOut. No size may be in
// both.
func Evaluate(m Model, fitted, heldOut []Sample) (Evaluation, error) {
	fit, err := sorted(fitted)
	if err != nil {
		return Evaluation{}, fmt.Errorf("fitted: %w", err)
	}
	held, err := sorted(heldOut)
	if err != nil {
		return Evaluation{}, fmt.Errorf("held out: %w", err)
	}
	if len(fit) == 0 || len(held) == 0 {
		return Evaluation{}, errors.New("samples: must be at least one fitted and one held-out size")
	}
	seen := map[resource.Amount]bool{}
	for _, s := range fit {
		seen[s.Memory] = true
	}
	constant := mean(durations(fit))
	first, last := fit[0], fit[len(fit)-1]
	straight := []Point{{first.Memory, first.Duration}, {last.Memory, last.Duration}}
	var e Evaluation
	for _, s := range held {
		if seen[s.Memory] {
			return Evaluation{}, fmt.Errorf("held-out size %s: must not be one of the fitted sizes",
				resource.FormatMemory(s.Memory))
		}
		predicted := m.Duration(s.Memory)
		miss := Miss{
			Memory: s.Memory, Measured: s.Duration, Predicted: predicted,
			Model:    relative(predicted, s.Duration),
			Constant: relative(constant, s.Duration),
			Linear:   relative(interpolate(straight, s.Memory), s.Duration),
		}
		miss.Noise, miss.NoiseKnown = s.Noise()
		e.Misses = append(e.Misses, miss)
		n := float64(len(held))
		e.ModelMean += math.Abs(miss.Model) / n
		e.ConstantMean += math.Abs(miss.Constant) / n
		e.LinearMean += math.Abs(miss.Linear) / n
	}
	return e, nil
}

// Judged reports whether the repeats at every held-out size suffice to judge a model: at least two repeats per size,
// with a noise of at most MostNoise.
func (e Evaluation) Judged() bool {
	return !slices.ContainsFunc(e.Misses, func(m Miss) bool { return !m.NoiseKnown || m.Noise > MostNoise })
}

// Reached reports whether more than half of the sizes are within Near and all are within Far. It is false if the
// repeats do not suffice to judge the model.
func (e Evaluation) Reached() bool {
	if !e.Judged() {
		return false
	}
	near := 0
	for _, m := range e.Misses {
		if !m.Within(Far) {
			return false
		}
		if m.Within(Near) {
			near++
		}
	}
	return 2*near > len(e.Misses)
}
