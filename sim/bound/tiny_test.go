package bound

import (
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// trueDuration returns how long a task really runs with the given memory.
func trueDuration(j *workload.Job, stage int, index int32, memory resource.Amount) time.Duration {
	s := &j.Stages[stage]
	d, ideal, profile := s.Duration, s.Ideal[resource.Memory], &s.Elasticity
	if stage < len(j.Truth) {
		t := &j.Truth[stage]
		if real, given := t.Duration.Of(int(index)); given {
			d = real
		}
		if real, given := t.IdealMemory.Of(int(index)); given {
			ideal = real
		}
		if t.Elasticity != nil {
			profile = t.Elasticity
		}
	}
	return profile.Duration(d, ideal, memory)
}

// tinyWorkload draws up to three jobs with the given total number of tasks, and every other property that bounds depend
// on, for nodes with four cores and the given memory.
func tinyWorkload(r *rand.Rand, memory resource.Amount, tasks int) *workload.Workload {
	share := func() resource.Amount { return max(4, memory*resource.Amount(10+r.IntN(90))/100) }
	w := &workload.Workload{}
	for len(w.Jobs) < 3 && tasks > 0 {
		j := workload.Job{After: -1}
		j.ID = cluster.JobID(len(w.Jobs) + 1)
		if len(w.Jobs) > 0 && r.IntN(4) == 0 {
			j.After = r.IntN(len(w.Jobs))
		} else {
			j.Submitted = timeline.Time(time.Duration(r.IntN(6)) * time.Second)
		}
		for len(j.Stages) < 2 && tasks > 0 {
			n := 1 + r.IntN(min(3, tasks))
			tasks -= n
			s := cluster.Stage{Tasks: n, Duration: time.Duration(1+r.IntN(20)) * time.Second,
				Ideal: resource.Of(resource.Amount(1+r.IntN(3))*resource.Core, share())}
			if len(j.Stages) > 0 && r.IntN(2) == 0 {
				s.Parents = []int{0}
			}
			s.Elasticity = tinyElasticity(r, s.Ideal[resource.Memory])
			s.MinMemory = max(1, s.Ideal[resource.Memory]*resource.Amount(1+r.IntN(9))/10)
			t := workload.StageTruth{}
			if r.IntN(3) == 0 {
				ideal := share()
				t.IdealMemory = workload.ForAll(ideal)
				e := tinyElasticity(r, ideal)
				t.Elasticity = &e
			}
			if r.IntN(3) == 0 {
				var durations []time.Duration
				for range n {
					durations = append(durations, time.Duration(1+r.IntN(20_000))*time.Millisecond)
				}
				t.Duration = workload.ForEach(durations)
			}
			j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, t)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

func tinyElasticity(r *rand.Rand, ideal resource.Amount) cluster.Elasticity {
	factor := 1 + 3*r.Float64()
	switch r.IntN(5) {
	case 0:
		return cluster.Elasticity{Kind: cluster.Step, Factor: factor}
	case 1:
		return cluster.Elasticity{Kind: cluster.SawTooth, Factor: factor}
	case 2:
		return cluster.Elasticity{Kind: cluster.Points, Points: []cluster.ElasticityPoint{
			{Memory: ideal / 4, Slowdown: 0.5 + r.Float64()}, {Memory: ideal / 2, Slowdown: 0.5 + r.Float64()},
			{Memory: ideal, Slowdown: 0.5 + r.Float64()}}}
	case 3:
		return cluster.Elasticity{Kind: cluster.SawToothTable, Factor: factor}
	}
	return cluster.Elasticity{}
}
