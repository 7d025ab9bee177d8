package importer

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// The trace of 2011 as Google publishes it: parts of the tables task_usage and task_events, without heads. A job is a
// stage of its tasks; their samples may be in several files.

var (
	googleUsage = []string{"start_us", "end_us", "job", "task", "machine", "cpu_rate", "memory", "assigned_memory",
		"unmapped_page_cache", "page_cache", "max_memory", "disk_io_time", "disk_space", "max_cpu_rate", "max_disk_io_time",
		"cycles_per_instruction", "memory_accesses_per_instruction", "sample_portion", "aggregation_type", "sampled_cpu"}
	googleEvents = []string{"time_us", "missing_info", "job", "task", "machine", "event", "user", "scheduling_class",
		"priority", "cpu_request", "memory_request", "disk_request", "different_machine"}
)

// googleTask is a task of a job. Times are in microseconds.
type googleTask struct {
	submitted, began, ended float64 // -1 is unknown
	requested               resource.Vector
	samples                 []googleSample
}

type googleSample struct {
	begin, end float64
	used       resource.Vector
}

type googleJob struct {
	name  string
	index map[string]*googleTask
	tasks []*googleTask
}

// googleTable returns the columns of a file of the published tables, from its first line; nil if it is none of them.
func googleTable(start string) []string {
	line, _, _ := strings.Cut(start, "\n")
	switch strings.Count(line, ",") + 1 {
	case len(googleUsage), len(googleUsage) - 1: // the first version of the trace has no sampled_cpu
		return googleUsage
	case len(googleEvents):
		return googleEvents
	}
	return nil
}

// published reads a file of one of the tables.
func (f *GoogleVMs) published(in *input, columns []string) error {
	width := func(cells int) error {
		if cells != len(columns) && !(&columns[0] == &googleUsage[0] && cells == len(columns)-1) {
			return in.fault("columns: must be %d, but are %d", len(columns), cells)
		}
		return nil
	}
	return in.cells(",", columns, width, func(r *row) error {
		t := f.task(r.named("job"), r.named("task"))
		if &columns[0] == &googleEvents[0] {
			f.event(r, t)
		} else {
			f.sample(r, t)
		}
		return nil
	})
}

// task returns the task of a job.
func (f *GoogleVMs) task(job, task string) *googleTask {
	j := f.jobs[job]
	if j == nil {
		j = &googleJob{name: job, index: map[string]*googleTask{}}
		f.jobs[job] = j
		f.order = append(f.order, j)
	}
	t := j.index[task]
	if t == nil {
		t = &googleTask{submitted: -1, began: -1, ended: -1}
		j.index[task] = t
		j.tasks = append(j.tasks, t)
	}
	return t
}

// of returns shares of the largest machine of the trace as an amount of CPU and memory.
func (f *GoogleVMs) of(cpu, memory float64) resource.Vector {
	return resource.Of(amount(min(cpu*float64(f.CPU), mostCores*1000)), amount(memory*float64(f.Memory)))
}

// event reads a line of task_events.
func (f *GoogleVMs) event(r *row, t *googleTask) {
	at := r.number("time_us", 0, math.MaxInt64)
	cpu, memory := r.numberOr("cpu_request", 0, mostCores, 0), r.numberOr("memory_request", 0, mostBytes, 0)
	event := r.whole("event", 0, 8)
	if r.err != nil || at > mostSeconds*1e6 { // of what happened after the end of the trace
		return
	}
	f.last = max(f.last, at)
	t.requested = t.requested.Max(f.of(cpu, memory))
	switch {
	case event == 0 && t.submitted < 0:
		t.submitted = at
	case event == 1 && t.began < 0:
		t.began = at
	case event >= 2 && event <= 6: // evicted, failed, finished, killed, lost
		t.ended = max(t.ended, at)
	}
}

// sample reads a line of task_usage.
func (f *GoogleVMs) sample(r *row, t *googleTask) {
	s := googleSample{begin: r.number("start_us", 0, mostSeconds*1e6), end: r.number("end_us", 0, mostSeconds*1e6)}
	memory := r.numberOr("memory", 0, mostBytes, 0)
	s.used = f.of(r.numberOr("cpu_rate", 0, mostCores, 0), cmp.Or(r.numberOr("max_memory", 0, mostBytes, 0), memory))
	if r.err == nil && s.end < s.begin {
		r.fail("end_us", "must not be before start_us")
	}
	if r.err == nil {
		f.last = max(f.last, s.end)
		t.samples = append(t.samples, s)
	}
}

// finish passes on the jobs of all files.
func (f *GoogleVMs) finish(n *notes, job func(workload.Job) error) error {
	for _, g := range f.order {
		if j, ok := f.job(g, n); ok {
			if err := job(j); err != nil {
				return err
			}
		}
	}
	return nil
}

// job makes the job of tasks that ran; ok is false if there is none.
func (f *GoogleVMs) job(g *googleJob, n *notes) (j workload.Job, ok bool) {
	s := cluster.Stage{Name: "tasks"}
	submitted, used := math.MaxFloat64, false
	var ran [][]cluster.Phase
	var unknown []bool // whether a task has no samples
	for _, t := range g.tasks {
		phases, begin := t.phases(f.last, n)
		if phases == nil {
			n.add("tasks were not started and were left out", 1)
			continue
		}
		ran, unknown = append(ran, phases), append(unknown, len(t.samples) == 0)
		submitted = min(submitted, begin)
		used = used || len(t.samples) > 0
		s.Ideal = s.Ideal.Max(t.requested)
	}
	if len(ran) == 0 {
		return j, false
	}
	if s.Ideal[resource.CPU] == 0 || s.Ideal[resource.Memory] == 0 {
		n.add("jobs have no requests in the files (they are in task_events); the most that a task used is taken for them", 1)
		for _, phases := range ran {
			for _, p := range phases {
				s.Ideal = s.Ideal.Max(p.Demand)
			}
		}
	}
	s.Ideal = s.Ideal.Max(resource.Of(1, 1))
	s.Tasks = len(ran)
	durations, peaks := make([]time.Duration, len(ran)), make([]resource.Amount, len(ran))
	for i, phases := range ran {
		for k := range phases {
			if unknown[i] {
				phases[k].Demand = s.Ideal
			}
			durations[i] += phases[k].Duration
			peaks[i] = max(peaks[i], phases[k].Demand[resource.Memory], 1)
		}
	}
	s.Duration = mean(durations)
	j = workload.Job{Job: cluster.Job{Name: plainName("job-" + g.name), Class: cluster.Flex, Stages: []cluster.Stage{s},
		Submitted: timeline.Time(seconds(submitted / 1e6))}}
	truth := workload.StageTruth{Duration: workload.ForEach(durations)}
	if used {
		truth.IdealMemory, truth.Phases = workload.ForEach(peaks), workload.ForEach(ran)
	}
	j.Truth = []workload.StageTruth{truth}
	return j, true
}

// phases returns what a task did and when it was submitted; nil for a task that did not run. A task without samples has
// one phase without demand. last is the end of the files.
func (t *googleTask) phases(last float64, n *notes) (phases []cluster.Phase, submitted float64) {
	lasting := func(us float64) time.Duration { return max(seconds(us/1e6), time.Millisecond) }
	if len(t.samples) == 0 {
		if t.began < 0 {
			return nil, 0
		}
		if t.ended < t.began {
			n.add("tasks had not ended when the files did, and end then", 1)
			t.ended = last
		}
		ran := max(lasting(t.ended-t.began), time.Second)
		return []cluster.Phase{{Duration: ran}}, cmp.Or(max(t.submitted, 0), t.began)
	}
	slices.SortStableFunc(t.samples, func(a, b googleSample) int { return cmp.Compare(a.begin, b.begin) })
	for i, s := range t.samples {
		end := s.end
		if i+1 < len(t.samples) {
			end = t.samples[i+1].begin
		}
		if end == s.begin && i+1 < len(t.samples) {
			n.add("samples begin with the sample after them and were left out", 1)
			continue
		}
		if k := len(phases) - 1; k >= 0 && phases[k].Demand == s.used {
			phases[k].Duration += lasting(end - s.begin)
			continue
		}
		phases = append(phases, cluster.Phase{Duration: lasting(end - s.begin), Demand: s.used})
	}
	if t.submitted >= 0 {
		return phases, t.submitted
	}
	return phases, t.samples[0].begin
}
