package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

const (
	// DefaultMinShare is the least memory of an elastic task as a share of its ideal memory (YARN-ME section 6.1).
	DefaultMinShare = 0.1
	// DefaultGranularity is the step in which memory is granted to elastic tasks (YARN-ME section 6.1).
	DefaultGranularity = 100 * resource.MB
)

// ParsePenalty reads "sawtooth:1.5", "step:3" or "none": the shape of a penalty and the slowdown at its worst, at
// least 1.
func ParsePenalty(text string) (cluster.Elasticity, error) {
	const accepted = "must be none, step:FACTOR or sawtooth:FACTOR, such as sawtooth:1.5"
	if text == "none" {
		return cluster.Elasticity{}, nil
	}
	shape, factor, found := strings.Cut(text, ":")
	if !found {
		return cluster.Elasticity{}, fmt.Errorf("penalty %q: %s", cluster.Clip(text), accepted)
	}
	worst, ok := parseFactor(factor)
	if !ok {
		return cluster.Elasticity{}, fmt.Errorf("penalty %q: its factor must be a number from 1 to %d", cluster.Clip(text),
			cluster.MostSlowdown)
	}
	e, known := elasticityOf(shape, worst)
	if !known {
		return cluster.Elasticity{}, fmt.Errorf("penalty %q: %s", cluster.Clip(text), accepted)
	}
	return e, nil
}

// parseFactor reads a slowdown.
func parseFactor(text string) (factor float64, ok bool) {
	factor, err := strconv.ParseFloat(text, 64)
	return factor, err == nil && factor >= 1 && factor <= cluster.MostSlowdown
}

// elasticityOf returns the authors' penalties: their saw-tooth is the tabulated one of their simulator.
func elasticityOf(shape string, factor float64) (e cluster.Elasticity, known bool) {
	switch strings.ToLower(shape) {
	case "step":
		return cluster.Elasticity{Kind: cluster.Step, Factor: factor}, true
	case "sawtooth":
		return cluster.Elasticity{Kind: cluster.SawToothTable, Factor: factor}, true
	}
	return cluster.Elasticity{}, false
}

// SetPenalty sets e as the elasticity of every stage that has none, and sets the minimum memory of every elastic stage
// that has none: minShare (0 to 1) of its ideal memory, rounded up to a multiple of granularity (bytes, positive), at
// least one granularity, at most the ideal memory. Coordinators do not change.
func (w *Workload) SetPenalty(e cluster.Elasticity, minShare float64, granularity resource.Amount) {
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			s := &w.Jobs[i].Stages[k]
			if s.Coordinator {
				continue
			}
			if s.Elasticity.Kind == cluster.NotElastic {
				s.Elasticity = e
			}
			if s.Elasticity.Kind != cluster.NotElastic && s.MinMemory == 0 {
				s.MinMemory = leastMemory(s.Ideal[resource.Memory], minShare, granularity)
			}
		}
	}
}

// leastMemory returns share of ideal, rounded up to a multiple of granularity.
func leastMemory(ideal resource.Amount, share float64, granularity resource.Amount) resource.Amount {
	// The millionth of a grain keeps a product such as 0.1*3000MB from rounding up to one grain too many.
	grains := math.Ceil(float64(ideal)*share/float64(granularity) - 1e-6)
	return min(ideal, granularity*resource.Amount(max(1, grains)))
}
