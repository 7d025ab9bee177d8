package sim

import (
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// truthOf looks up the truth of a task on an executor of the given warmth.
func truthOf(j *workload.Job, stage int, index int32, w workload.Warmth) workload.TaskTruth {
	t := j.Task(stage, int(index))
	if stage < len(j.Truth) {
		t.Duration = j.Truth[stage].DurationIn(w, int(index), t.Duration)
	}
	if j.Resizable(stage) {
		t.Elasticity = &inelastic
	}
	return t
}

// inelastic is the profile of a FLEX task: its container's limit moves, and the task does not spill.
var inelastic cluster.Elasticity

// underSized reports whether a grant makes a task spill.
func underSized(t *workload.TaskTruth, memory resource.Amount) bool {
	return memory < t.IdealMemory && t.Elasticity.Kind != cluster.NotElastic
}

// trueDuration returns the true run time of a task with the given memory on a node without contention, and on an
// executor of the given warmth; phases, paging and garbage collection are not included.
func trueDuration(j *workload.Job, stage int, index int32, w workload.Warmth, memory resource.Amount) time.Duration {
	if s := &j.Stages[stage]; len(j.Truth) == 0 {
		return s.Elasticity.Duration(s.RunTime(), s.Ideal[resource.Memory], memory)
	}
	t := truthOf(j, stage, index, w)
	return t.Elasticity.Duration(t.Duration, t.IdealMemory, memory)
}

// behaviour is the truths common to all tasks of a stage that decide how the tasks must be simulated.
type behaviour uint8

const (
	phased   behaviour = 1 << iota // its tasks have phases, or a heap
	spills                         // under-sized tasks demand disk bandwidth
	outgrow                        // they may need more memory than their grant, and cannot spill
	flexible                       // their containers are FLEX
)

func behaviourOf(j *workload.Job, stage int) behaviour {
	if j.Resizable(stage) {
		return flexible
	}
	n := spillBehaviour(&j.Stages[stage].Elasticity)
	if len(j.Stages[stage].Phases) > 0 || j.Stages[stage].StartShare > 0 {
		n |= phased
	}
	if stage >= len(j.Truth) {
		return n
	}
	t := &j.Truth[stage]
	inelastic := j.Stages[stage].Elasticity.Kind == cluster.NotElastic
	if t.Elasticity != nil {
		n, inelastic = n&phased|spillBehaviour(t.Elasticity), t.Elasticity.Kind == cluster.NotElastic
	}
	if t.Phases.Given() || t.Heap != nil {
		n |= phased
	}
	if inelastic && (t.IdealMemory.Given() || j.Stages[stage].Elastic()) {
		n |= outgrow
	}
	return n
}

func spillBehaviour(e *cluster.Elasticity) behaviour {
	if e.Kind != cluster.NotElastic && e.DiskRate > 0 {
		return spills
	}
	return 0
}

// withCoordinator returns j with a coordinator as its first stage.
func withCoordinator(j *workload.Job, need resource.Vector) *workload.Job {
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
		c.Truth = append([]workload.StageTruth{{}}, j.Truth...)
	}
	return &c
}
