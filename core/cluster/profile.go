package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Profile is the measured behaviour of a program, stored under a name that job files can refer to.
type Profile struct {
	Ideal, MinMemory resource.Amount // bytes
	Duration         time.Duration   // at ideal memory
	Elasticity       Elasticity
}

// Fill sets the fields that s leaves out: ideal and minimum memory, duration and elasticity.
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

// AssumingProfiles returns j for checks before profiles are known: where a profile will give the ideal memory, it is
// the largest memory that the stage allows, with which every check passes that does not depend on the amount.
func (j *Job) AssumingProfiles() Job {
	filled := *j
	filled.Stages = slices.Clone(j.Stages)
	for i := range filled.Stages {
		if s := &filled.Stages[i]; s.Profile != "" && s.Ideal[resource.Memory] == 0 {
			s.Ideal[resource.Memory] = cmp.Or(s.MaxMemory, resource.MostMemory)
		}
	}
	return filled
}
