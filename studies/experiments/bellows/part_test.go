package bellows

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

var partRuns = flag.Int("part-runs", 0, "how many workloads of each kind TestPartOfCore compares; 0 is four")

// Programs of which nothing is known start on a part of a core: jobs end no later than if they waited for all of it,
// and earlier where half of the programs mostly wait. docs/policy.md has the numbers of 12 runs.
func TestPartOfCore(t *testing.T) {
	l := &lab.Lab{Settings: lab.Settings{Seed: 1}}
	for _, g := range []struct {
		name   string
		make   func(*lab.Lab, int) (sim.Config, *workload.Workload)
		within float64
	}{
		{"12 programs, 4 runs each, 2 cores, half mostly wait", unstated(12, 4, 2*resource.Core, 0.5), 0.95},
		{"20 programs, 10 runs each, 4 cores, half mostly wait", unstated(20, 10, 4*resource.Core, 0.5), 0.95},
		{"20 programs, 10 runs each, 4 cores, nearly all compute", unstated(20, 10, 4*resource.Core, 0.1), within},
	} {
		results := map[string][]outcome{}
		for run := range cmp.Or(*partRuns, 4) {
			for _, part := range []string{"1", "0.5", "0.25"} {
				c, w := g.make(l, run)
				contender := lab.Contender{Contender: trial.Contender{Label: part, Policy: "bellows",
					Settings: map[string]string{"bellows.part": part}}, Flex: c.Flex}
				r, err := contender.ToTheEnd(c, w)
				if err != nil {
					t.Fatalf("%s, part %s: %v", g.name, part, err)
				}
				results[part] = append(results[part], outcome{Runtime: r.AverageJobRuntime.Seconds(),
					Makespan: r.Makespan.Seconds()})
			}
		}
		for _, part := range []string{"0.5", "0.25"} {
			ratio := func(number func(outcome) float64) trial.Estimate {
				return trial.GeometricMean(lab.Ratios(lab.Values(results[part], number), lab.Values(results["1"], number)))
			}
			mean := ratio(func(o outcome) float64 { return o.Runtime })
			t.Logf("%s: %s of a core: mean run time %s, end of the last job %s", g.name, part, lab.Interval(mean, 3),
				lab.Interval(ratio(func(o outcome) float64 { return o.Makespan }), 3))
			if mean.Mean > g.within {
				t.Errorf("%s: with %s of a core, jobs take %.3f times as long as with all of it", g.name, part, mean.Mean)
			}
		}
	}
}

// unstated are programs whose CPU nobody states, each run several times in a random order, as twice the load that the
// cores can bear. Some use up to half a core, and the others a whole one.
func unstated(programs, runs int, cores resource.Amount, waits float64) func(*lab.Lab, int) (sim.Config,
	*workload.Workload) {
	return func(l *lab.Lab, run int) (sim.Config, *workload.Workload) {
		r := rand.New(rand.NewPCG(l.RunSeed(run), 0x9a7))
		truths := make([][]cluster.Phase, programs)
		for i := range truths {
			cpu := resource.Core
			if r.Float64() < waits {
				cpu = resource.Core/20 + resource.Amount(r.Int64N(int64(resource.Core/2)))
			}
			truths[i] = []cluster.Phase{{Duration: time.Duration(10+r.IntN(50)) * time.Second,
				Demand: resource.Of(cpu, resource.Amount(30+r.IntN(300))*resource.MiB)}}
		}
		var jobs []workload.Job
		work := 0.0
		for range runs {
			for _, k := range r.Perm(programs) {
				j := one(fmt.Sprint("program ", k), truths[k])
				s := &j.Stages[0]
				s.Ideal[resource.CPU], s.MaxCPU, s.ReservedCPU = resource.Core, resource.MostCPU, &cluster.ReservedCPU{}
				jobs, work = append(jobs, j), work+truths[k][0].Duration.Seconds()*float64(truths[k][0].Demand[resource.CPU])
			}
		}
		c, w := crowded(jobs, 8*resource.GiB, true, r)
		c.Nodes = sim.Uniform(1, resource.Of(cores, 8*resource.GiB))
		for i, at := range lab.Arrivals(len(jobs), time.Duration(work/float64(cores)/2*1e9), r) {
			w.Jobs[i].Submitted = at
		}
		return c, w
	}
}
