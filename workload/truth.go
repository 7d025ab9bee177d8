package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// IsZero reports whether the truth is empty: everything is as estimated.
func (t *StageTruth) IsZero() bool {
	return t.Durations == nil && t.Duration == 0 && t.IdealMemory == 0 && t.Elasticity == nil && t.IdealMemories == nil &&
		t.Phases == nil && t.TaskPhases == nil && t.Heap == nil
}

// MapMemory replaces each real need for memory in t by f of it: ideal memory, working sets of phases, live sets of
// heaps. Amounts of 0, which are as estimated, do not change. Data that t shares with other stages is copied first.
func (t *StageTruth) MapMemory(f func(resource.Amount) resource.Amount) {
	replace := func(a *resource.Amount) {
		if *a > 0 {
			*a = f(*a)
		}
	}
	phases := func(list []Phase) []Phase {
		list = slices.Clone(list)
		for i := range list {
			replace(&list[i].Demand[resource.Memory])
		}
		return list
	}
	replace(&t.IdealMemory)
	t.IdealMemories = slices.Clone(t.IdealMemories)
	for i := range t.IdealMemories {
		replace(&t.IdealMemories[i])
	}
	t.Phases, t.TaskPhases = phases(t.Phases), slices.Clone(t.TaskPhases)
	for i := range t.TaskPhases {
		t.TaskPhases[i] = phases(t.TaskPhases[i])
	}
	if t.Heap != nil {
		heap := *t.Heap
		replace(&heap.Live)
		t.Heap = &heap
	}
}

// CheckTruth returns an error that names the first field of the truth that is out of range.
func (j *Job) CheckTruth() error {
	if len(j.Truth) != 0 && len(j.Truth) != len(j.Stages) {
		return fmt.Errorf("job %q truth: must be one for each stage, %d, but are %d", j.Name, len(j.Stages), len(j.Truth))
	}
	for i := range j.Truth {
		if err := j.Truth[i].Check(j.Stages[i].Tasks); err != nil {
			return fmt.Errorf("job %q stage %q truth %w", j.Name, j.Stages[i].Name, err)
		}
	}
	return nil
}

// Check returns an error that names the first field of the truth, of a stage with the given number of tasks, that is out of
// range.
func (t *StageTruth) Check(tasks int) error {
	for _, list := range []struct {
		name  string
		given int
	}{{"durations", len(t.Durations)}, {"memories", len(t.IdealMemories)}, {"task phases", len(t.TaskPhases)}} {
		if list.given != 0 && list.given != tasks {
			return fmt.Errorf("%s: must be one for each task, %d, but are %d", list.name, tasks, list.given)
		}
	}
	if t.Duration < 0 || t.Duration > cluster.LongestTime {
		return fmt.Errorf("duration %v: must be from 0s to %v", t.Duration, cluster.LongestTime)
	}
	for i, d := range t.Durations {
		if d < 1 || d > cluster.LongestTime {
			return fmt.Errorf("duration of task %d %v: must be above 0s, at most %v", i, d, cluster.LongestTime)
		}
	}
	if err := checkTruthMemory("memory", t.IdealMemory, 0); err != nil {
		return err
	}
	for i, m := range t.IdealMemories {
		if err := checkTruthMemory(fmt.Sprintf("memory of task %d", i), m, 1); err != nil {
			return err
		}
	}
	if t.Elasticity != nil {
		if err := t.Elasticity.Check(); err != nil {
			return err
		}
	}
	if t.Heap != nil {
		if err := checkTruthMemory("heap live", t.Heap.Live, 0); err != nil {
			return err
		}
		if err := checkTruthMemory("heap size", t.Heap.Size, 0); err != nil {
			return err
		}
	}
	if err := checkPhases(t.Phases); err != nil {
		return err
	}
	for i, phases := range t.TaskPhases {
		if err := checkPhases(phases); err != nil {
			return fmt.Errorf("task %d %w", i, err)
		}
	}
	return nil
}

func checkTruthMemory(name string, m, least resource.Amount) error {
	if m < least || m > resource.MostMemory {
		return fmt.Errorf("%s %d bytes: must be from %d to %d", name, m, least, resource.MostMemory)
	}
	return nil
}

func checkPhases(phases []Phase) error {
	var total time.Duration
	for i := range phases {
		p := &phases[i]
		if p.Duration < 0 || p.Duration > cluster.LongestTime {
			return fmt.Errorf("phase %d duration %v: must be from 0s to %v", i, p.Duration, cluster.LongestTime)
		}
		if total += p.Duration; total > cluster.LongestTime {
			return fmt.Errorf("phases: must last %v at most together", cluster.LongestTime)
		}
		for k, a := range p.Demand {
			if kind := resource.Kind(k); a < 0 || a > kind.Most() {
				return fmt.Errorf("phase %d %s %d: must be from 0 to %d", i, kind, a, kind.Most())
			}
		}
		if p.Name != "" && !cluster.IsName(p.Name) {
			return fmt.Errorf("phase %d name %q: must be at most %d printable characters", i, cluster.Clip(p.Name), cluster.LongestName)
		}
	}
	return nil
}
