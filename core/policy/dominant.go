package policy

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// parts are shares of the resources of a whole.
type parts [resource.NumKinds]float64

// partsOf returns v as shares of whole; the share of a resource that the whole lacks is 0.
func partsOf(v, whole resource.Vector) (s parts) {
	for k := range v {
		if whole[k] > 0 {
			s[k] = float64(v[k]) / float64(whole[k])
		}
	}
	return s
}

func (s parts) largest() float64 {
	largest := 0.0
	for _, part := range s {
		largest = max(largest, part)
	}
	return largest
}

// plus returns s + factor*t.
func (s parts) plus(t parts, factor float64) parts {
	for k := range s {
		s[k] += factor * t[k]
	}
	return s
}

// dominantShare is the largest share of a resource of the whole that a job uses, over its weight.
func dominantShare(j *book.JobState, whole resource.Vector) float64 {
	return partsOf(j.Used, whole).largest() / weightOf(j)
}

// weightOf returns the weight of a job, which is 1 if the job gives none.
func weightOf(j *book.JobState) float64 {
	if j.Weight > 0 {
		return j.Weight
	}
	return 1
}
