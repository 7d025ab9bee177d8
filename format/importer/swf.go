package importer

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// SWF reads the Standard Workload Format of the Parallel Workloads Archive, one job a line. A job is a stage with a
// task of one core for each of its processors; these tasks need not run at the same time.
type SWF struct {
	Memory     resource.Amount // of a processor, for jobs that state none and whose use is unknown, bytes
	KeepFailed bool            // jobs that failed or were cancelled, for as long as they ran

	machine map[string]int // what the comments at the start say: MaxNodes, MaxProcs; the last file's
}

// DefaultSWF returns two gigabytes a processor.
func DefaultSWF() *SWF { return &SWF{Memory: 2 * resource.GiB} }

// Name implements Format.
func (f *SWF) Name() string { return "swf" }

// Node implements Format: a node of the machine, if the file tells its nodes and processors.
func (f *SWF) Node() resource.Vector {
	cores := resource.Amount(16)
	if nodes, procs := f.machine["MaxNodes"], f.machine["MaxProcs"]; nodes > 0 && procs > nodes {
		cores = resource.Amount((procs + nodes - 1) / nodes)
	}
	return resource.Of(cores*resource.Core, cores*f.Memory)
}

// nodes is the number of nodes of the machine.
func (f *SWF) nodes() int { return f.machine["MaxNodes"] }

func (f *SWF) check() error {
	f.machine = map[string]int{}
	return checkTask(resource.Core, f.Memory)
}

var swfColumns = []string{"job_number", "submit_s", "wait_s", "run_s", "processors", "cpu_s", "memory_kb",
	"requested_processors", "requested_s", "requested_memory_kb", "status", "user", "group", "executable", "queue",
	"partition",
	"preceding_job", "think_s"}

func (f *SWF) read(in *input, job func(workload.Job) error) error {
	first, at := map[string]int{}, columnsAt(swfColumns)
	return in.lines(func(text string) error {
		if comment, ok := strings.CutPrefix(strings.TrimSpace(text), ";"); ok {
			f.comment(comment)
			return nil
		}
		r := &row{in: in, cells: strings.Fields(text), at: at}
		switch {
		case len(r.cells) == 0:
			return nil
		case len(r.cells) != len(swfColumns):
			return in.fault("columns: must be the %d of the Standard Workload Format, but are %d", len(swfColumns), len(r.cells))
		}
		return r.done(func(r *row) error {
			j, ok := f.job(r, first)
			if !ok || r.err != nil {
				return nil
			}
			return job(j)
		})
	})
}

// comment reads a line of the head such as "MaxNodes: 128".
func (f *SWF) comment(text string) {
	name, value, _ := strings.Cut(text, ":")
	value, _, _ = strings.Cut(strings.TrimSpace(value), " ")
	if n, ok := parseNumber(value, 1, mostTasks); ok {
		f.machine[strings.TrimSpace(name)] = int(n)
	}
}

// job reads a line; ok is false for a job that is left out.
func (f *SWF) job(r *row, first map[string]int) (j workload.Job, ok bool) {
	known := func(name string, most float64) float64 { return max(r.number(name, -1, most), 0) } // -1 is unknown
	j.Name = "job-" + r.once("job_number", first, "")
	j.Submitted = timeline.Time(seconds(known("submit_s", mostSeconds)))
	ran, requested := known("run_s", mostSeconds), known("requested_s", mostSeconds)
	processors := cmp.Or(known("processors", mostTasks), known("requested_processors", mostTasks))
	used := known("memory_kb", mostBytes/1024) * 1024
	memory := cmp.Or(known("requested_memory_kb", mostBytes/1024)*1024, used)
	busy := known("cpu_s", mostSeconds)
	if user := known("user", mostBytes); user > 0 {
		j.Owner = fmt.Sprintf("user-%.0f", user)
	}
	status := r.text("status")
	switch {
	case r.err != nil:
		return j, false
	case status == "2" || status == "3" || status == "4":
		r.in.notes.add("lines are parts of jobs that were interrupted, and were left out: the whole job has a line, too", 1)
		return j, false
	case ran == 0 || processors == 0:
		r.in.notes.add("jobs did not run and were left out", 1)
		return j, false
	case (status == "0" || status == "5") && !f.KeepFailed:
		r.in.notes.add("jobs failed or were cancelled and were left out (--keep-failed keeps them)", 1)
		return j, false
	}
	if memory == 0 {
		r.in.notes.add("jobs do not say what memory they need and get what is assumed", 1)
		memory = float64(f.Memory)
	}
	s := cluster.Stage{Name: "processors", Tasks: int(processors),
		Duration: max(seconds(cmp.Or(requested, ran)), time.Millisecond),
		Ideal:    resource.Of(resource.Core, max(1, amount(memory)))}
	j.Stages = []cluster.Stage{s}
	j.Truth = []workload.StageTruth{batchTruth(&s, max(seconds(ran), time.Millisecond),
		amount(busy/ran*float64(resource.Core)), amount(used))}
	return j, true
}

// batchTruth is the truth about a stage of equal tasks that were measured as a whole: how long they ran, and what CPU
// and memory each used; 0 is unknown.
func batchTruth(s *cluster.Stage, ran time.Duration, cpu, memory resource.Amount) workload.StageTruth {
	t := workload.StageTruth{Duration: workload.ForAll(ran)}
	if cpu == 0 && memory == 0 {
		return t
	}
	used := resource.Of(cmp.Or(cpu, s.Ideal[resource.CPU]), cmp.Or(memory, s.Ideal[resource.Memory]))
	t.IdealMemory = workload.ForAll(used[resource.Memory])
	t.Phases = workload.ForAll([]cluster.Phase{{Duration: ran, Demand: used}})
	return t
}
