package mira

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// The background of section IV.D: stages of 8192 tasks of 1 s, more of them than any run needs.
const (
	backTasks  = 8192
	backStages = 40
	warmUp     = time.Minute // the background has all executors by then
	backSpread = 0.1         // tasks take "≈ 1 second": at most this much less or more
)

// size is the size of the queries: of those that were recorded, it has run times closest to the paper's.
const size = "10g"

// miraTrial is what a run of all queries with the background gave.
type miraTrial struct {
	Latency    []float64 `json:"latency_s"`  // by query
	Whole      float64   `json:"whole_s"`    // all of them
	Throughput float64   `json:"throughput"` // tasks of the background per second
	// Divided is the share of Mira's steps in which it divided the executors anew.
	Divided float64 `json:"divided"`
	efficiency
}

// together has the background, and queries in the given order, each submitted at the end of the one before.
func (s *system) together(queries []workload.Job, order []int, r *rand.Rand) *workload.Workload {
	lasts := make([]time.Duration, backTasks)
	for i := range lasts {
		lasts[i] = time.Duration((1 + backSpread*(2*r.Float64()-1)) * float64(time.Second)).Round(time.Millisecond)
	}
	back, truth := make([]cluster.Stage, backStages), make([]workload.StageTruth, backStages)
	for i := range back {
		truth[i].Duration = workload.ForEach(lasts)
		back[i] = cluster.Stage{Name: fmt.Sprintf("loop-%d", i), Tasks: backTasks, Duration: time.Second}
		if i > 0 {
			back[i].Parents = []int{i - 1}
		}
	}
	w := &workload.Workload{Jobs: []workload.Job{job(1, "background", -1, time.Millisecond, back, truth)}}
	for i, q := range order {
		j := job(i+2, queries[q].Name, i, s.driver, queries[q].Stages, queries[q].Truth)
		if i == 0 {
			j.After, j.Submitted = -1, timeline.Time(warmUp)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// share runs all queries beside the background.
func (s *system) share(queries []workload.Job, seed uint64, keep bool) (t miraTrial, rows []miraRow, err error) {
	r := rand.New(rand.NewPCG(seed, 0x315a))
	order := r.Perm(len(queries))
	w := s.together(queries, order, r)
	m := &meter{fair: executors / 2, from: timeline.Time(warmUp), last: cluster.JobID(len(queries) + 1),
		keep: keep}
	result, err := s.run(w, m)
	if err != nil {
		return t, nil, err
	}
	t = miraTrial{Latency: make([]float64, len(queries)), efficiency: m.efficiency}
	if divisions := m.Policy.Traits().Divisions; divisions != nil {
		t.Divided = float64(divisions()) / float64(result.Steps)
	}
	end := timeline.Time(0)
	for i, q := range order {
		j := &result.Jobs[i+1]
		if !j.Done {
			return t, nil, fmt.Errorf("%s: %s did not end: %s", s.name, j.Name, j.Stuck)
		}
		t.Latency[q], end = j.Runtime().Seconds(), j.Ended
	}
	t.Whole = end.Sub(m.from).Seconds()
	for _, task := range result.Tasks {
		if task.ID.Job == background && task.Finished > m.from && task.Finished <= end {
			t.Throughput += 1 / t.Whole
		}
	}
	return t, m.rows, nil
}

// contest are the trials of every system, by system and run.
func contest(l *lab.Lab, part string, systems []system, queries []workload.Job) ([][]miraTrial, error) {
	return lab.EachRun(l, part, len(systems), func(point, run int) (miraTrial, error) {
		t, _, err := systems[point].share(queries, l.RunSeed(run), false)
		return t, err
	})
}

func shared(l *lab.Lab) (*lab.Findings, error) {
	queries, err := queries(l, size)
	if err != nil {
		return nil, err
	}
	dags, err := daGs(l, drawn)
	if err != nil {
		return nil, err
	}
	if l.Quick {
		queries, dags = queries[:3], dags[:2]
	}
	systems := append(rivals(true), own)
	trials, err := contest(l, "queries", systems, queries)
	if err != nil {
		return nil, err
	}
	others, err := contest(l, "Alibaba's DAGs", systems, dags)
	if err != nil {
		return nil, err
	}
	pictures, err := excerpts(l, systems, queries, trials)
	if err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: []lab.Table{tableOne(),
		tableTwo("Queries beside the background (Table II): means of the runs", systems, trials),
		holds(systems, trials), tableTwo("The same with Alibaba's DAGs for queries", systems, others),
		fourteen(systems, trials),
		byQuery("Latency of each query beside the background (Fig. 13), s", namesOf(systems), queries,
			allLatencies(trials))},
		Pictures: pictures, Claims: sharedClaims(systems, queries, trials, others)}, nil
}

// tableOne has the settings of Table I.
func tableOne() lab.Table {
	t := lab.NewTable("Settings (Table I) of the simulated Spark and YARN, and defaults that stay", "setting", "value",
		"source")
	for _, row := range [][]string{
		{"dynamicAllocation.enabled", "true", "Table I"},
		{"shuffle.service.enabled", "true: what a stage wrote outlives its executors", "Table I"},
		{"minExecutors", "1", "Table I"}, {"executorIdleTimeout", "1s, and 60s", "Table I, and Spark's default"},
		{"vcores of a server", "8", "Table I"}, {"scheduler", "capacity, two queues, 50 % guaranteed and 99 % at most",
			"Table I, section IV.D"},
		{"total_preemption_per_round", lab.Exact(yarnTableOne.perRound), "Table I"},
		{"max_wait_before_kill", yarnTableOne.kills.String(), "Table I"},
		{"monitoring_interval", yarnTableOne.monitor.String(), "Table I"},
		{"MaxHeapSize of an executor", lab.Decimals(heap, 0) + " GiB", "Table I"},
		{"MaxHeapSize of a driver, and UseG1GC", "not simulated",
			"Table I: 12g, and on; drivers have a node of their own, and collection is in the recorded durations"},
		{"max_ignored_over_capacity", lab.Exact(yarnIgnored), "YARN's default"},
		{"natural_termination_factor", lab.Exact(yarnTermination), "YARN's default"},
		{"containers granted to a server", "1 per heartbeat of " + yarnBeat.String(), "YARN 2.7's default"},
		{"heartbeats of an application", sparkFirstBeat.String() + ", doubling to " + sparkSlowestBeat.String(),
			"Spark's default"},
		{"sustainedSchedulerBacklogTimeout", sparkAsksEvery.String(), "Spark's default"},
		{"schedulerBacklogTimeout", "0s",
			"fitted: with Spark's 1s, the first executor could not be there after the measured 2.46 s on a standalone cluster"},
		{"standalone", "56 executors at most for each application", "ours: it takes nothing back"},
	} {
		t.Add(row...)
	}
	return t
}

// share of increases, 0 to 1.
func (e *efficiency) missed() float64 { return float64(e.Missed) / float64(e.Increases) }

// wasted is the share of the executors that was unassigned or idle.
func (t *miraTrial) wasted() float64 { return (t.Unassigned + t.Idle) / (t.Whole * executors) }

// delay is in executor-seconds for each query.
func (t *miraTrial) delay() float64 { return t.Delay / float64(len(t.Latency)) }

func mean(trials []miraTrial, number func(*miraTrial) float64) float64 {
	return lab.Mean(lab.Values(trials, func(t miraTrial) float64 { return number(&t) }))
}

func tableTwo(name string, systems []system, trials [][]miraTrial) lab.Table {
	t := lab.NewTable(name, "system", "all queries", "median query", "assignment delay per query", "increases",
		"missed: none came", "not all came", "unassigned", "idle", "background tasks/s")
	for i, s := range systems {
		whole := func(ES float64, t *miraTrial) float64 { return ES / (t.Whole * executors) }
		at := func(f func(*miraTrial) float64) float64 { return mean(trials[i], f) }
		t.Add(s.name, lab.Decimals(at(func(t *miraTrial) float64 { return t.Whole }), 0)+" s",
			lab.Decimals(at(func(t *miraTrial) float64 { return lab.Median(t.Latency) }), 1)+" s",
			lab.Decimals(at((*miraTrial).delay), 0)+
				" ES", lab.Decimals(at(func(t *miraTrial) float64 { return float64(t.Increases) }), 0),
			tenths(at(func(t *miraTrial) float64 { return t.missed() })),
			tenths(at(func(t *miraTrial) float64 { return float64(t.Short) / float64(t.Increases) })),
			tenths(at(func(t *miraTrial) float64 { return whole(t.Unassigned, t) })),
			tenths(at(func(t *miraTrial) float64 { return whole(t.Idle, t) })),
			lab.Decimals(at(func(t *miraTrial) float64 { return t.Throughput }), 0))
	}
	return t
}

// tenths prints a share in percent with one decimal.
func tenths(share float64) string { return lab.Decimals(100*share, 1) + " %" }

// latencies are the mean latencies of each query over the runs.
func latencies(trials []miraTrial) []float64 {
	all := make([]float64, len(trials[0].Latency))
	for _, t := range trials {
		for q, s := range t.Latency {
			all[q] += s / float64(len(trials))
		}
	}
	return all
}

// namesOf are the names of systems.
func namesOf(systems []system) (names []string) {
	for _, s := range systems {
		names = append(names, s.name)
	}
	return names
}

// holds is what the executors of both applications hold. On Spark a container that starts holds its memory too;
// that of an application master is small, and is not counted.
func holds(systems []system, trials [][]miraTrial) lab.Table {
	t := lab.NewTable("Memory that executors hold, "+lab.Decimals(heap, 0)+" GiB each (Table I): means of the runs",
		"system", "held at a time", "without a task at a time", "share without a task", "without a task in a run",
		"executors started")
	for i, s := range systems {
		at := func(f func(*miraTrial) float64) float64 { return mean(trials[i], f) }
		begun := lab.Decimals(at(func(t *miraTrial) float64 { return float64(t.Begun) }), 0)
		if s.spark == nil {
			begun = "the pool has " + fmt.Sprint(executors)
		}
		t.Add(s.name, lab.Decimals(at(func(t *miraTrial) float64 { return t.Held / t.Whole * heap }), 0)+" GiB",
			lab.Decimals(at(func(t *miraTrial) float64 { return t.Spare / t.Whole * heap }), 0)+" GiB",
			tenths(at(func(t *miraTrial) float64 { return t.Spare / t.Held })),
			lab.Decimals(at(func(t *miraTrial) float64 { return gibHours(t.Spare) }), 1)+" GiB-hours", begun)
	}
	return t
}

// fourteen has quantiles of the speed-ups (Fig. 14), and how long executors took to come.
func fourteen(systems []system, trials [][]miraTrial) lab.Table {
	t := lab.NewTable("Speed-up of the queries by Mira beside the background (Fig. 14), and how long an executor takes "+
		"to come to the foreground", "over", "a quarter at least", "half", "three quarters", "all", "an executor comes after")
	own := latencies(trials[len(systems)-1])
	for i, s := range systems {
		v := lab.Ratios(latencies(trials[i]), own)
		row := []string{s.name}
		for _, share := range []float64{0.75, 0.5, 0.25} {
			row = append(row, lab.Decimals(lab.Quantile(v, share), 2)+"×")
		}
		t.Add(append(row, lab.Decimals(slices.Min(v), 2)+"×",
			lab.Decimals(mean(trials[i], func(t *miraTrial) float64 { return t.acquisition() }), 2)+" s")...)
	}
	return t
}

// allLatencies are the mean latencies of each query, by system.
func allLatencies(trials [][]miraTrial) (all [][]float64) {
	for _, t := range trials {
		all = append(all, latencies(t))
	}
	return all
}

// byQuery has a number of each query by system, and their means.
func byQuery(name string, systems []string, queries []workload.Job, numbers [][]float64) lab.Table {
	t := lab.NewTable(name, append([]string{"query"}, systems...)...)
	row := func(name string, number func([]float64) float64) {
		cells := []string{name}
		for _, of := range numbers {
			cells = append(cells, lab.Decimals(number(of), 1))
		}
		t.Add(cells...)
	}
	row("average", lab.Mean)
	for q := range queries {
		row(queries[q].Name, func(of []float64) float64 { return of[q] })
	}
	return t
}

// bars draws a number of each query by system, after their means.
func bars(title, y string, queries []workload.Job, systems []string, numbers [][]float64) *chart.Bars {
	b := &chart.Bars{Title: title, Subtitle: "simulated", Y: y, Groups: []string{"mean"}, Width: 960}
	order := make([]int, len(queries))
	for i := range order {
		order[i] = i
	}
	number := func(q int) (n int) {
		_, _ = fmt.Sscanf(queries[q].Name, "q%d", &n)
		return n
	}
	slices.SortFunc(order, func(x, y int) int { return number(x) - number(y) })
	for i, name := range systems {
		b.Series = append(b.Series, chart.BarSeries{Name: name, Values: []float64{lab.Mean(numbers[i])}})
	}
	for _, q := range order {
		name, _, _ := strings.Cut(queries[q].Name, "-")
		b.Groups = append(b.Groups, name)
		for i := range systems {
			b.Series[i].Values = append(b.Series[i].Values, numbers[i][q])
		}
	}
	return b
}

// excerpts are Fig. 13 to 16.
func excerpts(l *lab.Lab, systems []system, queries []workload.Job, trials [][]miraTrial) ([]lab.Picture, error) {
	last := len(systems) - 1
	all := allLatencies(trials)
	bars := bars("Latency of each query beside the background", "latency, s", queries,
		[]string{systems[0].name, systems[last].name}, [][]float64{all[0], all[last]})
	speedups := &chart.Plot{Title: "Speed-up by Mira of each query beside the background", Subtitle: "simulated",
		X: "latency / latency under Mira", Y: "share of queries"}
	for i, s := range systems[:last] {
		speedups.Series = append(speedups.Series, chart.CDF("over "+s.name, lab.Ratios(all[i], all[last])))
	}
	excerpt := &chart.Tracks{Title: "Executors of both applications, and how many the foreground could use",
		Subtitle: "simulated; the first minutes of the first run", X: "time since the first query was submitted, s", To: 120}
	for _, i := range []int{0, last} {
		_, rows, err := systems[i].share(queries, l.RunSeed(0), true)
		if err != nil {
			return nil, err
		}
		excerpt.Rows = append(excerpt.Rows, tracks(systems[i].name, rows, warmUp, excerpt.To)...)
	}
	return []lab.Picture{{Name: "queries", Caption: "Latency of each query beside the background (Fig. 13; simulated)",
		Picture: bars},
		{Name: "speedup", Caption: "Speed-up of queries beside the background (Fig. 14; simulated)", Picture: speedups},
		{Name: "sharing", Caption: "Executors over time on Spark+YARN and Mira (Fig. 15 and 16; simulated)",
			Picture: excerpt}}, nil
}

// tracks draw who has the executors, from a time on, and how many the foreground could use.
func tracks(name string, rows []miraRow, from time.Duration, lasts float64) []chart.Track {
	t, could := chart.Track{Name: name, Top: executors, High: 130},
		chart.Track{Top: executors, High: 50, Notes: []string{"could use"}}
	front, back, none := chart.Area{Name: "foreground", Color: 1}, chart.Area{Name: "background", Color: 3},
		chart.Area{Name: "unassigned", Color: 2}
	load := chart.Area{Name: "the foreground could use", Color: 4}
	for i, r := range rows {
		at := r.At.Sub(timeline.Time(from)).Seconds()
		if i+1 < len(rows) && rows[i+1].At.Sub(timeline.Time(from)).Seconds() < 0 || at > lasts {
			continue
		}
		if n := len(t.X); n > 0 && at-t.X[n-1] < 0.1 { // finer than the picture
			continue
		}
		t.X = append(t.X, max(0, at))
		front.Y, back.Y = append(front.Y, float64(r.Usable)), append(back.Y, float64(r.BackUsable))
		none.Y, load.Y = append(none.Y, float64(executors-r.Usable-r.BackUsable)),
			append(load.Y, float64(min(r.Load, executors)))
	}
	t.Areas, could.X, could.Areas = []chart.Area{front, back, none}, t.X, []chart.Area{load}
	return []chart.Track{t, could}
}

// miraBest is the smallest and the name of the system that has it, of numbers by system, the last of which is Mira.
func miraBest(systems []system, numbers []float64) (best float64, name string) {
	best = math.Inf(1)
	for i, v := range numbers[:len(systems)-1] {
		if v < best {
			best, name = v, systems[i].name
		}
	}
	return best, name
}

// sharedClaims judges the claims of section IV.D: against Spark+YARN with the paper's settings, and against the
// best baseline.
func sharedClaims(systems []system, queries []workload.Job, trials, others [][]miraTrial) []lab.Claim {
	return append(speedupClaims(systems, queries, trials), efficiencyClaims(systems, trials, others)...)
}

// means are the means of a number over the runs, by system.
func means(trials [][]miraTrial, number func(*miraTrial) float64) (all []float64) {
	for _, t := range trials {
		all = append(all, mean(t, number))
	}
	return all
}

// rate is how many tasks of the background run in a second, unassigned the share of the executors that no application
// could use, and front how many run tasks of the foreground.
func (t *miraTrial) rate() float64       { return t.Throughput }
func (t *miraTrial) unassigned() float64 { return t.Unassigned / (t.Whole * executors) }
func (t *miraTrial) front() float64      { return t.Front / t.Whole }

// speedupClaims judges the claims about Fig. 13 and 14.
func speedupClaims(systems []system, queries []workload.Job, trials [][]miraTrial) []lab.Claim {
	const experiment = "mira/fig13-16"
	last := len(systems) - 1
	all := allLatencies(trials)
	var speedups [][]float64
	for i := range systems {
		speedups = append(speedups, lab.Ratios(all[i], all[last]))
	}
	against := func(of func([]float64) float64) (yarn, best float64, rival int) {
		numbers := make([]float64, len(systems))
		for i, v := range speedups {
			numbers[i] = of(v)
		}
		best, name := miraBest(systems, numbers)
		return numbers[0], best, slices.Index(namesOf(systems), name)
	}
	half, best, rival := against(lab.Median)
	quarter, bestQuarter, _ := against(func(v []float64) float64 { return lab.Quantile(v, 0.25) })
	least, bestLeast, _ := against(slices.Min)
	most, bare := slices.Max(speedups[0]), 0.0 // the largest speed-up of what is left without drivers
	for q, v := range all[0] {
		bare = max(bare, (v-yarnDriver.Seconds())/(all[last][q]-driver.Seconds()))
	}
	shorter := stat.Correlation(ranks(lab.Values(queries, work)), ranks(speedups[0]), nil)
	rates, unassigned := means(trials, (*miraTrial).rate), means(trials, (*miraTrial).unassigned)
	times := func(v float64) string { return lab.Decimals(v, 2) + "×" }
	return []lab.Claim{
		Paper.Stated(experiment, "half").Because(lab.Percent(unassigned[rival]), lab.Decimals(rates[rival], 0),
			lab.Decimals(rates[last], 0)).
			Judge(fmt.Sprintf("%s against Spark+YARN as the paper sets it; best baseline: %s, %s", times(half), times(best),
				systems[rival].name), best >= 2.4, best > 1),
		Paper.Stated(experiment, "quarter").Because(lab.Decimals(rates[rival], 0), lab.Decimals(rates[last], 0)).
			Judge(fmt.Sprintf("three quarters at least %s against Spark+YARN as the paper sets it, %s against the best "+
				"baseline", times(quarter), times(bestQuarter)), bestQuarter >= 2, bestQuarter > 1.2),
		Paper.Stated(experiment, "every").Judge(
			fmt.Sprintf("at least %s against Spark+YARN as the paper sets it, %s against the best baseline", times(least),
				times(bestLeast)), bestLeast > 1, least > 1),
		Paper.Stated(experiment, "most").Because(lab.Decimals(driver.Seconds(), 1), lab.Decimals(bare, 1)).
			Judge(times(most)+" at most against Spark+YARN as the paper sets it", most >= 3.8, most > 2),
		Paper.Stated(experiment, "shorter").Judge(
			fmt.Sprintf("rank correlation %s of the work of a query and its speed-up over Spark+YARN", lab.Decimals(shorter, 2)),
			shorter <= -0.5, shorter < 0),
	}
}

// efficiencyClaims judges the claims about Fig. 15, 16 and Table II.
func efficiencyClaims(systems []system, trials, others [][]miraTrial) []lab.Claim {
	const experiment = "mira/fig13-16"
	last := len(systems) - 1
	wholes, rates := means(trials, func(t *miraTrial) float64 { return t.Whole }), means(trials, (*miraTrial).rate)
	delays, delayed, comes := means(trials, (*miraTrial).delay), means(others, (*miraTrial).delay),
		means(trials, func(t *miraTrial) float64 { return t.acquisition() })
	missed, wasted := means(trials, func(t *miraTrial) float64 { return t.missed() }),
		means(trials, (*miraTrial).wasted)
	fronts, unassigned := means(trials, (*miraTrial).front), means(trials, (*miraTrial).unassigned)
	against := func(numbers []float64, print func(float64) string) string {
		b, name := miraBest(systems, numbers)
		return fmt.Sprintf("%s with Mira, %s with Spark+YARN as the paper sets it; best baseline: %s, %s",
			print(numbers[last]), print(numbers[0]), print(b), name)
	}
	below := func(id string, numbers []float64, print func(float64) string, factor float64, reasons ...any) lab.Claim {
		b, _ := miraBest(systems, numbers)
		return Paper.Stated(experiment, id).Because(reasons...).Judge(against(numbers, print), b/numbers[last] >= factor,
			b > numbers[last])
	}
	seconds := func(v float64) string { return lab.Decimals(v, 0) + " s" }
	short := func(v float64) string { return lab.Decimals(v, 2) + " s" }
	es := func(v float64) string { return lab.Decimals(v, 0) + " ES" }
	gain := func(numbers []float64) string { return lab.Decimals(numbers[0]/numbers[last], 1) }
	_, name := miraBest(systems, wholes)
	rival := slices.Index(namesOf(systems), name)
	rivals, own := lab.Decimals(rates[rival], 0), lab.Decimals(rates[last], 0)
	lasted := lab.Pooled(trials[last], func(t miraTrial) []float64 { return t.Lasted })
	least, _ := miraBest(systems, wasted)
	return []lab.Claim{
		below("whole", wholes, seconds, 267.0/148, gain(wholes), lab.Percent(unassigned[rival]), rivals, own),
		Paper.Stated(experiment, "throughput").Because(lab.Decimals(fronts[last], 0), lab.Decimals(fronts[0], 0)).
			Judge(fmt.Sprintf("%s tasks/s with Mira, %s with Spark+YARN", lab.Decimals(rates[last], 1), lab.Decimals(rates[0],
				1)),
				rates[last] >= rates[0]*91/87, rates[last] >= 0.95*rates[0]),
		below("delay", delays, es, 914.0/131, gain(delays), rivals, own),
		below("acquisition", comes, short, 5.5, gain(comes)),
		Paper.Stated(experiment, "table-two").Because(lab.Decimals(1000*lab.Quantile(lasted, 0.5), 0),
			lab.Decimals(1000*lab.Quantile(lasted, 1), 0)).
			Judge("missed "+against(missed, tenths)+"; unused "+against(wasted, tenths),
				missed[last] <= 0.009 && missed[last] < missed[0] && wasted[last] <= 0.029 && least/wasted[last] >= 11.1/2.9,
				missed[last] < missed[0]/2 && wasted[last] < least),
		Paper.Stated(experiment, "alibaba").Judge(against(delayed, es), delayed[0]/delayed[last] >= 914.0/131,
			delayed[0] > delayed[last]),
	}
}

// work is how much the tasks of a query take together, as estimated, in executor-seconds.
func work(j workload.Job) (work float64) {
	for i := range j.Stages {
		work += float64(j.Stages[i].Tasks) * j.Stages[i].Duration.Seconds()
	}
	return work
}

// ranks are the places of values in ascending order; equal values share the first of theirs.
func ranks(of []float64) []float64 {
	sorted := slices.Sorted(slices.Values(of))
	return lab.Values(of, func(v float64) float64 { return float64(slices.Index(sorted, v)) })
}
