package workload

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// flexStart is the initial memory of the FLEX containers of a generated workload, and flexSteps the number of steps in
// which they grow.
const (
	flexStart = 512 * resource.MB
	flexSteps = 16
)

// flexJob makes j a FLEX job whose tasks turn out to need the memory that was drawn: they grow steadily for two fifths
// of their run, need all of it for two fifths, and a third of it in the last fifth. Policies see the initial memory.
func flexJob(j *Job) {
	s := &j.Stages[0]
	peak, run := s.Ideal[resource.Memory], s.Duration
	start := min(flexStart, peak)
	j.Class, s.Ideal[resource.Memory] = cluster.Flex, start
	phase := func(name string, d time.Duration, memory resource.Amount) cluster.Phase {
		return cluster.Phase{Name: name, Duration: d, Demand: s.Ideal.With(resource.Memory, memory)}
	}
	var phases []cluster.Phase
	rise := run * 2 / 5
	for i := range flexSteps {
		from, to := rise*time.Duration(i)/flexSteps, rise*time.Duration(i+1)/flexSteps
		phases = append(phases, phase("grow", to-from, start+(peak-start)*resource.Amount(i+1)/(flexSteps+1)))
	}
	phases = append(phases, phase("full", rise, peak), phase("end", run-2*rise, max(start, peak/3)))
	j.Truth = []StageTruth{{Phases: ForAll(phases)}}
}
