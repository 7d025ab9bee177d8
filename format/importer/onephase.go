package importer

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// onePhaseTasks collects tasks that were measured as a whole: each runs in one phase, and needs its working set.
type onePhaseTasks struct {
	durations []time.Duration
	memories  []resource.Amount
	phases    [][]cluster.Phase
}

func (o *onePhaseTasks) add(p cluster.Phase) {
	o.durations = append(o.durations, p.Duration)
	o.memories = append(o.memories, p.Demand[resource.Memory])
	o.phases = append(o.phases, []cluster.Phase{p})
}

func (o *onePhaseTasks) truth() workload.StageTruth {
	return workload.StageTruth{Duration: workload.ForEach(o.durations), IdealMemory: workload.ForEach(o.memories),
		Phases: workload.ForEach(o.phases)}
}
