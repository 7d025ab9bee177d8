package leveling

import (
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Detector decides whether what tasks will demand of a node fluctuates enough to level it (section III.B of the
// paper). The paper has no values.
type Detector struct {
	// Threshold is H_RF: seconds in which the whole node is idle, or demanded in excess.
	Threshold float64
	// Discount is λ, above 0 and below 1: stage s counts λ^s, from s = 1 on.
	Discount float64
}

// Fluctuation is RF (equation 16), by what it comes from: discounted seconds of the whole node.
type Fluctuation struct {
	Idle float64 // demand is below the capacity
	Over float64 // demand is above the capacity
}

// Sum returns RF.
func (f Fluctuation) Sum() float64 { return f.Idle + f.Over }

// Fluctuation returns how much the demand of one kind will fluctuate from now until a time, and whether to level it:
// it exceeds the capacity at some time, and RF is above the threshold (Algorithm 1, lines 12 to 16).
//
// spare is the capacity less what tasks demand together (equation 15), with a step wherever a phase of a task begins
// or ends: the stages are between the steps. Without a capacity there is nothing to level.
func (d Detector) Fluctuation(spare *timeline.Timeline, kind resource.Kind, capacity resource.Amount,
	now, until timeline.Time) (f Fluctuation, level bool) {
	if capacity <= 0 {
		return Fluctuation{}, false
	}
	weight := 1.0
	for now < until {
		end := min(until, spare.NextStep(now))
		weight *= d.Discount
		amount := spare.At(now)[kind]
		size := float64(amount) / float64(capacity) * end.Sub(now).Seconds()
		if amount >= 0 {
			f.Idle += float64(weight * size)
		} else {
			f.Over -= float64(weight * size)
			level = true
		}
		now = end
	}
	return f, level && f.Sum() > d.Threshold
}
