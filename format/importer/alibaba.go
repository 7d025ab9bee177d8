package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Alibaba reads tasks of cluster-trace-v2018: either batch_task.csv as it is published, or a table whose head names
// job, task, instances, start_s, end_s, avg_instance_s, plan_cpu and plan_mem. The name of a task holds the DAG:
// R4_1_2 is task 4 and waits for tasks 1 and 2 of its job.
type Alibaba struct {
	MachineMemory resource.Amount // memory that a plan_mem of 100 means
	MachineCPU    resource.Amount // of a machine, for the suggested cluster
	KeepFailed    bool            // tasks with status Failed; batch_task.csv only
	KeepRunning   bool            // tasks that had not ended when the trace did: Running, Waiting, or without a duration
	Usage         bool            // cpu_usage_sum and mem_usage_sum, where present, are the truth
	TaskCPU       resource.Amount // of a task without plan_cpu
	TaskMemory    resource.Amount // of a task without plan_mem
}

// DefaultAlibaba returns the documented cores of the trace's machines, 96. Their memory is not documented.
func DefaultAlibaba() *Alibaba {
	return &Alibaba{MachineMemory: 512 * resource.GiB, MachineCPU: 96 * resource.Core,
		TaskCPU: resource.Core, TaskMemory: 2 * resource.GiB}
}

// Name implements Format.
func (f *Alibaba) Name() string { return "alibaba2018" }

// Node implements Format.
func (f *Alibaba) Node() resource.Vector { return resource.Of(f.MachineCPU, f.MachineMemory) }

func (f *Alibaba) check() error {
	switch {
	case f.MachineMemory < 100:
		return fmt.Errorf("machine memory %d bytes: must be at least 100", f.MachineMemory)
	case f.MachineCPU < 1:
		return fmt.Errorf("machine cpus %d millicores: must be above 0", f.MachineCPU)
	}
	return checkTask(f.TaskCPU, f.TaskMemory)
}

// alibabaJob collects the tasks of one job.
type alibabaJob struct {
	format    *Alibaba
	name      string
	submitted float64
	tasks     []alibabaTask
	named     map[string]int // line of each task
}

type alibabaTask struct {
	cluster.Stage
	truth   workload.StageTruth
	number  int // in the DAG; 0 if it is not part of one
	parents []int
}

// alibabaColumns are the columns of batch_task.csv, which has no head.
var alibabaColumns = []string{"task", "instances", "job", "task_type", "status", "start_s", "end_s", "plan_cpu",
	"plan_mem"}

func (f *Alibaba) read(in *input, job func(workload.Job) error) error {
	rows, err := f.rows(in)
	if err != nil {
		return err
	}
	return gather(in, rows, "job", func(name string) gathering {
		return &alibabaJob{format: f, name: name, submitted: mostSeconds, named: map[string]int{}}
	}, "jobs have no task that is kept", job)
}

// rows looks at the first line: it is a head, or the first task of batch_task.csv.
func (f *Alibaba) rows(in *input) (func(each func(*row) error) error, error) {
	start, _ := in.in.Peek(4)
	if string(start) == "job," {
		t, err := in.table("job", "task", "instances", "start_s", "end_s", "avg_instance_s", "plan_cpu", "plan_mem",
			"?cpu_usage_sum", "?mem_usage_sum")
		if err != nil {
			return nil, err
		}
		return t.rows, nil
	}
	width := func(cells int) error {
		if cells != len(alibabaColumns) {
			return in.fault("columns: must be the %d of batch_task.csv, or named by a head that begins with job, but are %d",
				len(alibabaColumns), cells)
		}
		return nil
	}
	return func(each func(*row) error) error { return in.cells(",", alibabaColumns, width, each) }, nil
}

func (j *alibabaJob) task(r *row) {
	f := j.format
	name := r.once("task", j.named, " in job "+j.name)
	// A batch_task.csv leaves instances empty for tasks that never ran.
	instances := int64(1)
	if r.text("instances") != "" {
		instances = r.whole("instances", 0, mostTasks)
	}
	start, end := r.numberOr("start_s", 0, mostSeconds, 0), r.numberOr("end_s", 0, mostSeconds, 0)
	average := r.numberOr("avg_instance_s", 0, mostSeconds, 0)
	cpu := r.numberOr("plan_cpu", 0, 100*mostCores, 0)
	memory := r.numberOr("plan_mem", 0, 100, 0)
	// A task that had not ended has no end; its mean was taken of times since the start of the trace.
	if end <= 0 {
		average = 0
	}
	if r.err != nil || !f.keeps(r, instances, max(average, end-start)) {
		return
	}
	t := alibabaTask{Stage: cluster.Stage{Name: name, Tasks: int(instances), Ideal: resource.Of(f.TaskCPU, f.TaskMemory)}}
	if cpu > 0 {
		t.Ideal[resource.CPU] = max(1, amount(cpu/100*float64(resource.Core)))
	}
	if memory > 0 {
		t.Ideal[resource.Memory] = max(1, f.percent(memory))
	}
	if cpu == 0 || memory == 0 {
		r.in.notes.add("tasks do not say what they need and get what is assumed", 1)
	}
	switch {
	case average > 0:
		t.Duration = seconds(average)
	case end > start:
		t.Duration = seconds(end - start)
	default:
		r.in.notes.add("tasks have no duration and run for 1 s", 1)
	}
	t.Duration = max(t.Duration, time.Second)
	if f.Usage {
		f.usage(r, &t)
	}
	t.number, t.parents = taskNumbers(name)
	j.submitted = min(j.submitted, start)
	j.tasks = append(j.tasks, t)
}

func (f *Alibaba) percent(of float64) resource.Amount {
	return amount(of / 100 * float64(f.MachineMemory))
}

// keeps reports whether a task is kept.
func (f *Alibaba) keeps(r *row, instances int64, lasting float64) bool {
	status := r.text("status")
	switch {
	case instances == 0:
		r.in.notes.add("tasks have no instances and were left out", 1)
	case status == "Failed" && !f.KeepFailed:
		r.in.notes.add("tasks have failed and were left out (--keep-failed keeps them)", 1)
	case (status == "Running" || status == "Waiting" || status == "Ready" || lasting <= 0) && status != "Failed" &&
		status != "Terminated" && !f.KeepRunning:
		r.in.notes.add("tasks had not ended when the trace did and were left out (--keep-running keeps them)", 1)
	default:
		return true
	}
	return false
}

// usage reads the resource use of the instances of a task. The columns contain sums over instances, as their size
// shows.
func (f *Alibaba) usage(r *row, t *alibabaTask) {
	cpu, memory := r.numberOr("cpu_usage_sum", 0, mostBytes, 0), r.numberOr("mem_usage_sum", 0, mostBytes, 0)
	used := resource.Amount(0)
	if memory > 0 {
		used = max(1, f.percent(memory/float64(t.Tasks)))
		t.truth.IdealMemory = workload.ForAll(used)
	}
	if cpu > 0 && memory > 0 {
		cores := amount(cpu / 100 / float64(t.Tasks) * float64(resource.Core))
		t.truth.Phases = workload.ForAll([]cluster.Phase{{Duration: t.Duration, Demand: resource.Of(cores, used)}})
	}
}

// taskNumbers reads R4_1_2 as 4 and 1, 2. Tasks with names of other forms wait for no task. Parts that are not numbers,
// as in M1_Stg8, are ignored.
func taskNumbers(name string) (number int, parents []int) {
	parts := strings.Split(name, "_")
	digits := strings.TrimLeftFunc(parts[0], func(r rune) bool { return r < '0' || r > '9' })
	number, err := strconv.Atoi(digits)
	if err != nil || number < 1 || digits == parts[0] {
		return 0, nil
	}
	for _, part := range parts[1:] {
		if parent, err := strconv.Atoi(part); err == nil && parent > 0 && !slices.Contains(parents, parent) {
			parents = append(parents, parent)
		}
	}
	return number, parents
}

// job puts the tasks together. A missing parent is ignored.
func (a *alibabaJob) job(n *notes) (workload.Job, bool) {
	index := map[int]int{}
	for i := range a.tasks {
		if t := &a.tasks[i]; t.number > 0 {
			if _, twice := index[t.number]; !twice {
				index[t.number] = i
			}
		}
	}
	j := workload.Job{Job: cluster.Job{Name: a.name, Submitted: timeline.Time(seconds(a.submitted))}}
	for i := range a.tasks {
		t := &a.tasks[i]
		for _, parent := range t.parents {
			if at, known := index[parent]; known {
				t.Parents = append(t.Parents, at)
			} else {
				n.add("tasks that others wait for are not in the file and are not waited for", 1)
			}
		}
		j.Stages = append(j.Stages, t.Stage)
		j.Truth = append(j.Truth, t.truth)
	}
	if !said(j.Truth) {
		j.Truth = nil
	}
	return j, len(a.tasks) > 0
}
