package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Nextflow reads the trace files of Nextflow, with values as people or as programs read them (trace.raw), and tables of
// the tasks of several workflows that were made of such files, separated by commas and with a column for the workflow.
// A workflow is a job, and the tasks of a process with equal requests are a stage. The file has no edges: a stage waits
// for the stages whose last task had ended when its first task was submitted.
type Nextflow struct {
	KeepDates  bool // submit workflows at their recorded dates, months apart; otherwise all at once
	KeepFailed bool // tasks that failed, for as long as they ran
	// NameStages gives all stages of a process its name, so that their runs can teach each other. Otherwise stages with
	// other requests are numbered.
	NameStages bool
}

// DefaultNextflow submits all workflows at once, so that they share a cluster.
func DefaultNextflow() *Nextflow { return &Nextflow{} }

// Name implements Format.
func (f *Nextflow) Name() string { return "nextflow" }

// Node implements Format.
func (f *Nextflow) Node() resource.Vector {
	return resource.Of(32*resource.Core, 128*resource.GiB).With(resource.Disk, 500*resource.MB).With(resource.Network,
		1250*resource.MB)
}

func (f *Nextflow) check() error { return nil }

// nextflowTask is one task of a stage.
type nextflowTask struct {
	begin, end int64 // submitted, complete: ms
	phase      cluster.Phase
	input      resource.Amount // 0 is unknown
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
	process   string
	requested resource.Vector // 0 is unknown
}

func (f *Nextflow) read(in *input, job func(workload.Job) error) error {
	open := in.table
	if start, _ := in.in.Peek(4096); strings.Contains(string(start), "\t") {
		open = func(columns ...string) (*table, error) { return in.separated("\t", columns...) }
	}
	t, err := open("?workflow", "task_id", "process|name", "status", "?exit", "?cpus", "?memory_req_bytes|memory",
		"submit_ms|submit", "?complete_ms|complete", "?duration_ms|duration", "realtime_ms|realtime", "?pct_cpu|%cpu",
		"peak_rss", "?read_bytes", "?write_bytes", "?rchar")
	if err != nil {
		return err
	}
	return gather(in, t.rows, "workflow", func(name string) gathering {
		return &nextflowJob{format: f, name: name, index: map[nextflowKey]*nextflowStage{}, ids: map[string]int{}}
	}, "workflows have no task that is kept", job)
}

const mostMilliseconds = 9e12 // of a date: the year 2255

// outOfMemory are the exit codes of a task that the kernel or a resource manager killed, which is for want of memory as
// a rule: 128 + SIGKILL, and what a shell makes of -9.
var outOfMemory = []string{"137", "247"}

func (j *nextflowJob) task(r *row) {
	const date, size = "milliseconds, or a date such as 2024-02-01 10:00:00.123", "bytes, or a size such as 1.5 GB"
	r.once("task_id", j.ids, " in workflow "+j.name)
	process, _, _ := strings.Cut(r.named("process"), " (") // a name has the tag of its task behind the process
	submit := r.quantity("submit_ms", nextflowDate, mostMilliseconds, date)
	complete := r.quantity("complete_ms", nextflowDate, mostMilliseconds, date)
	if r.missing("complete_ms") {
		complete = submit + r.quantity("duration_ms", nextflowTime, mostSeconds*1000, nextflowTimes)
	}
	cpus := r.numberOr("cpus", 0, mostCores, 0)
	memory := r.quantity("memory_req_bytes", nextflowSize, mostBytes, size)
	peak := r.quantity("peak_rss", nextflowSize, mostBytes, size)
	busy := r.quantity("pct_cpu", percent, 100*mostCores, "a number, or a percentage")
	moved := r.quantity("read_bytes", nextflowSize, mostBytes, size)
	moved += r.quantity("write_bytes", nextflowSize, mostBytes, size)
	read := r.quantity("rchar", nextflowSize, mostBytes, size)
	// Some times are whole seconds, rounded down, next to others in milliseconds.
	if r.err == nil && complete < submit && submit-complete < 1000 {
		complete = submit
	}
	if r.err == nil && complete < submit {
		r.fail("complete_ms", "must not be before submit_ms")
	}
	if r.err != nil {
		return
	}
	status := r.text("status")
	if status == "FAILED" || status == "ABORTED" {
		r.in.notes.ended(profile.App{Name: plainName(process)}, slices.Contains(outOfMemory, r.text("exit")))
	}
	switch {
	case status != "COMPLETED" && status != "CACHED" && !j.format.KeepFailed:
		r.in.notes.add("tasks did not complete and were left out (--keep-failed keeps them)", 1)
		return
	case memory == 0 && peak == 0:
		r.in.notes.add("tasks say nothing of their memory and were left out", 1)
		return
	}
	lasting := lasting(r)
	if r.err != nil {
		return
	}
	// Tasks of unknown requests need what the most demanding of their process took.
	key := nextflowKey{process, resource.Of(amount(cpus*float64(resource.Core)), amount(memory))}
	if memory == 0 {
		r.in.notes.unasked++
		r.in.notes.add("tasks do not say what memory they requested, and the peak of their process is taken for it "+
			"(Nextflow writes it with trace.fields)", 1)
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
	if cpus == 0 {
		r.in.notes.add("tasks do not say how many CPUs they requested, and what their process kept busy is taken for it", 1)
		cpus = math.Ceil(busy / 100)
	}
	s := j.index[key]
	if s == nil {
		s = &nextflowStage{process: process}
		j.index[key] = s
		j.stages = append(j.stages, s)
	}
	s.needs = s.needs.Max(resource.Of(amount(max(cpus, 1)*float64(resource.Core)), max(1, amount(memory))))
	demand := resource.Of(amount(busy/100*float64(resource.Core)), max(1, amount(peak)))
	demand[resource.Disk] = amount(moved / lasting.Seconds())
	s.tasks = append(s.tasks, nextflowTask{begin: int64(submit), end: int64(complete),
		phase: cluster.Phase{Duration: lasting, Demand: demand}, input: amount(read)})
}

// lasting returns the run time of a task. A run time recorded in whole seconds as 0 counts as half a second.
func lasting(r *row) time.Duration {
	ms := r.quantity("realtime_ms", nextflowTime, mostSeconds*1000, nextflowTimes)
	if ms == 0 {
		r.in.notes.add("tasks ran for 0 s, being recorded in whole seconds, and run for 500 ms", 1)
		return 500 * time.Millisecond
	}
	return max(time.Duration(math.Round(ms))*time.Millisecond, time.Millisecond)
}

// nextflowTimes says what nextflowTime accepts.
const nextflowTimes = "milliseconds, or a time such as 1h 5m 9.5s"

// nextflowTime reads a time as Nextflow writes it, in milliseconds: 21m 24s, 9.5s, 350ms, or 350.
func nextflowTime(text string) (ms float64, ok bool) {
	if ms, ok = parseNumber(text, 0, math.MaxFloat64); ok {
		return ms, true
	}
	for _, part := range strings.Fields(text) {
		digits := strings.TrimRight(part, "dhms")
		v, ok := parseNumber(digits, 0, math.MaxFloat64)
		unit := map[string]float64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}[part[len(digits):]]
		if !ok || unit == 0 {
			return 0, false
		}
		ms += v * unit
	}
	return ms, text != ""
}

// nextflowDate reads a date as Nextflow writes it, in milliseconds: 2024-02-01 10:00:00.123, or 1706781600123. The time
// zone of a date is unknown, and does not matter within a file.
func nextflowDate(text string) (ms float64, ok bool) {
	if ms, ok = parseNumber(text, 0, math.MaxFloat64); ok {
		return ms, true
	}
	at, err := time.Parse(time.DateTime, text)
	return float64(at.UnixMilli()), err == nil
}

// nextflowSize reads a size as Nextflow writes it, in bytes: 512.4 MB, or 537288704. Its units are powers of 1024.
func nextflowSize(text string) (bytes float64, ok bool) {
	digits, unit, _ := strings.Cut(text, " ")
	power := slices.Index([]string{"", "K", "M", "G", "T", "P", "E"}, strings.TrimSuffix(unit, "B"))
	v, ok := parseNumber(digits, 0, math.MaxFloat64)
	return v * math.Pow(1024, float64(power)), ok && power >= 0
}

// percent reads 180.3% or 180.3.
func percent(text string) (v float64, ok bool) {
	return parseNumber(strings.TrimSuffix(text, "%"), 0, math.MaxFloat64)
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
		if k := named[name]; k > 1 && !n.format.NameStages {
			name = fmt.Sprintf("%s-%d", name, k)
		}
		stage := cluster.Stage{Name: plainName(name), Tasks: len(s.tasks), Ideal: s.needs, Parents: parents[at]}
		var ran onePhaseTasks
		var inputs []resource.Amount
		for _, t := range s.tasks {
			ran.add(t.phase)
			inputs = append(inputs, t.input)
		}
		stage.Duration = mean(ran.durations)
		truth := ran.truth()
		truth.Input = workload.ForEach(inputs)
		j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, truth)
	}
	return j, true
}
