package bound

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/trace"
)

// trueDuration returns how long a task really runs with the given memory.
func trueDuration(j *trace.Job, stage int, index int32, memory resource.Amount) time.Duration {
	s := &j.Stages[stage]
	d, ideal, profile := s.Duration, s.Ideal[resource.Memory], &s.Elasticity
	if stage < len(j.Truth) {
		t := &j.Truth[stage]
		if t.Duration > 0 {
			d = t.Duration
		}
		if int(index) < len(t.Durations) {
			d = t.Durations[index]
		}
		if t.IdealMemory > 0 {
			ideal = t.IdealMemory
		}
		if t.Elasticity != nil {
			profile = t.Elasticity
		}
	}
	return profile.Duration(d, ideal, memory)
}

// tinyWorkload draws up to three jobs with four tasks together, and everything else that bounds depend on.
func tinyWorkload(r *rand.Rand) *trace.Workload {
	w := &trace.Workload{}
	for tasks := 4; len(w.Jobs) < 3 && tasks > 0; {
		j := trace.Job{After: -1}
		j.ID = cluster.JobID(len(w.Jobs) + 1)
		if len(w.Jobs) > 0 && r.IntN(4) == 0 {
			j.After = r.IntN(len(w.Jobs))
		} else {
			j.Submitted = timeline.Time(time.Duration(r.IntN(20)) * time.Second)
		}
		for len(j.Stages) < 2 && tasks > 0 {
			n := 1 + r.IntN(min(2, tasks))
			tasks -= n
			s := cluster.Stage{Tasks: n, Duration: time.Duration(1+r.IntN(20)) * time.Second,
				Ideal: resource.Of(resource.Amount(1+r.IntN(3))*resource.Core, resource.Amount(10+r.IntN(90))*resource.MB)}
			if len(j.Stages) > 0 && r.IntN(2) == 0 {
				s.Parents = []int{0}
			}
			s.Elasticity = tinyElasticity(r, s.Ideal[resource.Memory])
			s.MinMemory = s.Ideal[resource.Memory] * resource.Amount(1+r.IntN(9)) / 10
			t := trace.StageTruth{}
			if r.IntN(3) == 0 {
				t.IdealMemory = resource.Amount(10+r.IntN(90)) * resource.MB
				e := tinyElasticity(r, t.IdealMemory)
				t.Elasticity = &e
			}
			if r.IntN(3) == 0 {
				for range n {
					t.Durations = append(t.Durations, time.Duration(1+r.IntN(20_000))*time.Millisecond)
				}
			}
			j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, t)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

func tinyElasticity(r *rand.Rand, ideal resource.Amount) cluster.Elasticity {
	factor := 1 + 3*r.Float64()
	switch r.IntN(5) {
	case 0:
		return cluster.Elasticity{Kind: cluster.Step, Factor: factor}
	case 1:
		return cluster.Elasticity{Kind: cluster.SawTooth, Factor: factor}
	case 2:
		return cluster.Elasticity{Kind: cluster.Points, Points: []cluster.ElasticityPoint{
			{Memory: ideal / 4, Slowdown: 0.5 + r.Float64()}, {Memory: ideal / 2, Slowdown: 0.5 + r.Float64()}, {Memory: ideal, Slowdown: 0.5 + r.Float64()}}}
	case 3:
		return cluster.Elasticity{Kind: cluster.SawToothTable, Factor: factor}
	}
	return cluster.Elasticity{}
}

// exhaustive tries every order of the tasks with every one of a few sizes: each task starts as early as it can once those
// before it in the order are placed. Among such schedules is a best one.
type exhaustive struct {
	w        *trace.Workload
	nodes    []cluster.Node
	elastic  bool
	tasks    []tinyTask
	makespan time.Duration
	mean     float64 // nanoseconds
}

type tinyTask struct {
	job, stage, index int
	placed            bool
	start, end        time.Duration
	grant             resource.Vector
	node              int
}

func (x *exhaustive) run() {
	x.makespan, x.mean = math.MaxInt64, math.Inf(1)
	for j := range x.w.Jobs {
		for s := range x.w.Jobs[j].Stages {
			for i := range x.w.Jobs[j].Stages[s].Tasks {
				x.tasks = append(x.tasks, tinyTask{job: j, stage: s, index: i})
			}
		}
	}
	x.place(len(x.tasks))
}

func (x *exhaustive) place(left int) {
	if left == 0 {
		x.judge()
		return
	}
	for i := range x.tasks {
		t := &x.tasks[i]
		if t.placed {
			continue
		}
		from, ready := x.ready(t)
		if !ready {
			continue
		}
		for _, memory := range x.sizes(t) {
			j := &x.w.Jobs[t.job]
			t.grant = j.Stages[t.stage].Ideal.With(resource.Memory, memory)
			d := trueDuration(j, t.stage, int32(t.index), memory)
			for n := range x.nodes {
				if !t.grant.FitsIn(x.nodes[n].Capacity) {
					continue
				}
				t.node = n
				t.start = x.earliest(t, from, d)
				t.end, t.placed = t.start+d, true
				x.place(left - 1)
				t.placed = false
			}
		}
	}
}

// ready returns when a task may start; false if what it waits for is not placed yet.
func (x *exhaustive) ready(t *tinyTask) (from time.Duration, ok bool) {
	j := &x.w.Jobs[t.job]
	if from, ok = x.submitted(t.job); !ok {
		return 0, false
	}
	for _, p := range j.Stages[t.stage].Parents {
		for i := range x.tasks {
			if o := &x.tasks[i]; o.job == t.job && o.stage == p {
				if !o.placed {
					return 0, false
				}
				from = max(from, o.end)
			}
		}
	}
	return from, true
}

func (x *exhaustive) submitted(job int) (at time.Duration, ok bool) {
	j := &x.w.Jobs[job]
	if j.After < 0 {
		return time.Duration(j.Submitted), true
	}
	for i := range x.tasks {
		if o := &x.tasks[i]; o.job == j.After {
			if !o.placed {
				return 0, false
			}
			at = max(at, o.end)
		}
	}
	return at, true
}

func (x *exhaustive) sizes(t *tinyTask) []resource.Amount {
	s := &x.w.Jobs[t.job].Stages[t.stage]
	most := s.Ideal[resource.Memory]
	if !x.elastic || !s.Elastic() {
		return []resource.Amount{most}
	}
	return []resource.Amount{most, s.MinMemory, (most + s.MinMemory) / 2, max(s.MinMemory, (most+1)/2)}
}

// earliest returns the first time from which the grant of t is free on its node for d; it is from or the end of a placed task.
func (x *exhaustive) earliest(t *tinyTask, from, d time.Duration) time.Duration {
	best := time.Duration(math.MaxInt64)
	if x.free(t, from, d) {
		return from
	}
	for i := range x.tasks {
		if at := x.tasks[i].end; x.tasks[i].placed && at > from && at < best && x.free(t, at, d) {
			best = at
		}
	}
	return best
}

// free reports whether the grant of t is free on its node from at on for d: demand only rises where a task starts.
func (x *exhaustive) free(t *tinyTask, at, d time.Duration) bool {
	fits := func(when time.Duration) bool {
		used := t.grant
		for i := range x.tasks {
			if o := &x.tasks[i]; o.placed && o.node == t.node && o.start <= when && when < o.end {
				used = used.Add(o.grant)
			}
		}
		return used.FitsIn(x.nodes[t.node].Capacity)
	}
	if !fits(at) {
		return false
	}
	for i := range x.tasks {
		if o := &x.tasks[i]; o.placed && o.start > at && o.start < at+d && !fits(o.start) {
			return false
		}
	}
	return true
}

func (x *exhaustive) judge() {
	ends := make([]time.Duration, len(x.w.Jobs))
	for i := range x.tasks {
		ends[x.tasks[i].job] = max(ends[x.tasks[i].job], x.tasks[i].end)
	}
	var last time.Duration
	first := time.Duration(math.MaxInt64)
	var sum float64
	for j, end := range ends {
		at, _ := x.submitted(j)
		first, last = min(first, at), max(last, end)
		sum += float64(end - at)
	}
	x.makespan = min(x.makespan, last-first)
	x.mean = min(x.mean, sum/float64(len(ends)))
}

// No schedule of a tiny workload beats the bounds, and the bounds are not far away either.
func TestLowerBoundsAgainstExhaustiveSearch(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 50
	}
	var makespans, means float64
	worse := map[string][]float64{}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := tinyWorkload(r)
		for _, elastic := range []bool{false, true} {
			x := exhaustive{w: w, nodes: sim.Uniform(1+int(seed%2), resource.Of(4*resource.Core, 100*resource.MB)), elastic: elastic}
			x.run()
			b := Of(w, x.nodes, elastic, Options{Iterations: DefaultIterations})
			if b.Makespan > x.makespan || float64(b.AverageJobRuntime) > x.mean {
				t.Fatalf("seed %d, elastic %v: bounds %+v, but a schedule has makespan %v and mean %v\n%+v", seed, elastic, b,
					x.makespan, time.Duration(x.mean), w)
			}
			if !elastic {
				checkPolicies(t, w, &x, seed, worse)
			}
			makespans += b.Makespan.Seconds() / x.makespan.Seconds()
			means += float64(b.AverageJobRuntime) / x.mean
		}
	}
	for _, name := range slices.Sorted(maps.Keys(worse)) {
		slices.Sort(worse[name])
		n := len(worse[name])
		t.Logf("%s over best possible, rigid, mean runtime: median %.3f, worst %.3f of %d", name, worse[name][n/2], worse[name][n-1], n)
	}
	makespans, means = makespans/float64(2*runs), means/float64(2*runs)
	t.Logf("bound over best possible: makespan %.3f, mean runtime %.3f", makespans, means)
	if makespans < 0.8 || means < 0.75 {
		t.Errorf("bound over best possible: makespan %.3f, want 0.8; mean runtime %.3f, want 0.75", makespans, means)
	}
}

// checkPolicies checks that no policy that leaves sizes alone beats the best schedule, and notes by how much each is worse.
func checkPolicies(t *testing.T, w *trace.Workload, x *exhaustive, seed uint64, worse map[string][]float64) {
	t.Helper()
	for _, name := range policy.Names() {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := p.(policy.Elastic); ok && e.UnderSizes() {
			continue
		}
		result, err := sim.Run(sim.Config{Nodes: x.nodes}, w, p)
		if err != nil || len(result.Unfinished())+len(result.Failures()) > 0 {
			continue // a policy may refuse what it can never run, and a task that truly needs more than it asks for fails
		}
		var sum float64
		for i := range result.Jobs {
			sum += float64(result.Jobs[i].Runtime())
		}
		mean := sum / float64(len(w.Jobs))
		if result.Makespan < x.makespan || mean < x.mean*(1-1e-12) {
			t.Fatalf("seed %d: %s has makespan %v and mean %v, the best schedule has %v and %v", seed, name, result.Makespan,
				time.Duration(mean), x.makespan, time.Duration(x.mean))
		}
		worse[name] = append(worse[name], mean/x.mean)
	}
}

// Every memory that a task may be given takes at least the time and, in every row, the area that bounds count with.
func TestLeastUse(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := tinyWorkload(r)
		w.Jobs = w.Jobs[:1]
		nodes := sim.Uniform(2, resource.Of(4*resource.Core, 100*resource.MB))
		p := newProblem(w, nodes, true)
		j := &w.Jobs[0]
		s, st := &j.Stages[0], &p.areas[0].stages[0]
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
					t.Fatalf("seed %d, %v: %d bytes take %v, counted %v, evenly %v\n%+v", seed, &p.rows[k], m, areas[k], st.work[k], st.even[k], s)
				}
			}
		}
	}
}

// Sizes of tasks that fit on a node together never add up to more than the size of the node, for nodes of any capacity.
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
	job := func(at, d time.Duration, tasks int, memory resource.Amount) trace.Job {
		return trace.Job{After: -1, Job: cluster.Job{Submitted: timeline.Time(at), Stages: []cluster.Stage{
			{Tasks: tasks, Duration: d, Ideal: resource.Of(resource.Core, memory), MinMemory: memory / 10}}}}
	}
	step := cluster.Elasticity{Kind: cluster.Step, Factor: 2}
	elasticJob := job(0, 10*time.Second, 10, resource.GB)
	elasticJob.Stages[0].Elasticity = step
	after := job(0, 5*time.Second, 1, resource.GB)
	after.After = 0
	for _, c := range []struct {
		name           string
		jobs           []trace.Job
		elastic        bool
		makespan, mean time.Duration
	}{
		{name: "none"},
		{"one task", []trace.Job{job(3*time.Second, 10*time.Second, 1, resource.GB)}, false, 10 * time.Second, 10 * time.Second},
		{"five waves", []trace.Job{job(3*time.Second, 10*time.Second, 10, resource.GB)}, false, 50 * time.Second, 50 * time.Second},
		// Two jobs of 10 s and 20 s on the whole cluster: one waits for the other.
		{"shortest first", []trace.Job{job(0, 20*time.Second, 2, resource.GB), job(0, 10*time.Second, 2, resource.GB)}, false, 30 * time.Second, 20 * time.Second},
		{"after", []trace.Job{job(3*time.Second, 10*time.Second, 1, resource.GB), after}, false, 15 * time.Second, 7500 * time.Millisecond},
		{"elastic, but the policy is not", []trace.Job{elasticJob}, false, 50 * time.Second, 50 * time.Second},
		// A tenth of the memory for twice the time is a fifth of the area, 10 s, as long as the shortest run time; rounding to
		// milliseconds could save a little of the area, but not of the run time.
		{"elastic", []trace.Job{elasticJob}, true, 10 * time.Second, 10 * time.Second},
	} {
		b := Of(&trace.Workload{Jobs: c.jobs}, sim.Uniform(1, resource.Of(16*resource.Core, 2*resource.GB)), c.elastic, Options{})
		near := func(got, want time.Duration) bool { return got <= want && want-got < time.Microsecond }
		if !near(b.Makespan, c.makespan) || !near(b.AverageJobRuntime, c.mean) {
			t.Errorf("%s: got %+v, want %v and %v", c.name, b, c.makespan, c.mean)
		}
	}
}

// On a workload of the YARN-ME authors the bounds are below what any of their runs reached, and near where memory is the
// bottleneck: 19.03 million GB s on a terabyte.
func TestLowerBoundsOfAuthorsWorkload(t *testing.T) {
	f, err := os.Open(filepath.Join("../../shared/fixtures/dss", "u100-s12345.trace"))
	if err != nil {
		t.Skip("needs ../shared/fixtures")
	}
	defer f.Close()
	w, err := trace.ReadDSS(f, "u100")
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
	if got := b.AverageJobRuntime.Seconds(); got < 3_900 || got > 4_556 {
		t.Errorf("mean runtime %v, want 3,900 s up to 4,556 s, their best run", b.AverageJobRuntime)
	}
	e, err := trace.ParsePenalty("sawtooth:1.5")
	if err != nil {
		t.Fatal(err)
	}
	w.SetPenalty(e, trace.DefaultMinShare, trace.DefaultGranularity)
	b = Of(w, nodes, true, o)
	t.Logf("with elasticity: %+v", b)
	if got := b.Makespan.Seconds(); got < 1_900 || got > 6_970 {
		t.Errorf("elastic makespan %v, want 1,900 s up to 6,970 s, their best run", b.Makespan)
	}
	if got := b.AverageJobRuntime.Seconds(); got < 200 || got > 3_646 {
		t.Errorf("elastic mean runtime %v, want 200 s up to 3,646 s, their best run", b.AverageJobRuntime)
	}
}

// No policy beats the bounds, on one node that pools all resources or on many.
func TestNoPolicyBeatsLowerBounds(t *testing.T) {
	for seed := range uint64(6) {
		for _, d := range []trace.Distribution{trace.Uniform, trace.Exponential} {
			o := trace.DefaultGenerateOptions(d)
			o.Seed, o.Jobs, o.Tasks.Max = seed, 12, 20
			w, err := trace.Generate(d, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, penalty := range []string{"none", "sawtooth:1.5", "step:3"} {
				e, err := trace.ParsePenalty(penalty)
				if err != nil {
					t.Fatal(err)
				}
				elastic := trace.Workload{Jobs: slices.Clone(w.Jobs)}
				for i := range elastic.Jobs {
					elastic.Jobs[i].Stages = slices.Clone(elastic.Jobs[i].Stages)
				}
				elastic.SetPenalty(e, trace.DefaultMinShare, trace.DefaultGranularity)
				for _, nodes := range []int{1, 5} {
					checkBounds(t, &elastic, nodes, fmt.Sprintf("%v seed %d penalty %s nodes %d", d, seed, penalty, nodes))
				}
			}
		}
	}
}

func checkBounds(t *testing.T, w *trace.Workload, nodes int, what string) {
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
		e, ok := p.(policy.Elastic)
		b := Of(w, sim.Uniform(nodes, each), ok && e.UnderSizes(), Options{Iterations: DefaultIterations})
		if result.Makespan < b.Makespan || result.AverageJobRuntime < b.AverageJobRuntime {
			t.Errorf("%s: %s has makespan %v and mean runtime %v, bounds are %v and %v", what, name, result.Makespan,
				result.AverageJobRuntime, b.Makespan, b.AverageJobRuntime)
		}
	}
}
