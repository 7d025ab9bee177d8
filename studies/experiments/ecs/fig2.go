package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// The case study of section II.B: two jobs of pagerank on a cluster of 7 nodes of 16 cores. The tasks of a job are
// assumed: two jobs have two tasks per core.
const (
	caseNodes = 7
	caseTasks = caseNodes * 16
	initTime  = 20 // seconds at the beginning in which map tasks start, by Fig. 2
)

// cases are native containers, elastic ones under a scheduler that looks at what is free now alone, and elastic
// ones under ECS and the products.
var cases = slices.Concat([]lab.Contender{
	{Contender: trial.Contender{Label: "native containers", Policy: capacity.Policy, Settings: capacity.Settings}},
	with("elastic containers", "leveling", "false", "short", "false"), own,
}, products)

// ecsCase is what ran on the nodes over time, mean of all nodes; shares are of their cores.
type ecsCase struct {
	Makespan float64      `json:"makespan_s"`
	Mean     float64      `json:"containers"`       // at a time, on a node
	Init     float64      `json:"containers_first"` // in the first ecsInit seconds
	Used     float64      `json:"cpu"`
	Over     float64      `json:"oa"`
	Beyond   float64      `json:"beyond"`  // share of the time with more demand than capacity
	Running  [2][]float64 `json:"running"` // map and reduce tasks on the first node every runningStep
	Demand   []float64    `json:"demand"`  // on the first node, of its cores, mean of each runningStep
}

// caseJobs are the jobs, of some maps and as many reduces each, and caseConfig is the cluster.
func caseJobs(seed uint64, tasks int) *workload.Workload {
	a := usual
	a.maps, a.reduces = tasks, tasks
	r := rand.New(rand.NewPCG(seed, 2))
	w := &workload.Workload{}
	for i := range 2 {
		w.Jobs = append(w.Jobs, a.job(benchmarkOf("pagerank"), i+1, 0, r))
	}
	return w
}

func caseConfig() sim.Config {
	return config(sim.Uniform(caseNodes, resource.Of(16*resource.Core, 128*resource.GB)))
}

func caseOf(c lab.Contender, seed uint64, tasks int) (k ecsCase, err error) {
	config := caseConfig()
	config.KeepTasks, config.Series.Nodes = true, true
	result, err := c.Succeed(config, caseJobs(seed, tasks))
	if err != nil {
		return k, err
	}
	k.Makespan = result.Makespan.Seconds()
	k.count(result)
	end := timeline.Time(result.Makespan)
	for i := range result.Nodes {
		n := &result.Nodes[i]
		k.Used += usedOf(n, resource.CPU, end) / float64(n.Steps[0].Capacity[resource.CPU]) / k.Makespan / caseNodes
		k.Over += lab.AreasOf(n, resource.CPU, 0, k.Makespan).Over / caseNodes
		k.Beyond += lab.Beyond(n, resource.CPU, end) / caseNodes
	}
	for from := 0.0; from < k.Makespan; from += runningStep {
		a := lab.AreasOf(&result.Nodes[0], resource.CPU, from, min(k.Makespan, from+runningStep))
		k.Demand = append(k.Demand, a.Demand())
	}
	return k, nil
}

// count counts the containers.
func (k *ecsCase) count(r *sim.Result) {
	steps := int(k.Makespan/runningStep) + 2
	k.Running = [2][]float64{make([]float64, steps), make([]float64, steps)}
	for _, t := range r.Tasks {
		if t.Coordinator {
			continue
		}
		launched, finished := t.Launched.Sub(0).Seconds(), t.Finished.Sub(0).Seconds()
		k.Mean += (finished - launched) / k.Makespan / caseNodes
		k.Init += max(0, min(finished, initTime)-launched) / initTime / caseNodes
		if t.Node == 0 {
			running := k.Running[t.ID.Stage-1]
			for i := stepAfter(t.Launched); i < stepAfter(t.Finished); i++ {
				running[i]++
			}
		}
	}
}

func figure2(l *lab.Lab) (*lab.Findings, error) {
	tasks := caseTasks
	if l.Quick {
		tasks /= 4
	}
	t, err := lab.EachRun(l, "containers", len(cases), func(point, run int) (ecsCase, error) {
		return caseOf(cases[point], l.RunSeed(run), tasks)
	})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Two jobs of pagerank (means of the runs)", "containers", "until both jobs have ended",
		"on a node at a time", fmt.Sprintf("in the first %d s", initTime), "CPU used",
		"CPU demanded beyond capacity (over-allocation)", "time with more demand than capacity")
	data := lab.NewTable("runs", "containers", "run", "makespan_s", "containers_per_node", "containers_first", "cpu", "oa",
		"beyond")
	for i, c := range cases {
		of := func(number func(ecsCase) float64) float64 { return lab.Mean(lab.Values(t[i], number)) }
		table.Add(c.Label, lab.Decimals(of(caseEnds), 0)+" s", lab.Decimals(of(caseMean), 1), lab.Decimals(of(caseInit), 1),
			lab.Percent(of(caseUsed)), lab.Percent(of(caseOver)), lab.Percent(of(caseBeyond)))
		for run, k := range t[i] {
			data.Put(c.Label, run, k.Makespan, k.Mean, k.Init, k.Used, k.Over, k.Beyond)
		}
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: fig2Claims(t),
		Pictures: []lab.Picture{{Name: "containers", Caption: "Containers on a node over time (simulated)",
			Picture: containersOf(t)},
			{Name: "demand", Caption: "CPU demanded on a node over time (simulated)", Picture: demandOf(t)}}}, nil
}

func caseEnds(k ecsCase) float64   { return k.Makespan }
func caseMean(k ecsCase) float64   { return k.Mean }
func caseInit(k ecsCase) float64   { return k.Init }
func caseUsed(k ecsCase) float64   { return k.Used }
func caseOver(k ecsCase) float64   { return k.Over }
func caseBeyond(k ecsCase) float64 { return k.Beyond }

// containersOf draws the map and the reduce tasks on the first node in the first run.
func containersOf(t [][]ecsCase) *chart.Plot {
	p := &chart.Plot{Title: "Containers on a node", Subtitle: "simulated, two jobs of pagerank", X: "time, s",
		Y: "containers"}
	for i, c := range cases[:2] {
		for stage, name := range []string{"map", "reduce"} {
			s := chart.Series{Name: c.Label + ", " + name, Step: true, Dashed: stage == 0}
			for step, n := range t[i][0].Running[stage] {
				s.X, s.Y = append(s.X, float64(step*runningStep)), append(s.Y, n)
			}
			p.Series = append(p.Series, s)
		}
	}
	return p
}

// demandOf draws what is demanded of the first node in the first run.
func demandOf(t [][]ecsCase) *chart.Plot {
	p := &chart.Plot{Title: "CPU demanded on a node, over capacity", Subtitle: "simulated, two jobs of pagerank",
		X: "time, s", Y: "demand over capacity", Lines: []chart.Rule{{At: 1}}}
	for i, c := range cases[:2] {
		s := chart.Series{Name: c.Label, Step: true}
		for step, d := range t[i][0].Demand {
			s.X, s.Y = append(s.X, float64(step*runningStep)), append(s.Y, d)
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// fig2Claims judges native and elastic containers, by run.
func fig2Claims(t [][]ecsCase) []lab.Claim {
	const fig = "ecs/fig2-3"
	of := func(i int, number func(ecsCase) float64) float64 { return lab.Mean(lab.Values(t[i], number)) }
	over := func(number func(ecsCase) float64) float64 { return of(1, number) / of(0, number) }
	first, more, used, ends := over(caseInit), over(caseMean), over(caseUsed), over(caseEnds)
	return []lab.Claim{
		Paper.Stated(fig, "similar").Judge(lab.Decimals(first, 2)+"x", lab.Within(first, 0.8, 1.2), lab.Within(first, 0.5,
			2)),
		Paper.Stated(fig, "more").Judge(fmt.Sprintf("%sx the containers, %sx the use of CPU", lab.Decimals(more, 2),
			lab.Decimals(used, 2)), min(more, used) >= 1.1, max(more, used) >= 1.1),
		Paper.Stated(fig, "over").Judge(fmt.Sprintf("%s of the time, native containers %s", lab.Percent(of(1, caseBeyond)),
			lab.Percent(of(0, caseBeyond))), of(1, caseBeyond) >= 0.1 && of(0, caseBeyond) <= 0.01,
			of(1, caseBeyond) > of(0, caseBeyond)),
		Paper.Stated(fig, "outperforms").Judge(lab.Percent(1-ends)+" shorter", ends <= 0.95, ends < 1),
	}
}
