package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// ecsTrial is the outcome of jobs under a scheduler. Shares are of the capacity of the cluster until the last job ends.
type ecsTrial struct {
	Completion float64 `json:"completion_s"` // mean of the jobs
	Map        float64 `json:"map_s"`        // mean run time of a map task
	Reduce     float64 `json:"reduce_s"`     // and of a reduce task
	Containers float64 `json:"containers"`   // that ran at a time, mean
	CPU        float64 `json:"cpu"`          // used
	Memory     float64 `json:"memory"`       // used
	Idle       float64 `json:"fa"`           // CPU that is not demanded: fragmentation
	Over       float64 `json:"oa"`           // CPU that is demanded beyond what a node has: over-allocation
	Makespan   float64 `json:"makespan_s"`
	Running    []int   `json:"running"` // containers every runningStep
	work
}

// work is what leveling did.
type work struct {
	Stops   int `json:"stops"`   // decisions to stop a task
	Asks    int `json:"asks"`    // problems that were to be solved
	Answers int `json:"answers"` // those that were
	Proved  int `json:"proved"`  // and to the optimum
	States  int `json:"states"`  // that their searches looked at
	Most    int `json:"most"`    // by one search
	// Impossible are problems that no schedule solves.
	Impossible int `json:"impossible,omitempty"`
}

func (w *work) observe(_ timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
	w.Stops += stopsIn(decisions)
	for i := range decisions {
		if decisions[i].Kind == cluster.Ask {
			w.Asks++
		}
	}
	for i := range events {
		a := events[i].Answer
		if a != nil && a.Failed != "" {
			w.Impossible++
		}
		if a != nil && a.Failed == "" {
			w.Answers, w.States, w.Most = w.Answers+1, w.States+a.States, max(w.Most, a.States)
			if a.Proved {
				w.Proved++
			}
		}
	}
}

// runningStep is the time between two numbers of Running, in seconds.
const runningStep = 5

// replayECS simulates jobs.
func replayECS(c lab.Contender, config sim.Config, w *workload.Workload) (t ecsTrial, err error) {
	config.KeepTasks, config.Series.Nodes = true, true
	work := work{}
	config.Observe = work.observe
	r, err := c.Succeed(config, w)
	if err != nil {
		return t, err
	}
	t = trialOf(r)
	t.work = work
	return t, nil
}

// alone is one job of a benchmark.
func (a *assumed) alone(b *benchmark, seed uint64) *workload.Workload {
	return &workload.Workload{Jobs: []workload.Job{a.job(b, 1, 0,
		rand.New(rand.NewPCG(seed,
			uint64(0xec5+slices.IndexFunc(benchmarks, func(o benchmark) bool { return o.name == b.name })))))}}
}

// together is a job of each benchmark, with a third of the tasks each, all submitted at once.
func (a *assumed) together(seed uint64) *workload.Workload {
	third := *a
	third.maps, third.reduces = a.maps/3, a.reduces/3
	r := rand.New(rand.NewPCG(seed, 0xec5))
	w := &workload.Workload{}
	for i := range benchmarks {
		w.Jobs = append(w.Jobs, third.job(&benchmarks[i], i+1, 0, r))
	}
	return w
}

func trialOf(r *sim.Result) (t ecsTrial) {
	t.Completion = r.AverageJobRuntime.Seconds()
	t.Makespan = r.Makespan.Seconds()
	makespan := t.Makespan
	var times [2][]float64 // by stage, after the coordinator
	t.Running = make([]int, int(makespan/runningStep)+2)
	for _, task := range r.Tasks {
		if task.Coordinator {
			continue
		}
		times[task.ID.Stage-1] = append(times[task.ID.Stage-1], lab.TaskSeconds(task))
		t.Containers += lab.TaskSeconds(task) / makespan
		t.Running[stepAfter(task.Launched)]++
		t.Running[stepAfter(task.Finished)]--
	}
	for i := 1; i < len(t.Running); i++ {
		t.Running[i] += t.Running[i-1]
	}
	t.Map, t.Reduce = lab.Mean(times[0]), lab.Mean(times[1])
	end, whole := timeline.Time(r.Makespan), resource.Vector{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		whole = whole.Add(n.Steps[0].Capacity)
		idle, over := n.Areas(resource.CPU, 0, end)
		t.Idle, t.Over = t.Idle+idle.UnitSeconds(), t.Over+over.UnitSeconds()
		t.CPU, t.Memory = t.CPU+usedOf(n, resource.CPU, end), t.Memory+usedOf(n, resource.Memory, end)
	}
	cores := float64(whole[resource.CPU]) * makespan
	t.Idle, t.Over, t.CPU = t.Idle/cores, t.Over/cores, t.CPU/cores
	t.Memory /= float64(whole[resource.Memory]) * makespan
	return t
}

// stepAfter is the first step of Running at a time or after it.
func stepAfter(at timeline.Time) int {
	return int((at.Sub(0).Seconds() + runningStep - 1e-9) / runningStep)
}

// usedOf is what was used of a resource until the end, times seconds.
func usedOf(n *sim.NodeSeries, k resource.Kind, end timeline.Time) (used float64) {
	for i, s := range n.Steps {
		until := end
		if i+1 < len(n.Steps) {
			until = min(until, n.Steps[i+1].At)
		}
		used += float64(s.Used[k]) * max(0, until.Sub(s.At).Seconds())
	}
	return used
}

// ecsAll names the row of all benchmarks together.
const ecsAll = "all together"

// rows are the workloads of Fig. 8 and 9, by name.
func rows() (all []string) {
	for i := range benchmarks {
		all = append(all, benchmarks[i].name)
	}
	return append(all, ecsAll)
}

// contenders are the schedulers of Fig. 8 and 9.
var contenders = slices.Concat([]lab.Contender{capacity, prism, own, weight}, products)

// trials are the outcomes by cluster, workload, scheduler, and run.
type trials [][][][]ecsTrial

// of returns a number of a workload under a scheduler: the mean over the clusters and runs.
func (t trials) of(row, scheduler string, number func(*ecsTrial) float64) float64 {
	var all []float64
	for i := range t {
		all = append(all, t.on(i, row, scheduler, number))
	}
	return lab.Mean(all)
}

// on is of for one cluster.
func (t trials) on(at int, row, scheduler string, number func(*ecsTrial) float64) float64 {
	var all []float64
	for i, name := range rows() {
		if name == row {
			runs := t[at][i][lab.Place(scheduler, contenders)]
			for run := range runs {
				all = append(all, number(&runs[run]))
			}
		}
	}
	return lab.Mean(all)
}

func figure8(l *lab.Lab) (*lab.Findings, error) {
	rows, assumed := rows(), usual
	if l.Quick {
		assumed.maps, assumed.reduces = assumed.maps/10, assumed.reduces/10
	}
	trials := make(trials, len(clusters))
	for i := range clusters {
		n := &clusters[i]
		all, err := lab.EachRun(l, n.name, len(rows)*len(contenders), func(point, run int) (ecsTrial, error) {
			row, c := point/len(contenders), contenders[point%len(contenders)]
			if rows[row] == ecsAll {
				return replayECS(c, n.cluster(), assumed.together(l.RunSeed(run)))
			}
			return replayECS(c, n.cluster(), assumed.alone(&benchmarks[row], l.RunSeed(run)))
		})
		if err != nil {
			return nil, err
		}
		for row := range rows {
			trials[i] = append(trials[i], all[row*len(contenders):(row+1)*len(contenders)])
		}
	}
	f := &lab.Findings{Claims: fig8Claims(trials),
		Pictures: []lab.Picture{{Name: "parallelism",
			Caption: "Containers that run at a time, one job of wordcount (simulated)",
			Picture: parallelism(trials)}}}
	for i := range clusters {
		f.Tables = append(f.Tables, utilisation(trials, i), times(trials, i))
	}
	f.Data = []lab.Table{data(trials)}
	return f, nil
}

var (
	cpuUsed    = func(t *ecsTrial) float64 { return t.CPU }
	memoryUsed = func(t *ecsTrial) float64 { return t.Memory }
	containers = func(t *ecsTrial) float64 { return t.Containers }
	cpuIdle    = func(t *ecsTrial) float64 { return t.Idle }
	cpuOver    = func(t *ecsTrial) float64 { return t.Over }
	ecsStops   = func(t *ecsTrial) float64 { return float64(t.Stops) }
	completes  = func(t *ecsTrial) float64 { return t.Completion }
	mapTask    = func(t *ecsTrial) float64 { return t.Map }
	reduceTask = func(t *ecsTrial) float64 { return t.Reduce }
	ends       = func(t *ecsTrial) float64 { return t.Makespan }
	asks       = func(t *ecsTrial) float64 { return float64(t.Asks) }
	// overTime is over-allocation in seconds of the whole cluster: it does not shrink because a makespan grows.
	overTime = func(t *ecsTrial) float64 { return t.Over * t.Makespan }
)

// utilisation is the table of Fig. 8 on a cluster.
func utilisation(t trials, at int) lab.Table {
	table := lab.NewTable("Utilisation and parallelism, "+clusters[at].name+" (means of the runs)", "benchmark",
		"scheduler", "CPU used", "memory used", "CPU not demanded (fragmentation)",
		"CPU demanded beyond capacity (over-allocation)", "containers at a time", "of those of Capacity", "stops of tasks")
	for _, row := range rows() {
		for _, c := range contenders {
			of := func(number func(*ecsTrial) float64) float64 { return t.on(at, row, c.Label, number) }
			table.Add(row, c.Label, lab.Percent(of(cpuUsed)), lab.Percent(of(memoryUsed)), lab.Percent(of(cpuIdle)),
				lab.Percent(of(cpuOver)),
				lab.Decimals(of(containers), 0), lab.Decimals(of(containers)/t.on(at, row, capacity.Label, containers), 2)+"x",
				lab.Decimals(of(ecsStops), 0))
		}
	}
	return table
}

// times is the table of Fig. 9 on a cluster.
func times(t trials, at int) lab.Table {
	table := lab.NewTable("Times over those under Capacity, "+clusters[at].name+" (means of the runs)", "benchmark",
		"under Capacity: job", "map task", "reduce task")
	for _, c := range contenders[1:] {
		table.Heads = append(table.Heads, c.Label+": job", "map task", "reduce task")
	}
	for _, row := range rows() {
		cells := []string{row}
		for _, number := range []func(*ecsTrial) float64{completes, mapTask, reduceTask} {
			cells = append(cells, lab.Decimals(t.on(at, row, capacity.Label, number), 0)+" s")
		}
		for _, c := range contenders[1:] {
			for _, number := range []func(*ecsTrial) float64{completes, mapTask, reduceTask} {
				cells = append(cells, lab.Decimals(t.on(at, row, c.Label, number)/t.on(at, row, capacity.Label, number), 2))
			}
		}
		table.Add(cells...)
	}
	return table
}

func data(t trials) lab.Table {
	data := lab.NewTable("trials", "cluster", "benchmark", "scheduler", "run", "completion_s", "map_s", "reduce_s",
		"containers", "cpu", "memory", "fa", "oa", "stops")
	for i := range t {
		for row, name := range rows() {
			for k, c := range contenders {
				for run, one := range t[i][row][k] {
					data.Put(clusters[i].name, name, c.Label, run, one.Completion, one.Map, one.Reduce, one.Containers, one.CPU,
						one.Memory, one.Idle, one.Over, one.Stops)
				}
			}
		}
	}
	return data
}

// parallelism draws how many containers of wordcount run in the first run on the first cluster.
func parallelism(t trials) *chart.Plot {
	p := &chart.Plot{Title: "Containers of a job of wordcount", Subtitle: "simulated, " + clusters[0].name,
		X: "time, s", Y: "containers"}
	for _, c := range []lab.Contender{capacity, own} {
		s := chart.Series{Name: c.Label, Step: true}
		for step, n := range t[0][0][lab.Place(c.Label, contenders)][0].Running {
			s.X, s.Y = append(s.X, float64(step*runningStep)), append(s.Y, float64(n))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// gained is a gain of the paper's and ours.
type gained struct{ paper, ours float64 }

// judgeGains judges gains by the paper's. The claim holds, or holds in part, if each of them does.
func judgeGains(c lab.Claim, ours string, all ...gained) lab.Claim {
	whole, half := true, true
	for _, g := range all {
		whole = whole && lab.Within(g.ours, g.paper/1.5, g.paper*1.5)
		half = half && lab.Within(g.ours, g.paper/3, g.paper*3)
	}
	c.Criterion = "two thirds to one and a half times the paper's; in part: a third to three times"
	return c.Judge(ours, whole, half)
}

// judgeActed is judgeGains for what ECS has and PRISM has not: leveling. acted says whether it has stopped a task.
func judgeActed(c lab.Claim, acted bool, ours string, all ...gained) lab.Claim {
	judged := judgeGains(c, ours, all...)
	if !acted {
		return judged.NeverActed(ours, "Leveling")
	}
	return judged
}

// points prints a difference of shares.
func points(share float64) string { return lab.Decimals(100*share, 1) + " points" }

func fig8Claims(t trials) []lab.Claim {
	const fig = "ecs/fig8-9"
	// gain is by how many points a share is larger under ECS, mean over the benchmarks, each alone.
	gain := func(over string, number func(*ecsTrial) float64, of ...string) float64 {
		all := 0.0
		for _, b := range of {
			all += t.of(b, own.Label, number) - t.of(b, over, number)
		}
		return all / float64(len(of))
	}
	alone := rows()[:len(benchmarks)]
	cpu := func(over string, of ...string) string {
		ratio := 0.0
		for _, b := range of {
			ratio += t.of(b, own.Label, cpuUsed) / t.of(b, over, cpuUsed) / float64(len(of))
		}
		return fmt.Sprintf("%s, %s of the use", points(gain(over, cpuUsed, of...)), lab.Percent(ratio-1))
	}
	kmeans, bayes := gain("Capacity", cpuUsed, "k-means"), gain("Capacity", cpuUsed, "bayes")
	better := 0
	for _, b := range alone {
		if t.of(b, prism.Label, cpuUsed) < t.of(b, own.Label, cpuUsed) {
			better++
		}
	}
	parallel := t.of("wordcount", own.Label, containers) / t.of("wordcount", capacity.Label, containers)
	return append([]lab.Claim{
		judgeGains(Paper.Stated(fig, "cpu"), cpu("Capacity", alone...), gained{0.18, gain("Capacity", cpuUsed, alone...)}),
		judgeGains(Paper.Stated(fig, "memory"), points(gain("Capacity", memoryUsed, alone...)),
			gained{0.04, gain("Capacity", memoryUsed, alone...)}),
		judgeGains(Paper.Stated(fig, "cpu-prism"), cpu("PRISM", alone...), gained{0.12, gain("PRISM", cpuUsed, alone...)}),
		judgeGains(Paper.Stated(fig, "memory-prism"), points(gain("PRISM", memoryUsed, alone...)),
			gained{0.03, gain("PRISM", memoryUsed, alone...)}),
		Paper.Stated(fig, "marginal").Judge(fmt.Sprintf("k-means %s, bayes %s", points(kmeans), points(bayes)),
			max(kmeans, bayes) <= 0.05, min(kmeans, bayes) <= 0.05),
		judgeGains(Paper.Stated(fig, "io"), cpu("Capacity", "wordcount", "inverted-index"),
			gained{0.25, gain("Capacity", cpuUsed, "wordcount", "inverted-index")}),
		Paper.Stated(fig, "prism-less").Judge(fmt.Sprintf("of %d of %d benchmarks", better, len(alone)), better == len(alone),
			2*better > len(alone)),
		judgeGains(Paper.Stated(fig, "parallelism"), lab.Decimals(parallel, 2)+"x", gained{0.5, parallel - 1}),
	}, fig9Claims(t)...)
}

func fig9Claims(t trials) []lab.Claim {
	const fig = "ecs/fig8-9"
	saved := func(b, over string) float64 {
		return 1 - t.of(b, own.Label, completes)/t.of(b, over, completes)
	}
	pairs := func(over string, paper map[string]float64, of ...string) (text string, all []gained) {
		for i, b := range of {
			if i > 0 {
				text += ", "
			}
			text += b + " " + lab.Percent(saved(b, over))
			all = append(all, gained{paper[b], saved(b, over)})
		}
		return text, all
	}
	stock, prism := "Capacity", "PRISM"
	io, ioPairs := pairs(stock, map[string]float64{"wordcount": 0.29, "terasort": 0.19, "inverted-index": 0.26},
		"wordcount", "terasort", "inverted-index")
	over, overPairs := pairs(prism, map[string]float64{"wordcount": 0.17, "terasort": 0.14, "inverted-index": 0.17},
		"wordcount", "terasort", "inverted-index")
	hybrid, hybridPairs := pairs(stock, map[string]float64{"pagerank": 0.20, "join": 0.21}, "pagerank", "join")
	compute, rest, longer, slower, tasks := 0.0, 1.0, 0.0, 0.0, 0.0
	for i := range benchmarks {
		b := &benchmarks[i]
		if b.kind == "CPU" {
			compute = max(compute, saved(b.name, stock))
		} else {
			rest = min(rest, saved(b.name, stock))
		}
		for _, number := range []func(*ecsTrial) float64{mapTask, reduceTask} {
			longer += t.of(b.name, own.Label, number)/t.of(b.name, stock, number) - 1
			slower += t.of(b.name, prism, number)/t.of(b.name, own.Label, number) - 1
			tasks++
		}
	}
	longer, slower = longer/tasks, slower/tasks
	acted := t.of("wordcount", own.Label, ecsStops)+t.of("terasort", own.Label, ecsStops)+
		t.of("inverted-index", own.Label, ecsStops) > 0
	return []lab.Claim{
		judgeGains(Paper.Stated(fig, "jct-io"), io, ioPairs...),
		judgeActed(Paper.Stated(fig, "jct-prism"), acted, over, overPairs...),
		judgeGains(Paper.Stated(fig, "jct-hybrid"), hybrid, hybridPairs...),
		Paper.Stated(fig, "jct-cpu").Judge(fmt.Sprintf("at most %s, others at least %s", lab.Percent(compute),
			lab.Percent(rest)),
			compute < rest && compute <= rest/2, compute < rest),
		judgeGains(Paper.Stated(fig, "task-time"), lab.Percent(longer), gained{0.11, longer}),
		Paper.Stated(fig, "prism-delays").Judge(lab.Percent(slower)+" longer than under ECS", slower >= 0.1, slower > 0.02),
	}
}
