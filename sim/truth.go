package sim

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trace"
)

// trueDuration returns how long a task really runs with the given memory. It is the model of the truth: what is not said
// of the truth is as estimated.
func trueDuration(j *trace.Job, stage int, index int32, memory resource.Amount) time.Duration {
	s := &j.Stages[stage]
	d, ideal, profile := s.Duration, s.Ideal[resource.Memory], &s.Elasticity
	if stage < len(j.Truth) {
		t := &j.Truth[stage]
		if t.Duration > 0 {
			d = t.Duration
		}
		if int(index) < len(t.Durations) {
			d = t.Durations[index]
		}
		if t.IdealMemory > 0 {
			ideal = t.IdealMemory
		}
		if t.Elasticity != nil {
			profile = t.Elasticity
		}
	}
	return profile.Duration(d, ideal, memory)
}

// withCoordinator returns j with a coordinator as its first stage.
func withCoordinator(j *trace.Job, need resource.Vector) *trace.Job {
	c := *j
	c.Stages = make([]cluster.Stage, 0, len(j.Stages)+1)
	c.Stages = append(c.Stages, cluster.Stage{Name: "coordinator", Tasks: 1, Coordinator: true, Ideal: need})
	for _, s := range j.Stages {
		parents := make([]int, len(s.Parents))
		for i, p := range s.Parents {
			parents[i] = p + 1
		}
		s.Parents = parents
		c.Stages = append(c.Stages, s)
	}
	if len(j.Truth) > 0 {
		c.Truth = append([]trace.StageTruth{{}}, j.Truth...)
	}
	return &c
}
