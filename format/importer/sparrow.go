package importer

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Sparrow reads traces in the form of Sparrow, Hawk and Eagle: one job per line, with its arrival and the run time of
// each of its tasks. The needs of tasks are assumed.
type Sparrow struct {
	CPU    resource.Amount // millicores of a task
	Memory resource.Amount // bytes of a task
}

// DefaultSparrow returns a slot: a core and two gigabytes.
func DefaultSparrow() *Sparrow { return &Sparrow{CPU: resource.Core, Memory: 2 * resource.GiB} }

// Name implements Format.
func (f *Sparrow) Name() string { return "sparrow" }

// Node implements Format.
func (f *Sparrow) Node() resource.Vector { return resource.Of(16*resource.Core, 32*resource.GiB) }

func (f *Sparrow) check() error { return checkTask(f.CPU, f.Memory) }

// checkTask checks the assumed needs of a task.
func checkTask(cpu, memory resource.Amount) error {
	switch {
	case cpu < 1:
		return fmt.Errorf("task cpus %d millicores: must be above 0", cpu)
	case memory < 1:
		return fmt.Errorf("task memory %d bytes: must be above 0", memory)
	}
	return nil
}

func (f *Sparrow) read(in *input, job func(workload.Job) error) error {
	return in.lines(func(line string) error {
		j, err := f.job(in, strings.Fields(line))
		if err != nil {
			return err
		}
		return job(j)
	})
}

func (f *Sparrow) job(in *input, cells []string) (workload.Job, error) {
	if len(cells) < 4 {
		return workload.Job{}, in.fault("columns: must be arrival, tasks, mean and a duration for each task, but are %d",
			len(cells))
	}
	r := &row{in: in, cells: cells, at: columnsAt([]string{"arrival_s", "tasks", "mean_s"})}
	arrival, tasks, mean := r.number("arrival_s", 0, mostSeconds), r.whole("tasks", 1, mostTasks),
		r.number("mean_s", 0, mostSeconds)
	if r.err == nil && int(tasks) != len(cells)-3 {
		r.fail("tasks", "must be how many durations follow, %d", len(cells)-3)
	}
	if r.err != nil {
		return workload.Job{}, r.err
	}
	durations := make([]time.Duration, tasks)
	equal := true
	for i, cell := range cells[3:] {
		v, ok := parseNumber(cell, 0, mostSeconds)
		if !ok {
			return workload.Job{}, in.fault("duration of task %d %q: must be a number from 0 to %d", i, cluster.Clip(cell),
				mostSeconds)
		}
		if durations[i] = seconds(v); durations[i] < time.Millisecond {
			durations[i] = time.Millisecond
			in.notes.add("tasks ran shorter than 1 ms and run for that long", 1)
		}
		equal = equal && durations[i] == durations[0]
	}
	j := workload.Job{Job: cluster.Job{Name: fmt.Sprintf("line-%d", in.line), Submitted: timeline.Time(seconds(arrival)),
		Stages: []cluster.Stage{{Name: "tasks", Tasks: int(tasks), Duration: max(seconds(math.Round(mean)), time.Millisecond),
			Ideal: resource.Of(f.CPU, f.Memory)}}}}
	if !equal || durations[0] != j.Stages[0].Duration {
		j.Truth = []workload.StageTruth{{Duration: workload.ForEach(durations)}}
	}
	return j, nil
}
