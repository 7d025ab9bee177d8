package trace

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Profiles looks a profile up; ok is false if there is none of that name.
type Profiles func(name string) (p cluster.Profile, ok bool)

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
