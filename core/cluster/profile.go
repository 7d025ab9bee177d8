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

// AssumingLearned is AssumingProfiles for a job whose reservations will be learned: see Learn.
func (j *Job) AssumingLearned() Job {
	filled := j.AssumingProfiles()
	filled.Learn()
	return filled
}

// AssumingProfiles returns j for checks before profiles and histories are known: where a profile will give the ideal
// memory, it is the largest memory that the stage allows, and CPU that is not stated is what a daemon begins with. With
// these every check passes that does not depend on the amount.
func (j *Job) AssumingProfiles() Job {
	filled := *j
	filled.Stages = slices.Clone(j.Stages)
	for i := range filled.Stages {
		s := &filled.Stages[i]
		if s.Profile != "" && s.Ideal[resource.Memory] == 0 {
			s.Ideal[resource.Memory] = cmp.Or(s.MaxMemory, resource.MostMemory)
		}
		if s.Ideal[resource.CPU] == 0 && !s.Coordinator {
			s.Ideal[resource.CPU] = s.UsualCPU()
		}
	}
	return filled
}

// UsualCPU is the CPU of a task of s, millicores, where that is neither stated nor known: a core, or the most that the
// task may use if that is less.
func (s *Stage) UsualCPU() resource.Amount {
	return min(resource.Core, cmp.Or(s.MaxCPU, resource.MostCPU))
}
