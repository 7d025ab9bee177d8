package bound

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// anySize is a deterministic policy that gives tasks any memory that they may have.
type anySize struct{ seed uint64 }

func (anySize) Name() string          { return "any-size" }
func (anySize) Traits() policy.Traits { return policy.Traits{UnderSizes: true} }

func (a anySize) Decide(now timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
			s := &j.Stages[stage]
			memory := s.Ideal[resource.Memory]
			if s.Elastic() {
				h := fnv.New64a()
				fmt.Fprint(h, a.seed, now, j.ID)
				memory = s.MinMemory + resource.Amount(h.Sum64()>>1)%(memory-s.MinMemory+1)
			}
			n, fits := p.FirstFit(s.Ideal.With(resource.Memory, memory))
			if !fits {
				break
			}
			p.Start(j, stage, n, memory, cluster.BecauseFits(0))
		}
	}
}

// drawStage draws a stage, and a truth with every field that a truth can have.
func drawStage(t *rapid.T) (cluster.Stage, workload.StageTruth) {
	amount := func(name string, least, most resource.Amount) resource.Amount {
		return resource.Amount(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	long := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(1, most*1000).Draw(t, name)) * time.Millisecond
	}
	const gb, mb = resource.GB, resource.MB
	s := cluster.Stage{Tasks: rapid.IntRange(1, 4).Draw(t, "tasks"), Duration: long("duration", 30),
		Ideal: resource.Vector{resource.CPU: amount("cpus", 500, 2000), resource.Memory: amount("memory", gb/2, 2*gb)}}
	if rapid.Bool().Draw(t, "elastic") {
		s.MinMemory = max(1, s.Ideal[resource.Memory]*amount("least, in tenths", 1, 10)/10)
		s.Elasticity = drawElasticity(t, s.Ideal[resource.Memory])
	}
	var truth workload.StageTruth
	phases := func() (list []cluster.Phase) {
		for range rapid.IntRange(1, 3).Draw(t, "phases") {
			list = append(list, cluster.Phase{Duration: long("phase", 20) - time.Millisecond,
				Demand: resource.Vector{amount("true cpus", 0, 2500), amount("working set", 0, 2*gb),
					amount("true disk", 0, 80*mb), amount("true network", 0, 80*mb)}})
		}
		return list
	}
	switch rapid.IntRange(0, 3).Draw(t, "phases of") {
	case 1:
		truth.Phases = workload.ForAll(phases())
	case 2:
		var each [][]cluster.Phase
		for range s.Tasks {
			each = append(each, phases())
		}
		truth.Phases = workload.ForEach(each)
	}
	var durations []time.Duration
	var memories []resource.Amount
	for range rapid.IntRange(0, 1).Draw(t, "tasks differ in length") * s.Tasks {
		durations = append(durations, long("true duration", 30))
	}
	for range rapid.IntRange(0, 1).Draw(t, "tasks differ in memory") * s.Tasks {
		memories = append(memories, amount("true memory", gb/4, 2*gb))
	}
	truth.Duration, truth.IdealMemory = workload.ForEach(durations), workload.ForEach(memories)
	if rapid.IntRange(0, 3).Draw(t, "profile is wrong") == 0 {
		e := drawElasticity(t, s.Ideal[resource.Memory])
		truth.Elasticity = &e
	}
	if rapid.IntRange(0, 3).Draw(t, "collects garbage") == 0 {
		truth.Heap = &workload.Heap{Live: amount("live", 0, gb/2),
			Size: rapid.SampledFrom([]resource.Amount{0, gb, 4 * gb}).Draw(t, "heap")}
	}
	return s, truth
}

func drawElasticity(t *rapid.T, ideal resource.Amount) cluster.Elasticity {
	factor := rapid.Float64Range(1, 4)
	kind := rapid.SampledFrom([]cluster.ElasticityKind{cluster.Step, cluster.SawTooth, cluster.SawToothTable,
		cluster.Points}).Draw(t, "kind")
	if kind != cluster.Points {
		return cluster.Elasticity{Kind: kind, Factor: factor.Draw(t, "factor"),
			DiskRate: resource.MB * resource.Amount(rapid.IntRange(0, 40).Draw(t, "disk rate"))}
	}
	e := cluster.Elasticity{Kind: kind}
	for i := range resource.Amount(4) {
		e.Points = append(e.Points, cluster.ElasticityPoint{Memory: ideal * (i + 1) / 4,
			Slowdown: factor.Draw(t, "slowdown") / 2})
	}
	return e
}

func drawCluster(t *rapid.T) sim.Config {
	var nodes []cluster.Node
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		memory := resource.GB * resource.Amount(rapid.IntRange(2, 4).Draw(t, "node memory"))
		capacity := resource.Vector{resource.Core * resource.Amount(rapid.IntRange(2, 4).Draw(t, "cores")), memory,
			resource.MB * rapid.SampledFrom([]resource.Amount{0, 100}).Draw(t, "disk"),
			resource.MB * rapid.SampledFrom([]resource.Amount{0, 120}).Draw(t, "network")}
		nodes = append(nodes, cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("n", i), Capacity: capacity})
	}
	c := sim.Config{Nodes: nodes}
	c.Machine, _ = sim.MachineOf(rapid.SampledFrom(sim.Machines()).Draw(t, "machine"))
	if len(c.Machine.Paging) > 0 {
		c.Machine.Swap = 1000 * resource.GB
	}
	switch rapid.IntRange(0, 3).Draw(t, "protocol") {
	case 0:
		sim.YARN().Apply(&c)
	case 1:
		sim.Bellows().Apply(&c)
	}
	return c
}

// drawWorkload draws jobs of up to three stages.
func drawWorkload(t *rapid.T) *workload.Workload {
	w := &workload.Workload{}
	for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
		j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("job", i+1),
			MaxAttempts: rapid.IntRange(1, 3).Draw(t, "attempts"),
			Submitted:   timeline.Seconds(float64(rapid.IntRange(0, 30).Draw(t, "submitted")))}}
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "waits") == 0 {
			j.After = rapid.IntRange(0, i-1).Draw(t, "waits for")
		}
		for k := range rapid.IntRange(1, 3).Draw(t, "stages") {
			s, truth := drawStage(t)
			for p := range k {
				if rapid.Bool().Draw(t, "parent") {
					s.Parents = append(s.Parents, p)
				}
			}
			j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, truth)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// No run beats the bounds, whatever the truth is and whatever a machine does with too little memory.
func TestNoTruthBeatsLowerBounds(t *testing.T) {
	judged, closest := 0, 0.0
	rapid.Check(t, func(t *rapid.T) {
		c, w := drawCluster(t), drawWorkload(t)
		var all []policy.Policy
		for _, name := range policy.Names() {
			p, err := policy.New(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		for _, p := range append(all, anySize{rapid.Uint64().Draw(t, "seed of sizes")}) {
			result, err := sim.Run(c, w, p)
			if err != nil || len(result.Unfinished())+len(result.Failures()) > 0 {
				continue
			}
			b := Of(w, c.Nodes, p.Traits().UnderSizes, Options{Iterations: 20})
			if result.Makespan < b.Makespan || result.AverageJobRuntime < b.AverageJobRuntime {
				t.Fatalf("%s has makespan %v and mean run time %v, bounds are %+v", p.Name(), result.Makespan,
					result.AverageJobRuntime, b)
			}
			judged++
			closest = max(closest, b.Makespan.Seconds()/result.Makespan.Seconds())
		}
	})
	t.Logf("%d runs judged; the closest is within %.4f", judged, closest)
	if judged < 100 || closest < 0.9 {
		t.Errorf("%d runs judged, want 100; the closest bound is %.3f of the makespan, want 0.9", judged, closest)
	}
}

// byPhase grants hardly anything but memory, as a policy does that lets tasks share a node by what they use when: many
// more tasks run together than their ideals allow.
type byPhase struct{ anySize }

func (b byPhase) Decide(now timeline.Time, p *book.Plan) {
	for _, j := range p.Jobs {
		for stage, ok := j.NextStage(); ok; stage, ok = j.NextStage() {
			h := fnv.New64a()
			fmt.Fprint(h, b.seed, now, j.ID)
			memory := max(1, j.Stages[stage].Ideal[resource.Memory]/resource.Amount(1+h.Sum64()%8))
			n, fits := p.FirstFit(resource.Of(1, memory))
			if !fits {
				break
			}
			p.StartWith(j, stage, n, resource.Of(1, memory), cluster.BecauseFits(0))
		}
	}
}

// However little tasks are granted, no run beats the bounds on what they use.
func TestNoGrantByPhaseBeatsLowerBounds(t *testing.T) {
	judged, closest := 0, 0.0
	judge := func(t *rapid.T) {
		c, w := drawCluster(t), drawWorkload(t)
		p := byPhase{anySize{rapid.Uint64().Draw(t, "seed of sizes")}}
		result, err := sim.Run(c, w, p)
		if err != nil || len(result.Unfinished())+len(result.Failures()) > 0 {
			return
		}
		b := Of(w, c.Nodes, true, Options{Iterations: 20, ByPhase: true})
		if result.Makespan < b.Makespan || result.AverageJobRuntime < b.AverageJobRuntime {
			t.Fatalf("makespan %v and mean run time %v, bounds are %+v", result.Makespan, result.AverageJobRuntime, b)
		}
		judged++
		closest = max(closest, b.Makespan.Seconds()/result.Makespan.Seconds())
	}
	for range 5 { // few of the random runs come close to their bounds
		if rapid.Check(t, judge); t.Failed() || closest >= 0.9 {
			break
		}
	}
	t.Logf("%d runs judged; the closest is within %.4f", judged, closest)
	if judged < 10 || closest < 0.9 {
		t.Errorf("%d runs judged, want 10; the closest bound is %.3f of the makespan, want 0.9", judged, closest)
	}
}

// Two tasks reserve a core and all of the disk each, but read in turn: 40 s and 20 s at full speed, 100 MB/s. Counted
// by phases, the disk is busy for 120 s on one node; by ideals, for 240 s. Granted little, they run side by side for
// 80, 60 and 40 s, which is less than a grant for life allows.
func TestBoundByPhase(t *testing.T) {
	const mb = resource.MB
	read := func(rate resource.Amount, d time.Duration) cluster.Phase {
		return cluster.Phase{Duration: d, Demand: resource.Of(resource.Core, 100*mb).With(resource.Disk, rate*mb)}
	}
	stage := cluster.Stage{Tasks: 2, Ideal: resource.Of(resource.Core, resource.GB).With(resource.Disk, 100*mb),
		Duration: 2 * time.Minute, Phases: []cluster.Phase{read(100, 40*time.Second), read(0, 60*time.Second),
			read(100, 20*time.Second)}}
	w := &workload.Workload{Jobs: []workload.Job{{After: -1,
		Job: cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{stage}}}}}
	nodes := sim.Uniform(1, resource.Of(8*resource.Core, 8*resource.GB).With(resource.Disk, 100*mb))
	for _, c := range []struct {
		byPhase bool
		want    time.Duration
	}{{false, 4 * time.Minute}, {true, 2 * time.Minute}} {
		b := Of(w, nodes, false, Options{ByPhase: c.byPhase})
		if off := c.want - b.Makespan; off < 0 || off > 100*time.Millisecond {
			t.Errorf("by phase %v: %+v, want %v", c.byPhase, b, c.want)
		}
	}
	result, err := sim.Run(sim.Config{Nodes: nodes}, w, byPhase{})
	if err != nil || result.Makespan != 3*time.Minute {
		t.Errorf("makespan %v (%v), want 3m", result.Makespan, err)
	}
}
