package queue

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
)

// Parts are shares of the resources of a whole.
type Parts [resource.NumKinds]float64

// PartsOf returns v as shares of whole; the share of a resource that the whole lacks is 0.
func PartsOf(v, whole resource.Vector) (s Parts) {
	for k := range v {
		if whole[k] > 0 {
			s[k] = float64(v[k]) / float64(whole[k])
		}
	}
	return s
}

// Largest returns the largest share.
func (s Parts) Largest() float64 {
	largest := 0.0
	for _, part := range s {
		largest = max(largest, part)
	}
	return largest
}

// Plus returns s + factor*t.
func (s Parts) Plus(t Parts, factor float64) Parts {
	for k := range s {
		s[k] += factor * t[k]
	}
	return s
}

// DominantShare is the largest share of a resource of the whole that a job uses, over its weight.
func DominantShare(j *book.JobState, whole resource.Vector) float64 {
	return PartsOf(j.Used, whole).Largest() / WeightOf(j)
}

// WeightOf returns the weight of a job, which is 1 if the job gives none.
func WeightOf(j *book.JobState) float64 {
	if j.Weight > 0 {
		return j.Weight
	}
	return 1
}
