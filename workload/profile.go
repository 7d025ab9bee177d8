package workload

import (
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// AssumingProfiles returns j with as much ideal memory, where a profile is to say how much, as passes every check that
// does not depend on how much it is.
func (j *Job) AssumingProfiles() cluster.Job {
	filled := j.Job
	filled.Stages = slices.Clone(j.Stages)
	for i, name := range j.Profiles {
		if name != "" && filled.Stages[i].Ideal[resource.Memory] == 0 {
			filled.Stages[i].Ideal[resource.Memory] = cluster.MostMemory
		}
	}
	return filled
}
