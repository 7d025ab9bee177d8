package yarnme

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// mapReduce is one MapReduce job of Table 1.
type mapReduce struct {
	maps, reduces             int
	mapPenalty, reducePenalty float64
	mapMemory, reduceMemory   float64 // ideal, GB
}

// application is a row of Table 1: one or two jobs, one after the other.
type application struct {
	name  string
	input float64 // GB
	jobs  []mapReduce
	every time.Duration // inter-arrival time
	// spill is the disk bandwidth that an under-sized task demands, bytes per second. The paper does not give it;
	// docs/truth.md derives it from Fig. 2c.
	spill resource.Amount
}

// Table 1 of YARN-ME.
var (
	pagerank = application{"Pagerank", 550, []mapReduce{{1381, 275, 1.3, 1.22, 1.7, 3.7},
		{1925, 275, 1.25, 1.75, 1.5, 6.8}}, 120 * time.Second, 15 * resource.MB}
	wordCount   = application{"WordCount", 540, []mapReduce{{2130, 75, 1.35, 1.9, 1.7, 5.4}}, 30 * time.Second, 20_700_000}
	recommender = application{"Recommender", 250, []mapReduce{{505, 100, 1.3, 2.6, 2.4, 2.8},
		{505, 100, 1.3, 3.3, 2.4, 3.8}}, 120 * time.Second, 15 * resource.MB}
)

// assumed is the values that a simulation needs and section 5 does not give.
type assumed struct {
	name       string
	mapRate    float64         // MB/s of input that a mapper processes
	reduceRate float64         // MB/s of shuffled input that a reducer processes
	spread     float64         // real durations of tasks differ from the estimate by up to this share
	master     resource.Amount // memory of a job's application master
	leastShare float64         // least grant of an under-sized task, as a share of its ideal memory
	disk       resource.Amount // bandwidth of a node's disk, bytes per second; 0 is no limit
}

// assumedDefault has mappers of 25 to 50 s and reducers of 98 to 238 s. The disk is one hard disk of 2010s servers
// (Prophet section IV), as in docs/truth.md.
var assumedDefault = assumed{"as assumed", 10, 20, 0.1, 1536 * resource.MiB, 0.1, 110 * resource.MB}

// cluster returns the cluster of section 5.1.
func (a assumed) cluster() sim.Config {
	node := resource.Of(14*resource.Core, 10*resource.GB)
	node[resource.Disk] = a.disk
	return sim.Config{
		Nodes:     sim.Uniform(50, node),
		Machine:   sim.Machine{Disk: sim.HDDLoss},
		Heartbeat: time.Second, StartsPerHeartbeat: 1, CoordinatorHeartbeat: time.Second,
		Coordinator: resource.Of(resource.Core, a.master), KeepTasks: true,
	}
}

// start is a run of an application.
type start struct {
	app application
	at  time.Duration
}

// homogeneous returns n runs of an application, its inter-arrival time apart.
func homogeneous(app application, n int) []start {
	var all []start
	for i := range n {
		all = append(all, start{app, time.Duration(i) * app.every})
	}
	return all
}

// workload returns the jobs of all runs; runs[i] are the indexes of the jobs of run i.
func (a assumed) workload(starts []start, seed uint64) (w *workload.Workload, runs [][]int) {
	w = &workload.Workload{}
	for i, s := range starts {
		var jobs []int
		for k, m := range s.app.jobs {
			j := workload.Job{After: -1}
			if k > 0 {
				j.After = len(w.Jobs) - 1
			}
			j.ID, j.Name = cluster.JobID(len(w.Jobs)+1), fmt.Sprintf("%s-%d-%d", s.app.name, i+1, k+1)
			j.Submitted = timeline.Time(s.at)
			j.Stages = []cluster.Stage{a.mappers(s.app, m), a.reducers(s.app, m)}
			jobs = append(jobs, len(w.Jobs))
			w.Jobs = append(w.Jobs, j)
		}
		runs = append(runs, jobs)
	}
	if a.spread > 0 {
		w = workload.Misjudge(w, workload.Misjudgement{Duration: workload.Deviation{Low: -a.spread, High: a.spread}}, seed)
	}
	return w, runs
}

func (a assumed) mappers(app application, m mapReduce) cluster.Stage {
	perMap := app.input * 1000 / float64(app.jobs[0].maps) // MB; the second job's input is not given
	return a.underSizable("map", m.maps, m.mapMemory, perMap/a.mapRate, app.spill,
		cluster.Elasticity{Kind: cluster.Step, Factor: m.mapPenalty})
}

func (a assumed) reducers(app application, m mapReduce) cluster.Stage {
	const shuffleShare = 0.7 // of memory is shuffle buffer, "by default in Hadoop" (section 1)
	s := a.underSizable("reduce", m.reduces, m.reduceMemory, shuffleShare*m.reduceMemory*1000/a.reduceRate, app.spill,
		cluster.Elasticity{Kind: cluster.SawTooth, Factor: m.reducePenalty})
	s.Parents = []int{0}
	return s
}

func (a assumed) underSizable(name string, tasks int, gb, seconds float64, spill resource.Amount,
	e cluster.Elasticity) cluster.Stage {
	memory := resource.Amount(math.Round(gb*10)) * 100 * resource.MB
	least := resource.Amount(math.Ceil(gb*10*a.leastShare-1e-9)) * 100 * resource.MB
	e.DiskRate = spill
	return cluster.Stage{
		Name: name, Tasks: tasks, Ideal: resource.Of(resource.Core, memory), MinMemory: least,
		Duration: time.Duration(math.Round(seconds)) * time.Second, Elasticity: e,
	}
}

// phases are the metrics of section 5.1, in seconds, averaged over runs and jobs.
type phases struct {
	Runtime  float64 `json:"runtime_s"`
	Map      float64 `json:"map_s"`
	Reduce   float64 `json:"reduce_s"`
	Makespan float64 `json:"makespan_s"`
	Memory   float64 `json:"memory"`
	Elastic  float64 `json:"elastic"`
	// Values of single runs, in the order of their start.
	Runtimes []float64 `json:"runtimes_s"`
	Maps     []float64 `json:"maps_s"`
}

// measure computes the metrics of a result that has its tasks.
func measure(r *sim.Result, runs [][]int) phases {
	const maps = 1 // the simulator puts the application master's stage before
	lastMap := make([]timeline.Time, len(r.Jobs))
	for _, t := range r.Tasks {
		if job := int(t.ID.Job) - 1; t.ID.Stage == maps {
			lastMap[job] = max(lastMap[job], t.Finished)
		}
	}
	p := phases{Makespan: r.Makespan.Seconds(), Memory: r.MemoryUtilisation, Elastic: r.UnderSizedShare()}
	var reduces []float64
	for _, jobs := range runs {
		first, last := &r.Jobs[jobs[0]], &r.Jobs[jobs[len(jobs)-1]]
		p.Runtimes = append(p.Runtimes, last.Ended.Sub(first.Submitted).Seconds())
		mapping := 0.0
		for _, job := range jobs {
			mapping += lastMap[job].Sub(r.Jobs[job].Submitted).Seconds()
			reduces = append(reduces, r.Jobs[job].Ended.Sub(lastMap[job]).Seconds())
		}
		p.Maps = append(p.Maps, mapping/float64(len(jobs)))
	}
	p.Runtime, p.Map, p.Reduce = lab.Mean(p.Runtimes), lab.Mean(p.Maps), lab.Mean(reduces)
	return p
}

// runPhases simulates the runs under c.
func (a assumed) runPhases(c lab.Contender, starts []start, seed uint64) (phases, *sim.Result, error) {
	w, runs := a.workload(starts, seed)
	r, err := c.Succeed(a.cluster(), w)
	if err != nil {
		return phases{}, nil, err
	}
	return measure(r, runs), r, nil
}
