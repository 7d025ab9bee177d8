package sim

import (
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// real is the truth of one task, whatever its grant. Where the truth says nothing, the estimate is true.
type real struct {
	duration time.Duration   // with enough memory
	ideal    resource.Amount // the least memory that is enough
	profile  *cluster.Elasticity
	phases   []workload.Phase // nil: one phase with the needs of the stage
	heap     *workload.Heap   // nil: no garbage collection
}

// realOf looks up the truth of a task.
func realOf(j *workload.Job, stage int, index int32) real {
	s := &j.Stages[stage]
	r := real{duration: s.Duration, ideal: s.Ideal[resource.Memory], profile: &s.Elasticity}
	if j.Breathes(stage) {
		r.profile = &inelastic
	}
	if stage >= len(j.Truth) {
		return r
	}
	t := &j.Truth[stage]
	r.phases, r.heap = t.Phases, t.Heap
	if int(index) < len(t.TaskPhases) {
		r.phases = t.TaskPhases[index]
	}
	if total, largest := overPhases(r.phases); len(r.phases) > 0 {
		r.ideal = largest
		if total > 0 {
			r.duration = total
		}
	}
	if t.Duration > 0 {
		r.duration = t.Duration
	}
	if int(index) < len(t.Durations) {
		r.duration = t.Durations[index]
	}
	if t.IdealMemory > 0 {
		r.ideal = t.IdealMemory
	}
	if int(index) < len(t.IdealMemories) {
		r.ideal = t.IdealMemories[index]
	}
	if t.Elasticity != nil && !j.Breathes(stage) {
		r.profile = t.Elasticity
	}
	return r
}

// inelastic is the profile of a FLEX task: its container's limit moves, and the task does not spill.
var inelastic cluster.Elasticity

// overPhases returns the total duration of all phases and their largest working set.
func overPhases(phases []workload.Phase) (total time.Duration, largest resource.Amount) {
	for i := range phases {
		total += phases[i].Duration
		largest = max(largest, phases[i].Demand[resource.Memory])
	}
	return total, largest
}

// underSized reports whether a grant makes the task spill.
func (r *real) underSized(memory resource.Amount) bool {
	return memory < r.ideal && r.profile.Kind != cluster.NotElastic
}

// trueDuration returns the true run time of a task with the given memory on a node without contention; phases, paging
// and garbage collection are not included.
func trueDuration(j *workload.Job, stage int, index int32, memory resource.Amount) time.Duration {
	if s := &j.Stages[stage]; len(j.Truth) == 0 {
		return s.Elasticity.Duration(s.Duration, s.Ideal[resource.Memory], memory)
	}
	r := realOf(j, stage, index)
	return r.profile.Duration(r.duration, r.ideal, memory)
}

// nature is the truths common to all tasks of a stage that decide how the tasks must be simulated.
type nature uint8

const (
	phased   nature = 1 << iota // its tasks have phases, or a heap
	spills                      // under-sized tasks demand disk bandwidth
	outgrow                     // they may need more memory than their grant, and cannot spill
	flexible                    // their containers are FLEX
)

func natureOf(j *workload.Job, stage int) nature {
	if j.Breathes(stage) {
		return flexible
	}
	if stage >= len(j.Truth) {
		return spillNature(&j.Stages[stage].Elasticity)
	}
	t := &j.Truth[stage]
	n := spillNature(&j.Stages[stage].Elasticity)
	inelastic := j.Stages[stage].Elasticity.Kind == cluster.NotElastic
	if t.Elasticity != nil {
		n, inelastic = spillNature(t.Elasticity), t.Elasticity.Kind == cluster.NotElastic
	}
	if len(t.Phases) > 0 || len(t.TaskPhases) > 0 || t.Heap != nil {
		n |= phased
	}
	if inelastic && (t.IdealMemory > 0 || t.IdealMemories != nil || j.Stages[stage].Elastic()) {
		n |= outgrow
	}
	return n
}

func spillNature(e *cluster.Elasticity) nature {
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
