package workload

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// IsZero reports whether the truth is empty: everything is as estimated.
func (t *StageTruth) IsZero() bool {
	return !t.Duration.Given() && !t.Warms() && !t.IdealMemory.Given() && t.Elasticity == nil && !t.Phases.Given() &&
		t.Heap == nil
}

// Differs reports whether the truth has a value for each task of its own.
func (t *StageTruth) Differs() bool {
	return t.Duration.Differs() || t.Warms() || t.IdealMemory.Differs() || t.Phases.Differs()
}

// Warms reports whether an executor takes longer, or shorter, for its first tasks.
func (t *StageTruth) Warms() bool { return len(t.Fresh)+len(t.First) > 0 }

// Warmth is what an executor has run when it begins a task. It survives that an executor changes to another job: what
// it has run belongs to the process.
type Warmth uint8

const (
	Warm  Warmth = iota // tasks of the same stage of the same job, or of another run of its App
	First               // tasks, but none of this stage
	Fresh               // nothing
)

// DurationIn is the run time of a task on an executor of the given warmth, if warm is that on a warm one.
func (t *StageTruth) DurationIn(w Warmth, task int, warm time.Duration) time.Duration {
	list := t.First
	if w == Fresh && len(t.Fresh) > 0 {
		list = t.Fresh
	}
	if w == Warm || len(list) == 0 {
		return warm
	}
	return list[task%len(list)]
}

// TaskTruth is what one task really does, whatever its grant. Where the truth of its stage says nothing, the estimate
// is true.
type TaskTruth struct {
	Duration    time.Duration   // with enough memory, on a warm executor
	IdealMemory resource.Amount // the least memory that is enough, bytes
	Elasticity  *cluster.Elasticity
	Phases      []cluster.Phase // none: one phase with the ideal need of the stage
	Heap        *Heap           // nil: no garbage collection
}

// Distinct returns how many tasks of a stage, from the first on, show everything that its tasks do: 1 if all do the
// same.
func (j *Job) Distinct(stage int) int {
	if stage < len(j.Truth) && j.Truth[stage].Differs() {
		return j.Stages[stage].Tasks
	}
	return 1
}

// Task returns the truth of a task, counted from 0, of a stage.
func (j *Job) Task(stage, task int) TaskTruth {
	s := &j.Stages[stage]
	r := TaskTruth{Duration: s.RunTime(), IdealMemory: s.Ideal[resource.Memory], Elasticity: &s.Elasticity,
		Phases: s.Phases}
	if stage >= len(j.Truth) {
		return r
	}
	t := &j.Truth[stage]
	r.Heap = t.Heap
	if t.Elasticity != nil {
		r.Elasticity = t.Elasticity
	}
	if phases, _ := t.Phases.Of(task); len(phases) > 0 {
		r.Phases = phases
		var total time.Duration
		if total, r.IdealMemory = SumPhases(r.Phases); total > 0 {
			r.Duration = total
		}
	}
	if d, given := t.Duration.Of(task); given {
		r.Duration = d
	}
	if m, given := t.IdealMemory.Of(task); given {
		r.IdealMemory = m
	}
	return r
}

// SumPhases returns the total duration of phases and their largest working set, in bytes.
func SumPhases(phases []cluster.Phase) (total time.Duration, largest resource.Amount) {
	for i := range phases {
		total += phases[i].Duration
		largest = max(largest, phases[i].Demand[resource.Memory])
	}
	return total, largest
}

// MapMemory replaces each real need for memory in t by f of it: ideal memory, working sets of phases, live sets of
// heaps. Amounts of 0, which are as estimated, do not change. Data that t shares with other stages is copied first.
func (t *StageTruth) MapMemory(f func(resource.Amount) resource.Amount) {
	replace := func(a resource.Amount) resource.Amount {
		if a > 0 {
			return f(a)
		}
		return a
	}
	t.IdealMemory = t.IdealMemory.Map(replace)
	t.MapPhases(func(p *cluster.Phase) { p.Demand[resource.Memory] = replace(p.Demand[resource.Memory]) })
	if t.Heap != nil {
		t.Heap = &Heap{Live: replace(t.Heap.Live), Size: t.Heap.Size}
	}
}

// MapPhases changes each phase of each task. Data that t shares with other stages is copied first.
func (t *StageTruth) MapPhases(change func(*cluster.Phase)) {
	t.Phases = t.Phases.Map(func(list []cluster.Phase) []cluster.Phase {
		list = slices.Clone(list)
		for i := range list {
			change(&list[i])
		}
		return list
	})
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

// Check returns an error that names the first field of the truth, of a stage with the given number of tasks, that is
// out of range.
func (t *StageTruth) Check(tasks int) error {
	if err := t.Duration.check("durations", tasks, checkDuration); err != nil {
		return err
	}
	for _, list := range []struct {
		name string
		all  []time.Duration
	}{{"fresh", t.Fresh}, {"first", t.First}} {
		if err := ForEach(list.all).check(list.name, len(list.all), checkDuration); err != nil {
			return err
		}
	}
	err := t.IdealMemory.check("memories", tasks, func(m resource.Amount) error {
		return checkTruthMemory("memory", m, 1)
	})
	if err != nil {
		return err
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
	return t.Phases.check("task phases", tasks, cluster.CheckPhases)
}

func checkDuration(d time.Duration) error {
	if d < 1 || d > cluster.LongestTime {
		return fmt.Errorf("duration %v: must be above 0s, at most %v", d, cluster.LongestTime)
	}
	return nil
}

func checkTruthMemory(name string, m, least resource.Amount) error {
	if m < least || m > resource.MostMemory {
		return fmt.Errorf("%s %d bytes: must be from %d to %d", name, m, least, resource.MostMemory)
	}
	return nil
}
