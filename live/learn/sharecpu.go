package learn

import (
	"cmp"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// ShareCPU decides what the tasks of a job get of CPU where the submitter does not say. They may use all that their
// node has while others leave it, so that no program waits beside a core that is free; and what is reserved is learned,
// so that programs which wait for a disk or the network do not each hold a core.
func ShareCPU(j *cluster.Job) {
	for i := range j.Stages {
		s := &j.Stages[i]
		if s.Coordinator {
			continue
		}
		if s.Ideal[resource.CPU] == 0 {
			s.Ideal[resource.CPU], s.ReservedCPU = profile.UsualCPU, &cluster.ReservedCPU{}
			if s.MaxCPU > 0 {
				s.Ideal[resource.CPU] = min(s.Ideal[resource.CPU], s.MaxCPU)
			}
		}
		s.MaxCPU = cmp.Or(s.MaxCPU, resource.MostCPU)
	}
}
