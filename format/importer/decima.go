package importer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/fault"
	"github.com/bellows-rm/bellows/format/workload"
)

// Decima reads the TPC-H queries that Decima was trained on: one DAG of stages per line, with the durations of tasks as
// measured with several numbers of executors. Arrivals are drawn at random; the needs of tasks are assumed.
type Decima struct {
	Executors    int           // selects the measurement with the closest number of executors
	Jobs         int           // number of jobs drawn, with replacement; 0: each query once, in random order
	Interarrival time.Duration // mean time between submissions, which form a Poisson process
	CPU          resource.Amount
	Memory       resource.Amount
	// Waves keeps apart what tasks took on fresh executors, as the first of their stage on an executor, and later
	// (workload.StageTruth.Fresh and First). Otherwise a task takes as long as it was measured, wherever it runs.
	Waves bool
}

// decimaWarmUp is what a fresh executor costs where only one of both was measured, a fresh one or one that is merely
// new to the stage. It is Decima's warmup_delay.
const decimaWarmUp = time.Second

// DefaultDecima returns one core and two gigabytes for a task, and arrivals frequent enough for queues on 50 executors.
func DefaultDecima() *Decima {
	return &Decima{Executors: 50, Interarrival: 25 * time.Second, CPU: resource.Core, Memory: 2 * resource.GiB}
}

// Name implements Format.
func (f *Decima) Name() string { return "decima" }

// Node implements Format.
func (f *Decima) Node() resource.Vector { return resource.Of(10*resource.Core, 20*resource.GiB) }

func (f *Decima) check() error {
	switch {
	case f.Executors < 1 || f.Executors > 1_000_000:
		return fmt.Errorf("executors %d: must be 1 to 1000000", f.Executors)
	case f.Jobs < 0 || f.Jobs > 1_000_000:
		return fmt.Errorf("draw %d: must be 0 to 1000000", f.Jobs)
	case f.Interarrival < 0 || f.Interarrival > mostSeconds*time.Second/1_000_000:
		return fmt.Errorf("interarrival %v: must be 0s to 5m15s", f.Interarrival)
	}
	return checkTask(f.CPU, f.Memory)
}

// decimaLine is a line of the file. Durations are in milliseconds, by the number of executors.
type decimaLine struct {
	Size   string        `json:"size"`
	Query  int           `json:"query"`
	Edges  [][]int       `json:"edges"` // parent, child
	Stages []decimaStage `json:"stages"`
}

type decimaStage struct {
	ID    int              `json:"id"`
	Tasks int              `json:"tasks"`
	Fresh map[string][]int `json:"fresh"`
	First map[string][]int `json:"first"` // the first wave, fresh executors included
	Rest  map[string][]int `json:"rest"`
}

func (f *Decima) read(in *input, job func(workload.Job) error) error {
	var queries []workload.Job
	first := map[string]int{}
	err := in.lines(func(text string) error {
		j, err := f.query(in, text)
		if err != nil {
			return err
		}
		if line, twice := first[j.Name]; twice {
			return in.fault("size, query %s: given twice, first in line %d", j.Name, line)
		}
		first[j.Name] = in.line
		queries = append(queries, j)
		return nil
	})
	if err != nil {
		return err
	}
	if len(queries) == 0 {
		return nil
	}
	return f.draw(in, queries, job)
}

// draw passes jobs on in a random order at random times.
func (f *Decima) draw(in *input, queries []workload.Job, job func(workload.Job) error) error {
	order, at := in.options.random(drawStream), in.options.random(arrivalStream)
	jobs := f.Jobs
	once := order.Perm(len(queries))
	if jobs == 0 {
		jobs = len(queries)
	}
	now := 0.0
	for i := range jobs {
		q := once[i%len(once)]
		if f.Jobs > 0 {
			q = order.IntN(len(queries))
		}
		j := queries[q]
		j.Stages, j.Truth = slices.Clone(j.Stages), slices.Clone(j.Truth)
		if f.Jobs > 0 {
			j.Name = fmt.Sprintf("%s-%d", j.Name, i+1)
		}
		if i > 0 {
			now += at.ExpFloat64() * f.Interarrival.Seconds()
		}
		j.Submitted = timeline.Time(seconds(now))
		if err := job(j); err != nil {
			return err
		}
	}
	return nil
}

func (f *Decima) query(in *input, text string) (workload.Job, error) {
	var l decimaLine
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return workload.Job{}, in.fault("query: must be a JSON object: %s", fault.OfJSON(err))
	}
	j := workload.Job{Job: cluster.Job{Name: plainName(fmt.Sprintf("q%d-%s", l.Query, l.Size))}}
	if len(l.Stages) == 0 {
		return j, in.fault("stages: must be at least one")
	}
	for i := range l.Stages {
		s := &l.Stages[i]
		if s.ID != i {
			return j, in.fault("stage id %d: must be its place in the list, %d", s.ID, i)
		}
		key, ok := f.key(s.First)
		if !ok {
			return j, in.fault("stage %d first: must hold durations by a number of executors", i)
		}
		durations, err := f.durations(in, i, append(slices.Clone(s.First[key]), s.Rest[key]...))
		if err != nil {
			return j, err
		}
		if len(durations) != s.Tasks {
			in.notes.add("stages have another number of tasks at the number of executors that was taken", 1)
		}
		stage := cluster.Stage{Name: fmt.Sprintf("stage-%d", i), Tasks: len(durations), Duration: mean(durations),
			Ideal: resource.Of(f.CPU, f.Memory)}
		truth := workload.StageTruth{Duration: workload.ForEach(durations)}
		if f.Waves {
			if truth, err = f.waves(in, i, s, len(durations)); err != nil {
				return j, err
			}
		}
		j.Stages, j.Truth = append(j.Stages, stage), append(j.Truth, truth)
	}
	for _, e := range l.Edges {
		if len(e) != 2 || e[0] < 0 || e[1] < 0 || e[0] >= len(j.Stages) || e[1] >= len(j.Stages) {
			return j, in.fault("edges %v: each must be a parent and a child, 0 to %d", e, len(j.Stages)-1)
		}
		child := &j.Stages[e[1]]
		if !slices.Contains(child.Parents, e[0]) {
			child.Parents = append(child.Parents, e[0])
		}
	}
	if err := j.Check(); err != nil {
		return j, in.fault("%v", err)
	}
	return j, nil
}

// waves returns the truth of a stage by waves, each as measured with the closest number of executors with which it
// was. If every first task was one of a fresh executor, or none was, the other differs by decimaWarmUp; if all tasks
// were first ones, later ones take as long.
func (f *Decima) waves(in *input, stage int, s *decimaStage, tasks int) (t workload.StageTruth, err error) {
	new := map[string][]int{} // to the stage, but not fresh
	for key, first := range s.First {
		new[key] = without(first, s.Fresh[key])
	}
	var waves [3][]time.Duration
	for i, lists := range []map[string][]int{s.Fresh, new, s.Rest} {
		if key, ok := f.key(lists); ok {
			if waves[i], err = f.durations(in, stage, lists[key]); err != nil {
				return t, err
			}
		}
	}
	fresh, first, rest := waves[0], waves[1], waves[2]
	if len(first) == 0 {
		least := time.Millisecond
		if len(rest) > 0 {
			least = mean(rest)
		}
		for _, d := range fresh {
			first = append(first, max(least, d-decimaWarmUp))
		}
	}
	if len(fresh) == 0 {
		for _, d := range first {
			fresh = append(fresh, d+decimaWarmUp)
		}
	}
	if len(rest) == 0 {
		rest = first
	}
	each := make([]time.Duration, tasks)
	for i := range each {
		each[i] = rest[i%len(rest)]
	}
	return workload.StageTruth{Duration: workload.ForEach(each), Fresh: fresh, First: first}, nil
}

// without returns all values but those in some, each as often as it is there.
func without(all, some []int) (rest []int) {
	times := map[int]int{}
	for _, v := range some {
		times[v]++
	}
	for _, v := range all {
		if times[v] > 0 {
			times[v]--
			continue
		}
		rest = append(rest, v)
	}
	return rest
}

// key returns the number of executors closest to the requested number, the smaller of two, among the numbers with
// tasks.
func (f *Decima) key(lists map[string][]int) (key string, ok bool) {
	best := 0
	for k, list := range lists {
		n, err := strconv.Atoi(k)
		if err != nil || n < 1 || len(list) == 0 {
			continue
		}
		near, bestNear := distance(n, f.Executors), distance(best, f.Executors)
		if !ok || near < bestNear || near == bestNear && n < best {
			best, key, ok = n, k, true
		}
	}
	return key, ok
}

func distance(a, b int) int { return max(a-b, b-a) }

func (f *Decima) durations(in *input, stage int, ms []int) ([]time.Duration, error) {
	all := make([]time.Duration, len(ms))
	for i, v := range ms {
		if v < 0 || v > mostSeconds*1000 {
			return nil, in.fault("stage %d duration %d: must be milliseconds from 0 to %d", stage, v, mostSeconds*1000)
		}
		if all[i] = time.Duration(v) * time.Millisecond; v == 0 {
			all[i] = time.Millisecond
			in.notes.add("tasks took 0 ms and run for 1 ms", 1)
		}
	}
	return all, nil
}

// mean returns the mean in whole milliseconds, at least 1.
func mean(all []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range all {
		sum += d / time.Duration(len(all))
	}
	return max(sum.Round(time.Millisecond), time.Millisecond)
}
