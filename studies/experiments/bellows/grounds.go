package bellows

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/ecs"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/experiments/prophet"
	"github.com/bellows-rm/bellows/studies/experiments/pufferfish"
	"github.com/bellows-rm/bellows/studies/experiments/yarnme"
)

// grounds are those of the papers, of traces that no policy is made for, and of all papers together.
func grounds() []lab.Ground {
	return slices.Concat(yarnme.Grounds(), pufferfish.Grounds(), prophet.Grounds(), ecs.Grounds(), []lab.Ground{
		{Name: "SWIM", Seeds: []string{"drf", "tetris"}, Make: swim},
		{Name: "Alibaba", Seeds: []string{"drf", "tetris"}, Make: alibaba},
		{Name: "learned", Make: programs},
		{Name: "all together", Make: together(8)},
		{Name: "all together, crowded", Make: together(5)}})
}

// swim is 150 jobs in a row of Facebook's, of at most 2,000 tasks each, on 5 nodes.
func swim(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
	f := importer.DefaultSWIM()
	return recorded(l, run, f, filepath.Join("swim", "FB-2009_samples_24_times_1hr_0.tsv.gz"), 2000, 150, 5)
}

// alibaba is 100 jobs in a row of Alibaba's, of at most 500 tasks each, on one machine.
func alibaba(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
	return recorded(l, run, importer.DefaultAlibaba(), filepath.Join("alibaba2018-dags", "random6600.csv.gz"), 500, 100, 1)
}

// recorded is jobs of a trace, from a random one on, that demand twice what nodes have while they are submitted.
func recorded(l *lab.Lab, run int, f importer.Format, file string, mostTasks, jobs, nodes int) (sim.Config,
	*workload.Workload, error) {
	all, err := lab.ReadRecorded(f, filepath.Join(l.Data, file))
	if err != nil {
		return sim.Config{}, nil, err
	}
	if l.Quick {
		jobs = 20
	}
	r := rand.New(rand.NewPCG(l.RunSeed(run), 0xbe11))
	w := &workload.Workload{}
	for i := r.IntN(len(all)); len(w.Jobs) < jobs; i++ {
		j := all[i%len(all)]
		if j.Stages = slices.Clone(j.Stages); j.Tasks() <= mostTasks {
			w.Jobs = append(w.Jobs, j)
		}
	}
	config := sim.Config{Nodes: sim.Uniform(nodes, f.Node())}
	lab.Loaded(w.Jobs, config.Nodes, 2, func(n int, over time.Duration) []timeline.Time {
		return lab.Arrivals(n, over, r)
	})
	lab.Number(w)
	return config, w, nil
}

// together returns jobs of all papers, and pairs of jobs that would collide, on one cluster of some nodes: each part of
// the policy has something to do, and meets the others.
func together(nodes int) func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
	return func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
		w := &workload.Workload{}
		r := rand.New(rand.NewPCG(l.RunSeed(run), 0xa11))
		for _, from := range [][]lab.Ground{yarnme.Grounds()[:1], pufferfish.Grounds()[:1], prophet.Grounds(),
			ecs.Grounds()[:1]} {
			_, part, err := from[0].Make(l, run)
			if err != nil {
				return sim.Config{}, nil, err
			}
			r.Shuffle(len(part.Jobs), func(i, k int) { part.Jobs[i], part.Jobs[k] = part.Jobs[k], part.Jobs[i] })
			w.Jobs = append(w.Jobs, part.Jobs[:min(len(part.Jobs), 6)]...)
		}
		for range 12 {
			w.Jobs = append(w.Jobs, collide(r)...)
		}
		for i, at := range lab.Arrivals(len(w.Jobs), 20*time.Minute, r) {
			w.Jobs[i].Submitted = at
		}
		lab.Number(w)
		node := resource.Of(16*resource.Core, 64*resource.GB).With(resource.Disk, 330*resource.MB).
			With(resource.Network, 250*resource.MB)
		return sim.Config{Nodes: sim.Uniform(nodes, node), Caps: resource.KindsOf(resource.CPU), Lends: true,
			ResizeDelay: sim.ECSResizeDelay, HoldDelay: sim.ECSHoldDelay, Flex: sim.Flex{Manager: memory.Default()},
			Machine: sim.Machine{Disk: sim.HDDLoss, Network: sim.IncastLoss, Paging: sim.SSDPaging,
				Collection: sim.JVMCollection, Swap: resource.TB, SwapSpeed: 2 * resource.GB,
				FaultShare: sim.MeasuredFaultShare, PressedBelow: 0.9}}, w, nil
	}
}

// collide returns a job that needs few cores first and many later, and one of which a part does, too, and has time,
// because the other part takes longer: the example of docs/leveling.md, four times as large.
func collide(r *rand.Rand) []workload.Job {
	scale := 2 + 4*r.Float64()
	phase := func(seconds float64, cores int64) cluster.Phase {
		return cluster.Phase{Duration: time.Duration(seconds * scale * 1e9).Round(time.Millisecond),
			Demand: resource.Of(resource.Amount(cores)*resource.Core, resource.GB)}
	}
	stage := func(name string, phases ...cluster.Phase) (cluster.Stage, workload.StageTruth) {
		s := cluster.Stage{Name: name, Tasks: 1, Phases: phases, Told: cluster.Provenance{Model: "given"}}
		s.Ideal = resource.Of(s.Peak()[resource.CPU], resource.GB)
		s.Duration = s.RunTime()
		return s, workload.StageTruth{Phases: workload.ForAll(phases)}
	}
	job := func(name string) workload.Job { return workload.Job{After: -1, Job: cluster.Job{Name: name}} }
	add := func(j *workload.Job, s cluster.Stage, t workload.StageTruth) {
		j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, t)
	}
	long, parts := job("long"), job("two-parts")
	join, truth := stage("join", phase(20, 4), phase(40, 12))
	add(&long, join, truth)
	sort, truth := stage("sort", phase(20, 4), phase(20, 12))
	add(&parts, sort, truth)
	fetch, truth := stage("fetch", phase(100, 2))
	add(&parts, fetch, truth)
	return []workload.Job{long, parts}
}
