package workload

import (
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Summary describes the contents of a workload.
type Summary struct {
	Jobs, Stages, Edges int
	Tasks               int64
	// First and Last are the submissions of the first and the last job that wait for no other job; Span is the time
	// between them.
	First, Last, Span time.Duration
	// LongestPath is the longest chain of stages of one job with ideal memory, as tasks really run.
	LongestPath time.Duration
	// Work is the estimated need of all tasks times their real run times: millicore-seconds, byte-seconds, bytes.
	Work [resource.NumKinds]float64
	// Used is the real use in that time; equal to Work where it is unknown.
	Used [resource.NumKinds]float64
	// Largest is the largest estimated need of a task, per resource.
	Largest resource.Vector
	// Elastic counts tasks that may be under-sized; Phased counts tasks whose demand changes over time.
	Elastic, Phased int64
	// TasksOfJob, StagesOfJob and PathOfJob have one value per job, Gap one per submission after the first; all others
	// have one per task.
	TasksOfJob, StagesOfJob, PathOfJob, Gap, Duration, CPU, Memory, MemoryUsed Quantiles
}

// submitted notes a submission, the first one or one that follows the last, and returns the time since that.
func (s *Summary) submitted(at time.Duration, first bool) (gap time.Duration) {
	if first {
		s.First = at
	}
	gap = at - s.Last
	s.Last, s.Span = at, at-s.First
	return gap
}

// Quantiles describe a distribution. Count is 0 if no value is known.
type Quantiles struct {
	Count                             int64
	Min, P25, P50, P75, P90, P99, Max float64
	Mean                              float64
}

// Known reports whether any value is known.
func (q *Quantiles) Known() bool { return q.Count > 0 }

// weighted collects values, each with a weight that counts its repetitions.
type weighted struct {
	values []weightedValue
	total  int64
}

type weightedValue struct {
	value  float64
	weight int64
}

func (w *weighted) add(value float64, weight int64) {
	w.values = append(w.values, weightedValue{value, weight})
	w.total += weight
}

// quantiles returns, for each percentage, the least value such that this percentage of the values is at most as large.
func (w *weighted) quantiles() Quantiles {
	q := Quantiles{Count: w.total}
	if w.total == 0 {
		return q
	}
	sort.Slice(w.values, func(a, b int) bool { return w.values[a].value < w.values[b].value })
	var before int64
	var sum float64
	marks := []struct {
		percent int64
		to      *float64
	}{{25, &q.P25}, {50, &q.P50}, {75, &q.P75}, {90, &q.P90}, {99, &q.P99}}
	for _, v := range w.values {
		before += v.weight
		sum += v.value * float64(v.weight)
		for len(marks) > 0 && before*100 >= marks[0].percent*w.total {
			*marks[0].to, marks = v.value, marks[1:]
		}
	}
	q.Min, q.Max, q.Mean = w.values[0].value, w.values[len(w.values)-1].value, sum/float64(w.total)
	return q
}

// summing is a summary under construction.
type summing struct {
	Summary
	tasks, stages, path, gap, duration, cpu, memory, used weighted
}

// Summarise describes w: CPU is in millicores, memory in bytes, durations in seconds.
func Summarise(w *Workload) Summary {
	s := &summing{Summary: Summary{Jobs: len(w.Jobs)}}
	first := true
	for i := range w.Jobs {
		j := &w.Jobs[i]
		s.job(j)
		if j.After >= 0 {
			continue
		}
		gap := s.submitted(time.Duration(j.Submitted), first)
		if !first {
			s.gap.add(gap.Seconds(), 1)
		}
		first = false
	}
	s.TasksOfJob, s.StagesOfJob, s.PathOfJob, s.Gap = s.tasks.quantiles(), s.stages.quantiles(), s.path.quantiles(),
		s.gap.quantiles()
	s.Duration, s.CPU, s.Memory, s.MemoryUsed = s.duration.quantiles(), s.cpu.quantiles(), s.memory.quantiles(),
		s.used.quantiles()
	return s.Summary
}

func (s *summing) job(j *Job) {
	longestTask := make([]time.Duration, len(j.Stages))
	var tasks int64
	for i := range j.Stages {
		s.Stages++
		s.Edges += len(j.Stages[i].Parents)
		if !j.Stages[i].Coordinator {
			tasks += int64(j.Stages[i].Tasks)
		}
		longestTask[i] = s.stage(j, i)
	}
	s.Tasks += tasks
	s.tasks.add(float64(tasks), 1)
	s.stages.add(float64(len(j.Stages)), 1)
	path := cluster.LongestPath(&j.Job, func(i int) time.Duration { return longestTask[i] })
	s.path.add(path.Seconds(), 1)
	s.LongestPath = max(s.LongestPath, path)
}

// stage adds a stage and returns how long its longest task runs. Coordinators have no work of their own.
func (s *summing) stage(j *Job, i int) (longest time.Duration) {
	stage := &j.Stages[i]
	s.Largest = s.Largest.Max(stage.Ideal)
	if stage.Coordinator {
		return 0
	}
	n := int64(stage.Tasks)
	if stage.Elastic() {
		s.Elastic += n
	}
	s.cpu.add(float64(stage.Ideal[resource.CPU]), n)
	s.memory.add(float64(stage.Ideal[resource.Memory]), n)
	phased, differ := false, false
	if i < len(j.Truth) {
		t := &j.Truth[i]
		one, _ := t.Phases.Of(0)
		phased, differ = len(one) > 1 || t.Phases.Differs(), t.Differs()
	}
	if phased {
		s.Phased += n
	}
	if !differ {
		t := j.Task(i, 0)
		s.task(stage.Ideal, &t, n)
		return t.Duration
	}
	for k := range stage.Tasks {
		t := j.Task(i, k)
		s.task(stage.Ideal, &t, 1)
		longest = max(longest, t.Duration)
	}
	return longest
}

// task adds n equal tasks.
func (s *summing) task(needs resource.Vector, t *TaskTruth, n int64) {
	s.duration.add(t.Duration.Seconds(), n)
	s.used.add(float64(t.IdealMemory), n)
	lasting := t.Duration.Seconds() * float64(n)
	var total time.Duration
	var sums [resource.NumKinds]float64
	for i := range t.Phases {
		total += t.Phases[i].Duration
		for k, a := range t.Phases[i].Demand {
			sums[k] += float64(a) * t.Phases[i].Duration.Seconds()
		}
	}
	for k, a := range needs {
		s.Work[k] += float64(a) * lasting
		switch {
		case total > 0:
			s.Used[k] += sums[k] / total.Seconds() * lasting
		case resource.Kind(k) == resource.Memory:
			s.Used[k] += float64(t.IdealMemory) * lasting
		default:
			s.Used[k] += float64(a) * lasting
		}
	}
}
