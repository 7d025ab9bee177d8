package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// Nextflow reads tables of the tasks of Nextflow workflows, as its trace report writes them, with a column for the
// workflow. A workflow is a job, and the tasks of a process with equal requests are a stage. The file has no edges: a
// stage waits for the stages whose last task had ended when its first task was submitted.
type Nextflow struct {
	KeepDates  bool // submit workflows at their recorded dates, months apart; otherwise all at once
	KeepFailed bool // tasks that failed, for as long as they ran
}

// DefaultNextflow submits all workflows at once, so that they share a cluster.
func DefaultNextflow() *Nextflow { return &Nextflow{} }

// Name implements Format.
func (f *Nextflow) Name() string { return "nextflow" }

// Node implements Format.
func (f *Nextflow) Node() resource.Vector {
	return resource.Of(32*resource.Core, 128*resource.GiB).With(resource.Disk, 500*resource.MB).With(resource.Network, 1250*resource.MB)
}

func (f *Nextflow) check() error { return nil }

// nextflowTask is one task of a stage.
type nextflowTask struct {
	begin, end int64 // submitted, complete: ms
	phase      cluster.Phase
}

type nextflowStage struct {
	process string
	needs   resource.Vector
	tasks   []nextflowTask
}

type nextflowJob struct {
	format *Nextflow
	name   string
	stages []*nextflowStage
	index  map[nextflowKey]*nextflowStage
	ids    map[string]int
}

type nextflowKey struct {
	process string
	needs   resource.Vector
}

func (f *Nextflow) read(in *input, job func(workload.Job) error) error {
	t, err := in.table("workflow", "task_id", "process", "status", "cpus", "memory_req_bytes", "submit_ms", "complete_ms", "?duration_ms",
		"realtime_ms", "pct_cpu", "peak_rss", "?read_bytes", "?write_bytes")
	if err != nil {
		return err
	}
	return gather(in, t.rows, "workflow", func(name string) gathering {
		return &nextflowJob{format: f, name: name, index: map[nextflowKey]*nextflowStage{}, ids: map[string]int{}}
	}, "workflows have no task that is kept", job)
}

const mostMilliseconds = 9e12 // of a date: the year 2255

func (j *nextflowJob) task(r *row) {
	r.once("task_id", j.ids, " in workflow "+j.name)
	process := r.named("process")
	submit := r.numberOr("submit_ms", 0, mostMilliseconds, 0)
	complete := r.numberOr("complete_ms", 0, mostMilliseconds, submit)
	cpus, memory := r.numberOr("cpus", 0, mostCores, 1), r.numberOr("memory_req_bytes", 0, mostBytes, 0)
	peak := r.numberOr("peak_rss", 0, mostBytes, 0)
	busy := r.numberOr("pct_cpu", 0, 100*mostCores, 0)
	moved := r.numberOr("read_bytes", 0, mostBytes, 0) + r.numberOr("write_bytes", 0, mostBytes, 0)
	// Some times are whole seconds, rounded down, next to others in milliseconds.
	if r.err == nil && complete < submit && submit-complete < 1000 {
		complete = submit
	}
	if r.err == nil && complete < submit {
		r.fail("complete_ms", "must not be before submit_ms")
	}
	lasting := lasting(r)
	if r.err != nil {
		return
	}
	switch status := r.text("status"); {
	case status != "COMPLETED" && status != "CACHED" && !j.format.KeepFailed:
		r.in.notes.add("tasks did not complete and were left out (--keep-failed keeps them)", 1)
		return
	case memory == 0 && peak == 0:
		r.in.notes.add("tasks say nothing of their memory and were left out", 1)
		return
	}
	if memory == 0 {
		r.in.notes.add("tasks did not request memory; their peak is taken for it", 1)
		memory = peak
	}
	if peak == 0 {
		r.in.notes.add("tasks have no peak memory; their request is taken for it", 1)
		peak = memory
	}
	if busy == 0 {
		r.in.notes.add("tasks do not say how busy they were; as many cores as requested are taken", 1)
		busy = 100 * max(cpus, 1)
	}
	needs := resource.Of(amount(max(cpus, 1)*float64(resource.Core)), max(1, amount(memory)))
	key := nextflowKey{process, needs}
	s := j.index[key]
	if s == nil {
		s = &nextflowStage{process: process, needs: needs}
		j.index[key] = s
		j.stages = append(j.stages, s)
	}
	demand := resource.Of(amount(busy/100*float64(resource.Core)), max(1, amount(peak)))
	demand[resource.Disk] = amount(moved / lasting.Seconds())
	s.tasks = append(s.tasks, nextflowTask{begin: int64(submit), end: int64(complete),
		phase: cluster.Phase{Duration: lasting, Demand: demand}})
}

// lasting returns the run time of a task. A run time recorded in whole seconds as 0 counts as half a second.
func lasting(r *row) time.Duration {
	ms := r.numberOr("realtime_ms", 0, mostSeconds*1000, 0)
	if ms == 0 {
		r.in.notes.add("tasks ran for 0 s, being recorded in whole seconds, and run for 500 ms", 1)
		return 500 * time.Millisecond
	}
	return max(time.Duration(math.Round(ms))*time.Millisecond, time.Millisecond)
}

// job puts the stages of a workflow together, in the order of their first submissions.
func (n *nextflowJob) job(*notes) (workload.Job, bool) {
	if len(n.stages) == 0 {
		return workload.Job{}, false
	}
	ran := make([]interval, len(n.stages))
	for i, s := range n.stages {
		ran[i] = interval{math.MaxInt64, 0}
		for _, t := range s.tasks {
			ran[i].begin, ran[i].end = min(ran[i].begin, t.begin), max(ran[i].end, t.end)
		}
	}
	order := make([]int, len(n.stages))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ran[a].begin, ran[b].begin) })
	sorted := make([]interval, len(ran))
	for at, was := range order {
		sorted[at] = ran[was]
	}
	parents := precede(sorted)
	j := workload.Job{Job: cluster.Job{Name: n.name}}
	if n.format.KeepDates {
		j.Submitted = timeline.Milliseconds(sorted[0].begin)
	}
	named := map[string]int{}
	for at, was := range order {
		s := n.stages[was]
		named[s.process]++
		name := s.process
		if k := named[name]; k > 1 {
			name = fmt.Sprintf("%s-%d", name, k)
		}
		stage := cluster.Stage{Name: plainName(name), Tasks: len(s.tasks), Ideal: s.needs, Parents: parents[at]}
		var ran onePhaseTasks
		for _, t := range s.tasks {
			ran.add(t.phase)
		}
		stage.Duration = mean(ran.durations)
		j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, ran.truth())
	}
	return j, true
}
