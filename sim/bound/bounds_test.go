package bound

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// With any memory that it may be granted, a task takes at least the time and, in every row, the area that bounds
// assume.
func TestLeastUse(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := tinyWorkload(r, 100*resource.MB, 4)
		w.Jobs = w.Jobs[:1]
		nodes := sim.Uniform(2, resource.Of(4*resource.Core, 100*resource.MB))
		p := newProblem(w, nodes, true, Options{})
		j := &w.Jobs[0]
		s, st := &j.Stages[0], &p.latestFirst[0].stages[0]
		least, most := s.MinMemory, s.Ideal[resource.Memory]
		if !s.Elastic() {
			least = most
		}
		for range 200 {
			m := least + resource.Amount(r.Int64N(int64(most-least)+1))
			areas := make([]float64, len(p.rows))
			for i := range s.Tasks {
				real := trueDuration(j, 0, int32(i), m).Seconds()
				if counted := st.times[min(i, len(st.times)-1)]; real < counted*(1-1e-12) {
					t.Fatalf("seed %d: %d bytes take %v s, counted %v\n%+v", seed, m, real, counted, s)
				}
				for k := range p.rows {
					a := s.Ideal[p.rows[k].kind]
					if p.rows[k].kind == resource.Memory {
						a = m
					}
					areas[k] += real * p.rows[k].size(a) / p.rows[k].total
				}
			}
			for k := range areas {
				if areas[k] < st.work[k]*(1-1e-12) || st.work[k] < st.even[k]*(1-1e-9) {
					t.Fatalf("seed %d, %v: %d bytes take %v, counted %v, evenly %v\n%+v", seed, &p.rows[k], m, areas[k], st.work[k],
						st.even[k], s)
				}
			}
		}
	}
}

// The sizes of tasks that fit on a node together never add up to more than the size of the node, for any capacity.
func TestRowsAreSuperadditive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 2000 {
		reference := resource.Amount(1 + r.IntN(200))
		row := row{shape: shape(r.IntN(4)), reference: reference, parameter: 1 + resource.Amount(r.Int64N(int64(reference)))}
		if row.shape == gap || row.shape == stairs {
			row.parameter = max(1, row.parameter/2)
			if 2*row.parameter > reference {
				continue
			}
		}
		for a := range reference + 1 {
			for b := range reference - a + 1 {
				if row.size(a)+row.size(b) > row.size(a+b)+1e-12 {
					t.Fatalf("%+v: %d and %d count %v and %v, together %v", row, a, b, row.size(a), row.size(b), row.size(a+b))
				}
			}
		}
	}
}

func TestLowerBoundsByHand(t *testing.T) {
	job := func(at, d time.Duration, tasks int, memory resource.Amount) workload.Job {
		return workload.Job{After: -1, Job: cluster.Job{Submitted: timeline.Time(at), Stages: []cluster.Stage{
			{Tasks: tasks, Duration: d, Ideal: resource.Of(resource.Core, memory), MinMemory: memory / 10}}}}
	}
	step := cluster.Elasticity{Kind: cluster.Step, Factor: 2}
	elasticJob := job(0, 10*time.Second, 10, resource.GB)
	elasticJob.Stages[0].Elasticity = step
	after := job(0, 5*time.Second, 1, resource.GB)
	after.After = 0
	for _, c := range []struct {
		name           string
		jobs           []workload.Job
		elastic        bool
		makespan, mean time.Duration
	}{
		{name: "none"},
		{"one task", []workload.Job{job(3*time.Second, 10*time.Second, 1, resource.GB)}, false, 10 * time.Second,
			10 * time.Second},
		{"five waves", []workload.Job{job(3*time.Second, 10*time.Second, 10, resource.GB)}, false, 50 * time.Second,
			50 * time.Second},
		// Two jobs of 10 s and 20 s, each of which needs the whole cluster: one waits for the other.
		{"shortest first", []workload.Job{job(0, 20*time.Second, 2, resource.GB), job(0, 10*time.Second, 2, resource.GB)},
			false, 30 * time.Second, 20 * time.Second},
		{"after", []workload.Job{job(3*time.Second, 10*time.Second, 1, resource.GB), after}, false, 15 * time.Second,
			7500 * time.Millisecond},
		{"elastic, but the policy is not", []workload.Job{elasticJob}, false, 50 * time.Second, 50 * time.Second},
		// A tenth of the memory for twice the time is a fifth of the area, 10 s, which equals the shortest run time.
		// Rounding to milliseconds could reduce the area slightly, but not the run time.
		{"elastic", []workload.Job{elasticJob}, true, 10 * time.Second, 10 * time.Second},
	} {
		b := Of(&workload.Workload{Jobs: c.jobs}, sim.Uniform(1, resource.Of(16*resource.Core, 2*resource.GB)), c.elastic,
			Options{})
		near := func(got, want time.Duration) bool { return got <= want && want-got < time.Microsecond }
		if !near(b.Makespan, c.makespan) || !near(b.AverageJobRuntime, c.mean) {
			t.Errorf("%s: got %+v, want %v and %v", c.name, b, c.makespan, c.mean)
		}
	}
}

// On a workload of the YARN-ME authors the bounds are below the results of all their runs, and close to them where
// memory is the bottleneck: 19.03 million GB s on a terabyte.
func TestLowerBoundsOfAuthorsWorkload(t *testing.T) {
	f, err := os.Open(filepath.Join("../../../shared/fixtures/dss", "u100-s12345.trace"))
	if err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	defer f.Close()
	w, err := workload.ReadDSS(f, "u100")
	if err != nil {
		t.Fatal(err)
	}
	nodes := sim.Uniform(100, resource.Of(16*resource.Core, 10*resource.GB))
	o := Options{Iterations: DefaultIterations}
	b := Of(w, nodes, false, o)
	t.Logf("without elasticity: %+v", b)
	if got := b.Makespan.Seconds(); got < 19_000 || got > 19_484 {
		t.Errorf("makespan %v, want 19,000 s up to 19,484 s, their best run", b.Makespan)
	}
	if got := b.AverageJobRuntime.Seconds(); got < 3_940 || got > 4_556 {
		t.Errorf("mean runtime %v, want 3,940 s up to 4,556 s, their best run", b.AverageJobRuntime)
	}
	e, err := workload.ParsePenalty("sawtooth:1.5")
	if err != nil {
		t.Fatal(err)
	}
	w.SetPenalty(e, workload.DefaultMinShare, workload.DefaultGranularity)
	b = Of(w, nodes, true, o)
	t.Logf("with elasticity: %+v", b)
	if got := b.Makespan.Seconds(); got < 1_900 || got > 6_970 {
		t.Errorf("elastic makespan %v, want 1,900 s up to 6,970 s, their best run", b.Makespan)
	}
	if got := b.AverageJobRuntime.Seconds(); got < 520 || got > 3_646 {
		t.Errorf("elastic mean runtime %v, want 520 s up to 3,646 s, their best run", b.AverageJobRuntime)
	}
}

// No policy beats the bounds, on one node that pools all resources or on many nodes.
func TestNoPolicyBeatsLowerBounds(t *testing.T) {
	for seed := range uint64(6) {
		for _, d := range []workload.Distribution{workload.Uniform, workload.Exponential} {
			o := workload.DefaultGenerateOptions(d)
			o.Seed, o.Jobs, o.Tasks.Max = seed, 12, 20
			w, err := workload.Generate(d, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, penalty := range []string{"none", "sawtooth:1.5", "step:3"} {
				e, err := workload.ParsePenalty(penalty)
				if err != nil {
					t.Fatal(err)
				}
				elastic := workload.Workload{Jobs: slices.Clone(w.Jobs)}
				for i := range elastic.Jobs {
					elastic.Jobs[i].Stages = slices.Clone(elastic.Jobs[i].Stages)
				}
				elastic.SetPenalty(e, workload.DefaultMinShare, workload.DefaultGranularity)
				for _, nodes := range []int{1, 5} {
					checkBounds(t, &elastic, nodes, fmt.Sprintf("%v seed %d penalty %s nodes %d", d, seed, penalty, nodes))
				}
			}
		}
	}
}

func checkBounds(t *testing.T, w *workload.Workload, nodes int, what string) {
	t.Helper()
	total := resource.Of(80*resource.Core, 50*resource.GB)
	each := resource.Of(total[resource.CPU]/resource.Amount(nodes), total[resource.Memory]/resource.Amount(nodes))
	for _, name := range policy.Names() {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		result, err := sim.Run(sim.Config{Nodes: sim.Uniform(nodes, each)}, w, p)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if len(result.Unfinished()) > 0 {
			continue
		}
		b := Of(w, sim.Uniform(nodes, each), p.Traits().UnderSizes, Options{Iterations: DefaultIterations})
		if result.Makespan < b.Makespan || result.AverageJobRuntime < b.AverageJobRuntime {
			t.Errorf("%s: %s has makespan %v and mean runtime %v, bounds are %v and %v", what, name, result.Makespan,
				result.AverageJobRuntime, b.Makespan, b.AverageJobRuntime)
		}
	}
}

// A FLEX container is granted only its minimum, and runs with the memory that it gets later: its memory does not count.
func TestMemoryOfFlexDoesNotCount(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{{After: -1,
		Truth: []workload.StageTruth{{IdealMemory: workload.ForAll(2 * resource.GB)}},
		Job: cluster.Job{Stages: []cluster.Stage{{Tasks: 8, Duration: 10 * time.Second,
			Ideal: resource.Of(resource.Core, resource.GB), Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 3}}}}}}}
	j := &w.Jobs[0]
	for _, c := range []struct {
		class   cluster.Class
		maximum resource.Amount
		want    time.Duration
	}{
		{cluster.Regular, 0, 120 * time.Second},             // 8 tasks, 2 at a time, 30 s each
		{cluster.Flex, 0, 20 * time.Second},                 // 8 tasks, 4 at a time, with all their memory
		{cluster.Flex, resource.GB, 60 * time.Second},       // without their memory
		{cluster.Flex, 2*resource.GB - 1, 60 * time.Second}, // a byte is missing
		{cluster.Flex, 2 * resource.GB, 20 * time.Second},   // just enough
	} {
		j.Class, j.Stages[0].MaxMemory = c.class, c.maximum
		b := Of(w, sim.Uniform(1, resource.Of(4*resource.Core, 2*resource.GB)), false, Options{Iterations: DefaultIterations})
		// Run times with less than enough memory are rounded to milliseconds.
		if b.Makespan > c.want || c.want-b.Makespan > 5*time.Millisecond || b.AverageJobRuntime > c.want {
			t.Errorf("%v, at most %d bytes: got %+v, want %v", c.class, c.maximum, b, c.want)
		}
	}
}

// TestAnySize is a task of 4 GB that a policy runs with 1 GB: four of them run together on a node with room for one.
func TestAnySize(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{{After: -1, Job: cluster.Job{ID: 1, Stages: []cluster.Stage{{Tasks: 4,
		Ideal: resource.Of(resource.Core, 4*resource.GB), Duration: 10 * time.Second}}}}}}
	nodes := sim.Uniform(1, resource.Of(4*resource.Core, 4*resource.GB))
	if b := Of(w, nodes, false, Options{}); b.Makespan < 39*time.Second {
		t.Errorf("makespan at least %v, want 40s", b.Makespan)
	}
	if b := Of(w, nodes, false, Options{AnySize: true, Iterations: DefaultIterations}); b.Makespan > 10*time.Second ||
		b.AverageJobRuntime > 10*time.Second {
		t.Errorf("with any size: makespan at least %v, mean %v; 10s can be had", b.Makespan, b.AverageJobRuntime)
	}
}
