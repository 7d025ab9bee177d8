package cluster

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// Profile is what has been measured of a program, under a name that job files can give.
type Profile struct {
	Ideal, MinMemory resource.Amount // bytes
	Duration         time.Duration   // at ideal memory
	Elasticity       Elasticity
}

// Fill gives s what it leaves out: ideal and minimum memory, duration and elasticity.
func (p Profile) Fill(s *Stage) {
	if s.Ideal[resource.Memory] == 0 {
		s.Ideal[resource.Memory] = p.Ideal
	}
	if s.MinMemory == 0 {
		s.MinMemory = min(p.MinMemory, s.Ideal[resource.Memory])
	}
	if s.Duration == 0 {
		s.Duration = p.Duration
	}
	if s.Elasticity.Kind == NotElastic {
		s.Elasticity = p.Elasticity
	}
}

// AssumingProfiles returns j with as much ideal memory, where a profile is to say how much, as passes every check that does not
// depend on how much it is.
func (j *Job) AssumingProfiles() Job {
	filled := *j
	filled.Stages = slices.Clone(j.Stages)
	for i := range filled.Stages {
		if s := &filled.Stages[i]; s.Profile != "" && s.Ideal[resource.Memory] == 0 {
			s.Ideal[resource.Memory] = MostMemory
		}
	}
	return filled
}
