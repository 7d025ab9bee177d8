package bellows

import (
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// one is a job of one task of an application, whose reservation is learned.
func one(app string, truth []cluster.Phase) workload.Job {
	j := workload.Job{After: -1, Job: cluster.Job{Name: app, App: app, Class: cluster.Flex, MaxAttempts: 4,
		Stages: []cluster.Stage{{Name: "task", Tasks: 1}}},
		Truth: []workload.StageTruth{{Phases: workload.ForAll(truth)}}}
	j.Stages[0].Ideal[resource.CPU] = max(1, lab.UsageOf(truth).Peak[resource.CPU])
	j.Learn()
	return j
}

// crowded submits jobs, in their order, so that their peaks of memory are twice what a node has, which has memory for a
// part of the peaks of all applications.
func crowded(jobs []workload.Job, node resource.Amount, swap bool, r *rand.Rand) (sim.Config, *workload.Workload) {
	work, cores := 0.0, resource.Amount(0)
	for i := range jobs {
		truth, _ := jobs[i].Truth[0].Phases.Of(0)
		u := lab.UsageOf(truth)
		work += u.Lasts * float64(u.Peak[resource.Memory])
		cores += u.Peak[resource.CPU]
	}
	for i, at := range lab.Arrivals(len(jobs), time.Duration(work/float64(node)/2*1e9), r) {
		jobs[i].Submitted = at
	}
	w := &workload.Workload{Jobs: jobs}
	lab.Number(w)
	c := sim.Config{Nodes: sim.Uniform(1, resource.Of(cores, node)), History: &profile.History{},
		Flex:    sim.Flex{Manager: memory.Default()},
		Machine: sim.Machine{Paging: sim.SSDPaging, SwapSpeed: 2 * resource.GB, FaultShare: sim.MeasuredFaultShare}}
	if swap {
		c.Machine.Swap = 2 * node
	}
	return c, w
}

// programs are 150 runs of five programs that were recorded, whose time and memory vary by 5 %.
func programs(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
	recorded, err := lab.Recorded()
	if err != nil {
		return sim.Config{}, nil, err
	}
	r := rand.New(rand.NewPCG(l.RunSeed(run), 0x4e1))
	vary := lab.Varied(r)
	var jobs []workload.Job
	for range 150 {
		p := recorded[r.IntN(len(recorded))]
		longer, larger := vary(0.05), vary(0.05)
		var truth []cluster.Phase
		for _, s := range p.Spans {
			truth = append(truth, cluster.Phase{Duration: time.Duration(longer * float64(s.Length)),
				Demand: resource.Of(s.Usage[resource.CPU], resource.Amount(larger*float64(s.Usage[resource.Memory])))})
		}
		jobs = append(jobs, one(p.Name, truth))
	}
	c, w := crowded(jobs, resource.GiB, run%2 == 0, r)
	return c, w, nil
}
