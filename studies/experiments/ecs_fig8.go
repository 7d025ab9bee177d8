package experiments

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
	ecsWork
}

// ecsWork is what leveling did.
type ecsWork struct {
	Stops   int `json:"stops"`   // decisions to stop a task
	Asks    int `json:"asks"`    // problems that were to be solved
	Answers int `json:"answers"` // those that were
	Proved  int `json:"proved"`  // and to the optimum
	States  int `json:"states"`  // that their searches looked at
	Most    int `json:"most"`    // by one search
}

func (w *ecsWork) observe(_ timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
	w.Stops += stopsIn(decisions)
	for i := range decisions {
		if decisions[i].Kind == cluster.Ask {
			w.Asks++
		}
	}
	for i := range events {
		if a := events[i].Answer; a != nil && a.Failed == "" {
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
func (c contender) replayECS(config sim.Config, w *workload.Workload) (t ecsTrial, err error) {
	config.KeepTasks, config.Series.Nodes = true, true
	work := ecsWork{}
	config.Observe = work.observe
	r, err := c.succeed(config, w)
	if err != nil {
		return t, err
	}
	t = ecsTrialOf(r)
	t.ecsWork = work
	return t, nil
}

// alone is one job of a benchmark.
func (a *ecsAssumed) alone(b *ecsBenchmark, seed uint64) *workload.Workload {
	return &workload.Workload{Jobs: []workload.Job{a.job(b, 1, 0,
		rand.New(rand.NewPCG(seed,
			uint64(0xec5+slices.IndexFunc(ecsBenchmarks, func(o ecsBenchmark) bool { return o.name == b.name })))))}}
}

// together is a job of each benchmark, with a third of the tasks each, all submitted at once.
func (a *ecsAssumed) together(seed uint64) *workload.Workload {
	third := *a
	third.maps, third.reduces = a.maps/3, a.reduces/3
	r := rand.New(rand.NewPCG(seed, 0xec5))
	w := &workload.Workload{}
	for i := range ecsBenchmarks {
		w.Jobs = append(w.Jobs, third.job(&ecsBenchmarks[i], i+1, 0, r))
	}
	return w
}

func ecsTrialOf(r *sim.Result) (t ecsTrial) {
	t.Completion = r.AverageJobRuntime.Seconds()
	t.Makespan = r.Makespan.Seconds()
	makespan := t.Makespan
	var times [2][]float64 // by stage, after the coordinator
	t.Running = make([]int, int(makespan/runningStep)+2)
	for _, task := range r.Tasks {
		if task.Coordinator {
			continue
		}
		times[task.ID.Stage-1] = append(times[task.ID.Stage-1], taskSeconds(task))
		t.Containers += taskSeconds(task) / makespan
		t.Running[stepAfter(task.Launched)]++
		t.Running[stepAfter(task.Finished)]--
	}
	for i := 1; i < len(t.Running); i++ {
		t.Running[i] += t.Running[i-1]
	}
	t.Map, t.Reduce = mean(times[0]), mean(times[1])
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

// ecsRows are the workloads of Fig. 8 and 9, by name.
func ecsRows() (all []string) {
	for i := range ecsBenchmarks {
		all = append(all, ecsBenchmarks[i].name)
	}
	return append(all, ecsAll)
}

// ecsContenders are the schedulers of Fig. 8 and 9.
var ecsContenders = []contender{ecsCapacity, ecsPRISM, ecsOwn, ecsShort}

// ecsTrials are the outcomes by cluster, workload, scheduler, and run.
type ecsTrials [][][][]ecsTrial

// of returns a number of a workload under a scheduler: the mean over the clusters and runs.
func (t ecsTrials) of(row, scheduler string, number func(*ecsTrial) float64) float64 {
	var all []float64
	for i := range t {
		all = append(all, t.on(i, row, scheduler, number))
	}
	return mean(all)
}

// on is of for one cluster.
func (t ecsTrials) on(at int, row, scheduler string, number func(*ecsTrial) float64) float64 {
	var all []float64
	for i, name := range ecsRows() {
		if name == row {
			runs := t[at][i][place(scheduler, ecsContenders)]
			for run := range runs {
				all = append(all, number(&runs[run]))
			}
		}
	}
	return mean(all)
}

func ecsFigure8(l *lab) (*Findings, error) {
	rows, assumed := ecsRows(), ecsUsual
	if l.quick {
		assumed.maps, assumed.reduces = assumed.maps/10, assumed.reduces/10
	}
	trials := make(ecsTrials, len(ecsClusters))
	for i := range ecsClusters {
		n := &ecsClusters[i]
		all, err := eachRun(l, n.name, len(rows)*len(ecsContenders), func(point, run int) (ecsTrial, error) {
			row, c := point/len(ecsContenders), ecsContenders[point%len(ecsContenders)]
			if rows[row] == ecsAll {
				return c.replayECS(n.cluster(), assumed.together(l.seed(run)))
			}
			return c.replayECS(n.cluster(), assumed.alone(&ecsBenchmarks[row], l.seed(run)))
		})
		if err != nil {
			return nil, err
		}
		for row := range rows {
			trials[i] = append(trials[i], all[row*len(ecsContenders):(row+1)*len(ecsContenders)])
		}
	}
	f := &Findings{Claims: ecsFig8Claims(trials),
		Pictures: []Picture{{"parallelism", "Containers that run at a time, one job of wordcount (simulated)",
			parallelism(trials)}}}
	for i := range ecsClusters {
		f.Tables = append(f.Tables, ecsUtilisation(trials, i), ecsTimes(trials, i))
	}
	f.Data = []Table{ecsData(trials)}
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
	ecsEnds    = func(t *ecsTrial) float64 { return t.Makespan }
	ecsAsks    = func(t *ecsTrial) float64 { return float64(t.Asks) }
	// overTime is over-allocation in seconds of the whole cluster: it does not shrink because a makespan grows.
	overTime = func(t *ecsTrial) float64 { return t.Over * t.Makespan }
)

// ecsUtilisation is the table of Fig. 8 on a cluster.
func ecsUtilisation(t ecsTrials, at int) Table {
	table := newTable("Utilisation and parallelism, "+ecsClusters[at].name+" (means of the runs)", "benchmark",
		"scheduler", "CPU used", "memory used", "CPU not demanded (fragmentation)",
		"CPU demanded beyond capacity (over-allocation)", "containers at a time", "of those of Capacity", "stops of tasks")
	for _, row := range ecsRows() {
		for _, c := range ecsContenders {
			of := func(number func(*ecsTrial) float64) float64 { return t.on(at, row, c.Label, number) }
			table.add(row, c.Label, percent(of(cpuUsed)), percent(of(memoryUsed)), percent(of(cpuIdle)), percent(of(cpuOver)),
				decimals(of(containers), 0), decimals(of(containers)/t.on(at, row, ecsCapacity.Label, containers), 2)+"x",
				decimals(of(ecsStops), 0))
		}
	}
	return table
}

// ecsTimes is the table of Fig. 9 on a cluster.
func ecsTimes(t ecsTrials, at int) Table {
	table := newTable("Times over those under Capacity, "+ecsClusters[at].name+" (means of the runs)", "benchmark",
		"under Capacity: job", "map task", "reduce task")
	for _, c := range ecsContenders[1:] {
		table.Heads = append(table.Heads, c.Label+": job", "map task", "reduce task")
	}
	for _, row := range ecsRows() {
		cells := []string{row}
		for _, number := range []func(*ecsTrial) float64{completes, mapTask, reduceTask} {
			cells = append(cells, decimals(t.on(at, row, ecsCapacity.Label, number), 0)+" s")
		}
		for _, c := range ecsContenders[1:] {
			for _, number := range []func(*ecsTrial) float64{completes, mapTask, reduceTask} {
				cells = append(cells, decimals(t.on(at, row, c.Label, number)/t.on(at, row, ecsCapacity.Label, number), 2))
			}
		}
		table.add(cells...)
	}
	return table
}

func ecsData(t ecsTrials) Table {
	data := newTable("trials", "cluster", "benchmark", "scheduler", "run", "completion_s", "map_s", "reduce_s",
		"containers", "cpu", "memory", "fa", "oa", "stops")
	for i := range t {
		for row, name := range ecsRows() {
			for k, c := range ecsContenders {
				for run, one := range t[i][row][k] {
					data.put(ecsClusters[i].name, name, c.Label, run, one.Completion, one.Map, one.Reduce, one.Containers, one.CPU,
						one.Memory, one.Idle, one.Over, one.Stops)
				}
			}
		}
	}
	return data
}

// parallelism draws how many containers of wordcount run in the first run on the first cluster.
func parallelism(t ecsTrials) *chart.Plot {
	p := &chart.Plot{Title: "Containers of a job of wordcount", Subtitle: "simulated, " + ecsClusters[0].name,
		X: "time, s", Y: "containers"}
	for _, c := range []contender{ecsCapacity, ecsOwn} {
		s := chart.Series{Name: c.Label, Step: true}
		for step, n := range t[0][0][place(c.Label, ecsContenders)][0].Running {
			s.X, s.Y = append(s.X, float64(step*runningStep)), append(s.Y, float64(n))
		}
		p.Series = append(p.Series, s)
	}
	return p
}

// gained is a gain of the paper's and ours.
type gained struct{ paper, ours float64 }

// close judges gains by the paper's. The claim holds, or holds in part, if each of them does.
func (c Claim) close(ours string, all ...gained) Claim {
	whole, half := true, true
	for _, g := range all {
		whole = whole && within(g.ours, g.paper/1.5, g.paper*1.5)
		half = half && within(g.ours, g.paper/3, g.paper*3)
	}
	c.Criterion = "two thirds to one and a half times the paper's; in part: a third to three times"
	return c.judge(ours, whole, half)
}

// points prints a difference of shares.
func points(share float64) string { return decimals(100*share, 1) + " points" }

func ecsFig8Claims(t ecsTrials) []Claim {
	const fig = "ecs/fig8-9"
	// gain is by how many points a share is larger under ECS, mean over the benchmarks, each alone.
	gain := func(over string, number func(*ecsTrial) float64, of ...string) float64 {
		all := 0.0
		for _, b := range of {
			all += t.of(b, ecsOwn.Label, number) - t.of(b, over, number)
		}
		return all / float64(len(of))
	}
	alone := ecsRows()[:len(ecsBenchmarks)]
	cpu := func(over string, of ...string) string {
		ratio := 0.0
		for _, b := range of {
			ratio += t.of(b, ecsOwn.Label, cpuUsed) / t.of(b, over, cpuUsed) / float64(len(of))
		}
		return fmt.Sprintf("%s, %s of the use", points(gain(over, cpuUsed, of...)), percent(ratio-1))
	}
	kmeans, bayes := gain("Capacity", cpuUsed, "k-means"), gain("Capacity", cpuUsed, "bayes")
	better := 0
	for _, b := range alone {
		if t.of(b, ecsPRISM.Label, cpuUsed) < t.of(b, ecsOwn.Label, cpuUsed) {
			better++
		}
	}
	parallel := t.of("wordcount", ecsOwn.Label, containers) / t.of("wordcount", ecsCapacity.Label, containers)
	return append([]Claim{
		stated(fig, "cpu").close(cpu("Capacity", alone...), gained{0.18, gain("Capacity", cpuUsed, alone...)}),
		stated(fig, "memory").close(points(gain("Capacity", memoryUsed, alone...)),
			gained{0.04, gain("Capacity", memoryUsed, alone...)}),
		stated(fig, "cpu-prism").close(cpu("PRISM", alone...), gained{0.12, gain("PRISM", cpuUsed, alone...)}),
		stated(fig, "memory-prism").close(points(gain("PRISM", memoryUsed, alone...)),
			gained{0.03, gain("PRISM", memoryUsed, alone...)}),
		stated(fig, "marginal").judge(fmt.Sprintf("k-means %s, bayes %s", points(kmeans), points(bayes)),
			max(kmeans, bayes) <= 0.05, min(kmeans, bayes) <= 0.05),
		stated(fig, "io").close(cpu("Capacity", "wordcount", "inverted-index"),
			gained{0.25, gain("Capacity", cpuUsed, "wordcount", "inverted-index")}),
		stated(fig, "prism-less").judge(fmt.Sprintf("of %d of %d benchmarks", better, len(alone)), better == len(alone),
			2*better > len(alone)),
		stated(fig, "parallelism").close(decimals(parallel, 2)+"x", gained{0.5, parallel - 1}),
	}, ecsFig9Claims(t)...)
}

func ecsFig9Claims(t ecsTrials) []Claim {
	const fig = "ecs/fig8-9"
	saved := func(b, over string) float64 {
		return 1 - t.of(b, ecsOwn.Label, completes)/t.of(b, over, completes)
	}
	pairs := func(over string, paper map[string]float64, of ...string) (text string, all []gained) {
		for i, b := range of {
			if i > 0 {
				text += ", "
			}
			text += b + " " + percent(saved(b, over))
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
	for i := range ecsBenchmarks {
		b := &ecsBenchmarks[i]
		if b.kind == "CPU" {
			compute = max(compute, saved(b.name, stock))
		} else {
			rest = min(rest, saved(b.name, stock))
		}
		for _, number := range []func(*ecsTrial) float64{mapTask, reduceTask} {
			longer += t.of(b.name, ecsOwn.Label, number)/t.of(b.name, stock, number) - 1
			slower += t.of(b.name, prism, number)/t.of(b.name, ecsOwn.Label, number) - 1
			tasks++
		}
	}
	longer, slower = longer/tasks, slower/tasks
	return []Claim{
		stated(fig, "jct-io").close(io, ioPairs...),
		stated(fig, "jct-prism").close(over, overPairs...),
		stated(fig, "jct-hybrid").close(hybrid, hybridPairs...),
		stated(fig, "jct-cpu").judge(fmt.Sprintf("at most %s, others at least %s", percent(compute), percent(rest)),
			compute < rest && compute <= rest/2, compute < rest),
		stated(fig, "task-time").close(percent(longer), gained{0.11, longer}),
		stated(fig, "prism-delays").judge(percent(slower)+" longer than under ECS", slower >= 0.1, slower > 0.02),
	}
}
