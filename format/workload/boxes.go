package workload

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Boxed returns a copy of w whose FLEX jobs are REGULAR: each of their tasks gets a container of the given size, in
// bytes, and a garbage-collected program gets a heap of the same size. Size 0 is the largest working set of the tasks
// of each stage, which is unknown in advance: the best possible over-provisioning. Coordinators do not change.
func Boxed(w *Workload, size resource.Amount) *Workload {
	return changeFlex(w, func(j *Job, stage int) {
		s, t := &j.Stages[stage], &j.Truth[stage]
		memory := size
		if memory == 0 {
			memory = max(1, t.peak(s))
		}
		j.Class = cluster.Regular
		s.Ideal[resource.Memory], s.MinMemory, s.MaxMemory = memory, 0, 0
		s.Elasticity, t.Elasticity = cluster.Elasticity{}, nil
		if t.Heap != nil {
			t.Heap = &Heap{Live: t.Heap.Live}
		}
	})
}

// StartWith returns a copy of w whose FLEX containers start with the given memory, in bytes.
func StartWith(w *Workload, memory resource.Amount) *Workload {
	return changeFlex(w, func(j *Job, stage int) {
		s := &j.Stages[stage]
		s.Ideal[resource.Memory], s.MinMemory = memory, min(s.MinMemory, memory)
		if s.MaxMemory > 0 {
			s.MaxMemory = max(s.MaxMemory, memory)
		}
	})
}

// changeFlex returns a copy of w in which change is applied to the stages of FLEX jobs, except coordinators.
func changeFlex(w *Workload, change func(j *Job, stage int)) *Workload {
	out := &Workload{Jobs: slices.Clone(w.Jobs)}
	for i := range out.Jobs {
		j := &out.Jobs[i]
		if j.Class != cluster.Flex {
			continue
		}
		j.Stages = slices.Clone(j.Stages)
		truth := make([]StageTruth, len(j.Stages))
		copy(truth, j.Truth)
		j.Truth = truth
		for stage := range j.Stages {
			if !j.Stages[stage].Coordinator {
				change(j, stage)
			}
		}
	}
	return out
}

// peak is the largest working set of any task of s, in bytes.
func (t *StageTruth) peak(s *cluster.Stage) (most resource.Amount) {
	sets := *t
	sets.Heap = nil // it is a part of the working set
	sets.MapMemory(func(a resource.Amount) resource.Amount {
		most = max(most, a)
		return a
	})
	if most == 0 {
		most = s.Ideal[resource.Memory]
	}
	return most
}
