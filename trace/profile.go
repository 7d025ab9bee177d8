package trace

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Profile is what has been measured of a program, under a name that job files can give.
type Profile struct {
	Ideal, MinMemory resource.Amount // bytes
	Duration         time.Duration   // at ideal memory
	Elasticity       cluster.Elasticity
}

// Profiles looks a profile up; ok is false if there is none of that name.
type Profiles func(name string) (p Profile, ok bool)

// Fill gives s what it leaves out: ideal and minimum memory, duration and elasticity.
func (p Profile) Fill(s *cluster.Stage) {
	if s.Ideal[resource.Memory] == 0 {
		s.Ideal[resource.Memory] = p.Ideal
	}
	if s.MinMemory == 0 {
		s.MinMemory = min(p.MinMemory, s.Ideal[resource.Memory])
	}
	if s.Duration == 0 {
		s.Duration = p.Duration
	}
	if s.Elasticity.Kind == cluster.NotElastic {
		s.Elasticity = p.Elasticity
	}
}

// assumingProfiles returns j with as much ideal memory, where a profile is to say how much, as passes every check that
// does not depend on how much it is.
func (j *Job) assumingProfiles() cluster.Job {
	filled := j.Job
	filled.Stages = slices.Clone(j.Stages)
	for i, name := range j.Profiles {
		if name != "" && filled.Stages[i].Ideal[resource.Memory] == 0 {
			filled.Stages[i].Ideal[resource.Memory] = cluster.MostMemory
		}
	}
	return filled
}
