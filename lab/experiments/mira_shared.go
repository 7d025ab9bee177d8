package experiments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// The background of section IV.D: stages of 8192 tasks of 1 s, more of them than any run needs.
const (
	miraBackTasks  = 8192
	miraBackStages = 40
	miraWarmUp     = time.Minute // the background has all executors by then
	miraBackSpread = 0.1         // tasks take "≈ 1 second": at most this much less or more
)

// miraSize is the size of the queries: of those that were recorded, it has run times closest to the paper's.
const miraSize = "10g"

// miraTrial is what a run of all queries with the background gave.
type miraTrial struct {
	Latency    []float64 `json:"latency_s"`  // by query
	Whole      float64   `json:"whole_s"`    // all of them
	Throughput float64   `json:"throughput"` // tasks of the background per second
	miraEfficiency
}

// together has the background, and queries in the given order, each submitted at the end of the one before.
func (s *miraSystem) together(queries []workload.Job, order []int, r *rand.Rand) *workload.Workload {
	lasts := make([]time.Duration, miraBackTasks)
	for i := range lasts {
		lasts[i] = time.Duration((1 + miraBackSpread*(2*r.Float64()-1)) * float64(time.Second)).Round(time.Millisecond)
	}
	back, truth := make([]cluster.Stage, miraBackStages), make([]workload.StageTruth, miraBackStages)
	for i := range back {
		truth[i].Duration = workload.ForEach(lasts)
		back[i] = cluster.Stage{Name: fmt.Sprintf("loop-%d", i), Tasks: miraBackTasks, Duration: time.Second}
		if i > 0 {
			back[i].Parents = []int{i - 1}
		}
	}
	w := &workload.Workload{Jobs: []workload.Job{miraJob(1, "background", -1, time.Millisecond, back, truth)}}
	for i, q := range order {
		j := miraJob(i+2, queries[q].Name, i, s.driver, queries[q].Stages, queries[q].Truth)
		if i == 0 {
			j.After, j.Submitted = -1, timeline.Time(miraWarmUp)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// share runs all queries beside the background.
func (s *miraSystem) share(queries []workload.Job, seed uint64, keep bool) (t miraTrial, rows []miraRow, err error) {
	r := rand.New(rand.NewPCG(seed, 0x315a))
	order := r.Perm(len(queries))
	w := s.together(queries, order, r)
	m := &miraMeter{fair: miraExecutors / 2, from: timeline.Time(miraWarmUp), last: cluster.JobID(len(queries) + 1), keep: keep}
	result, err := s.run(w, m)
	if err != nil {
		return t, nil, err
	}
	t = miraTrial{Latency: make([]float64, len(queries)), miraEfficiency: m.miraEfficiency}
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
		if task.ID.Job == miraBackground && task.Finished > m.from && task.Finished <= end {
			t.Throughput += 1 / t.Whole
		}
	}
	return t, m.rows, nil
}

// miraContest are the trials of every system, by system and run.
func miraContest(l *lab, part string, systems []miraSystem, queries []workload.Job) ([][]miraTrial, error) {
	return eachRun(l, part, len(systems), func(point, run int) (miraTrial, error) {
		t, _, err := systems[point].share(queries, l.seed(run), false)
		return t, err
	})
}

func miraShared(l *lab) (*Findings, error) {
	queries, err := miraQueries(l, miraSize)
	if err != nil {
		return nil, err
	}
	dags, err := miraDAGs(l)
	if err != nil {
		return nil, err
	}
	if l.quick {
		queries, dags = queries[:3], dags[:2]
	}
	systems := append(miraRivals(true), miraOwn)
	trials, err := miraContest(l, "queries", systems, queries)
	if err != nil {
		return nil, err
	}
	others, err := miraContest(l, "Alibaba's DAGs", systems, dags)
	if err != nil {
		return nil, err
	}
	pictures, err := miraExcerpts(l, systems, queries, trials)
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: []Table{miraTableOne(), miraTableTwo("Queries beside the background (Table II): means of the runs", systems, trials),
		miraTableTwo("The same with Alibaba's DAGs for queries", systems, others), miraByQuery(systems, queries, trials)},
		Pictures: pictures, Claims: miraSharedClaims(systems, trials, others)}, nil
}

// miraTableOne has the settings of Table I.
func miraTableOne() Table {
	t := newTable("Settings (Table I) of the simulated Spark and YARN, and defaults that stay", "setting", "value", "source")
	for _, row := range [][]string{
		{"minExecutors", "1", "Table I"}, {"executorIdleTimeout", "1s, and 60s", "Table I, and Spark's default"},
		{"vcores of a server", "8", "Table I"}, {"scheduler", "capacity, two queues, 50 % guaranteed and 99 % at most", "Table I, section IV.D"},
		{"total_preemption_per_round", "1.0", "Table I"}, {"max_wait_before_kill", yarnKills.String(), "Table I"}, {"monitoring_interval", yarnMonitor.String(), "Table I"},
		{"max_ignored_over_capacity", exact(yarnIgnored), "YARN's default"}, {"natural_termination_factor", exact(yarnTermination), "YARN's default"},
		{"containers granted to a server", "1 per heartbeat of " + yarnBeat.String(), "YARN 2.7's default"},
		{"heartbeats of an application", sparkFirstBeat.String() + ", doubling to " + sparkSlowestBeat.String(), "Spark's default"},
		{"sustainedSchedulerBacklogTimeout", sparkAsksEvery.String(), "Spark's default"},
		{"schedulerBacklogTimeout", "0s", "fitted: with Spark's 1s, the first executor could not be there after the measured 2.46 s on a standalone cluster"},
		{"standalone", "56 executors at most for each application", "ours: it takes nothing back"},
	} {
		t.add(row...)
	}
	return t
}

// share of increases, 0 to 1.
func (e *miraEfficiency) missed() float64 { return float64(e.Missed) / float64(e.Increases) }

// wasted is the share of the executors that was unassigned or idle.
func (t *miraTrial) wasted() float64 { return (t.Unassigned + t.Idle) / (t.Whole * miraExecutors) }

// delay is in executor-seconds for each query.
func (t *miraTrial) delay() float64 { return t.Delay / float64(len(t.Latency)) }

func miraMean(trials []miraTrial, number func(*miraTrial) float64) float64 {
	return mean(values(trials, func(t miraTrial) float64 { return number(&t) }))
}

func miraTableTwo(name string, systems []miraSystem, trials [][]miraTrial) Table {
	t := newTable(name, "system", "all queries", "median query", "assignment delay per query", "increases", "missed: none came", "not all came", "unassigned", "idle", "background tasks/s")
	for i, s := range systems {
		whole := func(ES float64, t *miraTrial) float64 { return ES / (t.Whole * miraExecutors) }
		at := func(f func(*miraTrial) float64) float64 { return miraMean(trials[i], f) }
		t.add(s.name, decimals(at(func(t *miraTrial) float64 { return t.Whole }), 0)+" s", decimals(at(func(t *miraTrial) float64 { return median(t.Latency) }), 1)+" s",
			decimals(at((*miraTrial).delay), 0)+" ES", decimals(at(func(t *miraTrial) float64 { return float64(t.Increases) }), 0),
			tenths(at(func(t *miraTrial) float64 { return t.missed() })), tenths(at(func(t *miraTrial) float64 { return float64(t.Short) / float64(t.Increases) })),
			tenths(at(func(t *miraTrial) float64 { return whole(t.Unassigned, t) })), tenths(at(func(t *miraTrial) float64 { return whole(t.Idle, t) })),
			decimals(at(func(t *miraTrial) float64 { return t.Throughput }), 0))
	}
	return t
}

// tenths prints a share in percent with one decimal.
func tenths(share float64) string { return decimals(100*share, 1) + " %" }

// miraLatencies are the mean latencies of each query over the runs.
func miraLatencies(trials []miraTrial) []float64 {
	all := make([]float64, len(trials[0].Latency))
	for _, t := range trials {
		for q, s := range t.Latency {
			all[q] += s / float64(len(trials))
		}
	}
	return all
}

// miraByQuery is Fig. 13.
func miraByQuery(systems []miraSystem, queries []workload.Job, trials [][]miraTrial) Table {
	t := newTable("Latency of each query beside the background (Fig. 13), s", "query")
	for _, s := range systems {
		t.Heads = append(t.Heads, s.name)
	}
	for q := range queries {
		row := []string{queries[q].Name}
		for i := range systems {
			row = append(row, decimals(miraLatencies(trials[i])[q], 1))
		}
		t.add(row...)
	}
	return t
}

// miraExcerpts are Fig. 14 to 16.
func miraExcerpts(l *lab, systems []miraSystem, queries []workload.Job, trials [][]miraTrial) ([]Picture, error) {
	own := miraLatencies(trials[len(systems)-1])
	speedups := &chart.Plot{Title: "Speed-up by Mira of each query beside the background", Subtitle: "simulated", X: "latency / latency under Mira", Y: "share of queries"}
	for i, s := range systems[:len(systems)-1] {
		speedups.Series = append(speedups.Series, chart.CDF("over "+s.name, ratios(miraLatencies(trials[i]), own)))
	}
	excerpt := &chart.Tracks{Title: "Executors of both applications, and what the foreground could use", Subtitle: "simulated; the first minutes of the first run", X: "time since the first query was submitted, s", To: 150}
	for _, i := range []int{0, len(systems) - 1} {
		_, rows, err := systems[i].share(queries, l.seed(0), true)
		if err != nil {
			return nil, err
		}
		excerpt.Rows = append(excerpt.Rows, miraTrack(systems[i].name, rows, miraWarmUp, excerpt.To))
	}
	return []Picture{{"speedup", "Speed-up of queries beside the background (Fig. 14; simulated)", speedups},
		{"sharing", "Executors over time on Spark+YARN and Mira (Fig. 15 and 16; simulated)", excerpt}}, nil
}

// miraTrack draws who has the executors, from a time on.
func miraTrack(name string, rows []miraRow, from time.Duration, lasts float64) chart.Track {
	t := chart.Track{Name: name, Top: miraExecutors, High: 150}
	front, back, none := chart.Area{Name: "foreground", Color: 1}, chart.Area{Name: "background", Color: 3}, chart.Area{Name: "unassigned", Color: 2}
	load := chart.Series{Name: "the foreground could use", Step: true, Dashed: true}
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
		none.Y = append(none.Y, float64(miraExecutors-r.Usable-r.BackUsable))
		load.X, load.Y = append(load.X, max(0, at)), append(load.Y, float64(min(r.Load, miraExecutors)))
	}
	t.Areas, t.Lines = []chart.Area{front, back, none}, []chart.Series{load}
	return t
}

// miraBest is the smallest and the name of the system that has it, of numbers by system, the last of which is Mira.
func miraBest(systems []miraSystem, numbers []float64) (best float64, name string) {
	best = math.Inf(1)
	for i, v := range numbers[:len(systems)-1] {
		if v < best {
			best, name = v, systems[i].name
		}
	}
	return best, name
}

// miraSharedClaims judges the claims of section IV.D: against Spark+YARN with the paper's settings, and against the best baseline.
func miraSharedClaims(systems []miraSystem, trials, others [][]miraTrial) []Claim {
	const experiment = "mira/fig13-16"
	last := len(systems) - 1
	of := func(trials [][]miraTrial, number func(*miraTrial) float64) (all []float64) {
		for i := range systems {
			all = append(all, miraMean(trials[i], number))
		}
		return all
	}
	own := miraLatencies(trials[last])
	speedups := func(i int) []float64 { return ratios(miraLatencies(trials[i]), own) }
	medians := make([]float64, last+1)
	for i := range medians {
		medians[i] = median(speedups(i))
	}
	best, rival := miraBest(systems, medians)
	delays, missed, wasted := of(trials, (*miraTrial).delay), of(trials, func(t *miraTrial) float64 { return t.missed() }), of(trials, (*miraTrial).wasted)
	wholes, rates := of(trials, func(t *miraTrial) float64 { return t.Whole }), of(trials, func(t *miraTrial) float64 { return t.Throughput })
	against := func(numbers []float64, print func(float64) string) string {
		b, name := miraBest(systems, numbers)
		return fmt.Sprintf("%s with Mira, %s with Spark+YARN as the paper sets it; best baseline: %s, %s", print(numbers[last]), print(numbers[0]), print(b), name)
	}
	seconds := func(v float64) string { return decimals(v, 0) + " s" }
	es := func(v float64) string { return decimals(v, 0) + " ES" }
	below := func(id string, numbers []float64, print func(float64) string, factor, limit float64) Claim {
		b, _ := miraBest(systems, numbers)
		return stated(experiment, id).judge(against(numbers, print), b/numbers[last] >= factor && numbers[last] <= limit, b > numbers[last])
	}
	delayed := of(others, (*miraTrial).delay)
	lasted := pooled(trials[last], func(t miraTrial) []float64 { return t.Lasted })
	return []Claim{
		stated(experiment, "half").judge(fmt.Sprintf("%s× against Spark+YARN as the paper sets it; best baseline: %s×, %s", decimals(medians[0], 1), decimals(best, 1), rival), best >= 2.4, best > 1),
		stated(experiment, "most").judge(fmt.Sprintf("%s× at most against Spark+YARN as the paper sets it", decimals(slices.Max(speedups(0)), 1)), within(slices.Max(speedups(0)), 3.8, math.Inf(1)), slices.Max(speedups(0)) > 2),
		below("whole", wholes, seconds, 267.0/148, math.Inf(1)),
		stated(experiment, "throughput").judge(fmt.Sprintf("%s tasks/s with Mira, %s with Spark+YARN", decimals(rates[last], 1), decimals(rates[0], 1)), rates[last] >= rates[0]*91/87, rates[last] >= 0.95*rates[0]),
		below("delay", delays, es, 914.0/131, math.Inf(1)),
		stated(experiment, "missed").because(decimals(1000*quantile(lasted, 0.5), 0), decimals(1000*quantile(lasted, 1), 0)).
			judge(against(missed, tenths), missed[last] <= 0.009 && missed[last] < missed[0], missed[last] < missed[0]/2),
		below("wasted", wasted, tenths, 11.1/2.9, 0.029),
		stated(experiment, "alibaba").judge(against(delayed, es), delayed[0]/delayed[last] >= 914.0/131, delayed[0] > delayed[last]),
	}
}
