package mira

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// rounds is how often all queries run, one after the other, on executors that stay warm.
const rounds = 5

// miraTimes are how long queries took, with their drivers, and what executors did meanwhile, in executor-seconds.
type miraTimes struct {
	Seconds []float64 `json:"seconds"`
	Held    float64   `json:"held_es"`  // executors that hold memory
	Spare   float64   `json:"spare_es"` // those that hold it and run no task
	Begun   int       `json:"begun"`    // executors that were started
	// Contends is the time in which several stages of a query had more tasks together than there are executors, in
	// seconds.
	Contends float64 `json:"contends_s"`
	// Tasks are how many tasks there were, by what their executors had run, and Longer is for how many seconds longer
	// they ran than on executors that are warm for their stage.
	Tasks, Longer [workload.Fresh + 1]float64
}

// add adds what executors did in another run.
func (t *miraTimes) add(more miraTimes) {
	t.Seconds = append(t.Seconds, more.Seconds...)
	t.Held, t.Spare, t.Begun, t.Contends = t.Held+more.Held, t.Spare+more.Spare, t.Begun+more.Begun,
		t.Contends+more.Contends
	for w := range t.Tasks {
		t.Tasks[w], t.Longer[w] = t.Tasks[w]+more.Tasks[w], t.Longer[w]+more.Longer[w]
	}
}

// sequence runs queries one after the other without a background.
func (s *system) sequence(queries []workload.Job, keep bool) (t miraTimes, rows []miraRow, err error) {
	w := &workload.Workload{}
	for i := range queries {
		j := job(i+2, queries[i].Name, i-1, s.driver, queries[i].Stages, queries[i].Truth)
		j.App = queries[i].App
		w.Jobs = append(w.Jobs, j)
	}
	m := &meter{fair: executors, last: cluster.JobID(len(queries) + 1), keep: keep}
	r, err := s.run(w, m)
	if err != nil {
		return t, nil, err
	}
	t.Held, t.Spare, t.Begun, t.Contends = m.Held, m.Spare, m.Begun, m.Contends
	for _, j := range r.Jobs {
		if !j.Done {
			return t, nil, fmt.Errorf("%s: %s did not end: %s", s.name, j.Name, j.Stuck)
		}
		t.Seconds = append(t.Seconds, j.Runtime().Seconds())
	}
	for _, task := range r.Tasks {
		j := &w.Jobs[task.ID.Job-2]
		if int(task.ID.Stage) >= len(j.Truth) || task.ID.Stage == 0 { // the driver
			continue
		}
		truth := &j.Truth[task.ID.Stage]
		warm, _ := truth.Duration.Of(int(task.ID.Index))
		t.Tasks[task.Warmth]++
		t.Longer[task.Warmth] += (truth.DurationIn(task.Warmth, int(task.ID.Index), warm) - warm).Seconds()
	}
	return t, m.rows, nil
}

// cold runs each query on executors that have run nothing.
func (s *system) cold(queries []workload.Job) (t miraTimes, err error) {
	alone := s.newly()
	for i := range queries {
		one, _, err := alone.sequence(queries[i:i+1], false)
		if err != nil {
			return t, err
		}
		t.add(one)
	}
	return t, nil
}

// newly is s for the first application of new executors. On Mira the driver waits for one of them too, which is part
// of its time.
func (s *system) newly() system {
	first := *s
	if s.spark == nil {
		first.driver -= cold
	}
	return first
}

// warm runs all queries again and again, and returns the means: the first round is the only one in which executors
// are new.
func (s *system) warm(queries []workload.Job) (t miraTimes, err error) {
	t, _, err = s.sequence(slices.Concat(slices.Repeat([][]workload.Job{queries}, rounds)...), false)
	if err != nil {
		return t, err
	}
	means := make([]float64, len(queries))
	for i, v := range t.Seconds {
		means[i%len(queries)] += v / rounds
	}
	t.Seconds, t.Held, t.Spare, t.Contends = means, t.Held/rounds, t.Spare/rounds, t.Contends/rounds
	for w := range t.Tasks {
		t.Tasks[w], t.Longer[w] = t.Tasks[w]/rounds, t.Longer[w]/rounds
	}
	return t, nil
}

// known is warm where an executor that has run a stage of a query is warm for it in later rounds too.
func (s *system) known(queries []workload.Job) (miraTimes, error) {
	named := slices.Clone(queries)
	for i := range named {
		named[i].App = named[i].Name
	}
	return s.warm(named)
}

// miraCase is a way to run the queries alone.
type miraCase struct {
	name string
	run  func([]workload.Job) (miraTimes, error)
}

// aloneCases are the baselines in the order of rivals, and then Mira on new executors, on warm ones, on those
// that have run the same queries, and on warm ones under a policy that starts one stage after the other.
func aloneCases() (all []miraCase) {
	for _, s := range rivals(false) {
		all = append(all, miraCase{s.name, s.cold})
	}
	return append(all, miraCase{"Mira, cold", own.cold}, miraCase{"Mira, warm", own.warm},
		miraCase{"Mira, warm, known queries", own.known}, miraCase{backToBack.name + ", warm", backToBack.warm})
}

func alone(l *lab.Lab) (*lab.Findings, error) {
	queries, err := queries(l, size)
	if err != nil {
		return nil, err
	}
	if l.Quick {
		queries = queries[:3]
	}
	cases := aloneCases()
	ran, times := make([]miraTimes, len(cases)), make([][]float64, len(cases))
	err = lab.Each(l, "queries", len(cases), func(i int) (miraTimes, error) { return cases[i].run(queries) },
		func(i int, t miraTimes) { ran[i], times[i] = t, t.Seconds })
	if err != nil {
		return nil, err
	}
	sizes, err := sizes(l)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range cases {
		names = append(names, c.name)
	}
	table := byQuery("Run time of each query alone (Fig. 9), s", names, queries, times)
	plot := &chart.Plot{Title: "Speed-up by Mira of each query alone", Subtitle: "simulated",
		X: "run time on Spark+YARN / run time on Mira", Y: "share of queries"}
	for _, c := range speedups(times) {
		plot.Series = append(plot.Series, chart.CDF(c.name, c.of))
	}
	pools, err := pools(l, queries)
	if err != nil {
		return nil, err
	}
	query, lives, err := figureTwelve(l)
	if err != nil {
		return nil, err
	}
	bars := bars("Run time of each query alone", "run time, s", queries, []string{names[1], names[4], names[5]},
		[][]float64{times[1], times[4], times[5]})
	return &lab.Findings{Tables: []lab.Table{figureEleven(times), table, sizes, lives.table(), miraMemory(cases, ran),
		warmUps(queries), warmth(cases, ran), pools.table()}, Claims: aloneClaims(ran, lives, pools),
		Pictures: []lab.Picture{{Name: "queries", Caption: "Run time of each query alone (Fig. 9; simulated)", Picture: bars},
			{Name: "speedup", Caption: "Speed-up of queries alone, the four cases (Fig. 11; simulated)", Picture: plot},
			{Name: "query7", Caption: "Query 7 over time (Fig. 12; simulated)", Picture: query}}}, nil
}

// speedup is one of the four cases of Fig. 11: a baseline, and what Mira gains over it for each query.
type speedup struct {
	name string
	of   []float64
}

// speedups are the cases of Fig. 11, from times by aloneCases.
func speedups(times [][]float64) []speedup {
	cold, warm := times[4], times[5]
	return []speedup{{"60 s idle, cold", lab.Ratios(times[1], cold)}, {"1 s idle, cold", lab.Ratios(times[0], cold)},
		{"60 s idle, warm", lab.Ratios(times[1], warm)}, {"1 s idle, warm", lab.Ratios(times[0], warm)}}
}

// figureEleven has quantiles of all speed-ups, over the standalone manager too.
func figureEleven(times [][]float64) lab.Table {
	t := lab.NewTable("Speed-up of the queries by Mira (Fig. 11)", "over", "Mira on", "a quarter at least", "half",
		"three quarters", "all")
	for k, on := range []string{"new executors", "warm executors", "warm executors that have run the same queries"} {
		for i, s := range rivals(false) {
			v := lab.Ratios(times[i], times[4+k])
			row := []string{s.name, on}
			// a share of the queries is at least as fast as the quantile of the rest
			for _, share := range []float64{0.75, 0.5, 0.25} {
				row = append(row, lab.Decimals(lab.Quantile(v, share), 2)+"×")
			}
			t.Add(append(row, lab.Decimals(slices.Min(v), 2)+"×")...)
		}
	}
	return t
}

// sizes is the median speed-up by size of the data.
func sizes(l *lab.Lab) (lab.Table, error) {
	t := lab.NewTable("Median speed-up over Spark+YARN with 1 s, by size of the data", "size",
		"median run time on Spark+YARN", "Mira, cold", "Mira, warm")
	sizes := []string{"2g", "10g", "50g"}
	if l.Quick {
		sizes = sizes[:1]
	}
	cases := aloneCases()
	cases = []miraCase{cases[0], cases[4], cases[5]}
	times := make([][]float64, len(sizes)*len(cases))
	err := lab.Each(l, "sizes", len(times), func(i int) (miraTimes, error) {
		queries, err := queries(l, sizes[i/len(cases)])
		if err != nil {
			return miraTimes{}, err
		}
		if l.Quick {
			queries = queries[:2]
		}
		return cases[i%len(cases)].run(queries)
	}, func(i int, t miraTimes) { times[i] = t.Seconds })
	if err != nil {
		return t, err
	}
	for i, size := range sizes {
		of := times[i*len(cases):]
		t.Add(size, lab.Decimals(lab.Median(of[0]), 1)+" s", lab.Decimals(lab.Median(lab.Ratios(of[0], of[1])), 2)+"×",
			lab.Decimals(lab.Median(lab.Ratios(of[0], of[2])), 2)+"×")
	}
	return t, nil
}

// miraMemory is what the executors of the cases hold.
func miraMemory(cases []miraCase, ran []miraTimes) lab.Table {
	t := lab.NewTable("Memory that executors hold, "+lab.Decimals(heap, 0)+" GiB each (Table I), in a run of all queries",
		"system", "held", "without a task", "share without a task", "executors started")
	for i, c := range cases {
		begun := fmt.Sprint(ran[i].Begun)
		if i >= len(rivals(false)) {
			begun = "the pool has " + fmt.Sprint(executors)
		}
		t.Add(c.name, lab.Decimals(gibHours(ran[i].Held), 0)+" GiB-hours", lab.Decimals(gibHours(ran[i].Spare),
			0)+" GiB-hours",
			lab.Percent(ran[i].Spare/ran[i].Held), begun)
	}
	return t
}

// warmth is how warm the executors of the cases were, and what that cost.
func warmth(cases []miraCase, ran []miraTimes) lab.Table {
	t := lab.NewTable("Tasks by what their executor has run, and executor-seconds that they take longer for it than "+
		"later tasks, in a run of all queries", "system", "first of the executor", "first of the stage", "later",
		"longer: first of the executor", "first of the stage")
	for i, c := range cases {
		of := func(w workload.Warmth) string { return lab.Decimals(ran[i].Tasks[w], 0) }
		longer := func(w workload.Warmth) string { return lab.Decimals(ran[i].Longer[w], 0) + " ES" }
		t.Add(c.name, of(workload.Fresh), of(workload.First), of(workload.Warm), longer(workload.Fresh),
			longer(workload.First))
	}
	return t
}

// warmUps is what the queries' tasks take by what their executor has run.
func warmUps(queries []workload.Job) lab.Table {
	t := lab.NewTable("Recorded: how long tasks take by what their executor has run, means of the stages", "tasks",
		"first of the executor", "first of the stage", "later", "stages in which that order holds")
	var fresh, first, rest []float64
	ordered := 0
	seconds := func(all []time.Duration) float64 {
		return lab.Mean(lab.Values(all, func(d time.Duration) float64 { return d.Seconds() }))
	}
	tasks := 0
	for i := range queries {
		for k := range queries[i].Stages {
			truth, n := &queries[i].Truth[k], queries[i].Stages[k].Tasks
			a, b, c := seconds(truth.Fresh), seconds(truth.First), seconds(truth.Duration.Values())
			fresh, first, rest, tasks = append(fresh, a), append(first, b), append(rest, c), tasks+n
			if a >= b && b >= c {
				ordered++
			}
		}
	}
	t.Add(fmt.Sprint(tasks), lab.Decimals(lab.Mean(fresh), 2)+" s", lab.Decimals(lab.Mean(first), 2)+" s",
		lab.Decimals(lab.Mean(rest), 2)+" s",
		fmt.Sprintf("%d of %d", ordered, len(rest)))
	return t
}

// miraLives are how query 7 got its executors (Fig. 12): on YARN, on new executors of Mira, and on warm ones.
type miraLives struct {
	yarn, cold, warm life
	tasks, stages    int
}

// life is that of one system, in seconds; ready is when its tasks are.
type life struct {
	name            string
	ready           float64
	first, all, lag float64 // since ready: the first executor, the most of them, requests for all that it could use
	met             float64 // since ready: executors for all that it can use; NaN if they never came
	work            float64 // executor-seconds of its tasks
}

func lifeOf(name string, rows []miraRow) (f life) {
	f = life{name: name, ready: -1, first: -1, lag: -1, met: math.NaN()}
	most := 0
	for i, r := range rows {
		at := time.Duration(r.At).Seconds()
		if f.ready < 0 && r.Load > 0 {
			f.ready = at
		}
		if f.ready < 0 {
			continue
		}
		if f.first < 0 && r.Usable > 0 {
			f.first = at - f.ready
		}
		if f.lag < 0 && r.Asked >= min(r.Load, executors) {
			f.lag = at - f.ready
		}
		if math.IsNaN(f.met) && r.Usable >= min(r.Load, executors) {
			f.met = at - f.ready
		}
		if r.Usable > most {
			most, f.all = r.Usable, at-f.ready
		}
		if i+1 < len(rows) {
			f.work += float64(r.Busy) * rows[i+1].At.Sub(r.At).Seconds()
		}
	}
	return f
}

func (l miraLives) table() lab.Table {
	t := lab.NewTable("Query 7 (Fig. 12): seconds since its tasks are ready", "system", "first executor",
		"as many as it can use", "the most executors", "requests for all that it can use", "executor-seconds of its tasks")
	for _, f := range []life{l.yarn, l.cold, l.warm} {
		t.Add(f.name, lab.Decimals(f.first, 2), lab.Decimals(f.met, 2), lab.Decimals(f.all, 1), lab.Decimals(f.lag, 1),
			lab.Decimals(f.work, 0))
	}
	return t
}

// pool are all queries, one after the other, on a pool of another size: with stages together, as mira has them,
// and back to back (Fig. 8).
type pool struct {
	executors       int
	together, apart miraTimes
}

// less is the share of the executor-seconds that first tasks of stages take longer, of those back to back.
func (p *pool) less() float64 {
	return p.together.Longer[workload.First] / p.apart.Longer[workload.First]
}

type poolSizes []pool

func pools(l *lab.Lab, queries []workload.Job) (all poolSizes, err error) {
	sizes := []int{8, 28, 56, executors}
	if l.Quick {
		sizes = sizes[:1]
	}
	ways := []system{own, backToBack}
	var ran []miraTimes
	err = lab.Each(l, "pools", len(sizes)*len(ways), func(i int) (miraTimes, error) {
		s := ways[i%len(ways)]
		s.executors = sizes[i/len(ways)]
		t, _, err := s.sequence(queries, false)
		return t, err
	}, func(_ int, t miraTimes) { ran = append(ran, t) })
	if err != nil {
		return nil, err
	}
	for i, n := range sizes {
		all = append(all, pool{n, ran[2*i], ran[2*i+1]})
	}
	return all, nil
}

func (p poolSizes) table() lab.Table {
	t := lab.NewTable("First tasks of stages on a pool of another size, all queries once: stages together, as Mira has "+
		"them, and back to back (Fig. 8)", "executors", "first tasks: together", "back to back",
		"they take longer: together", "back to back", "all queries: together", "back to back")
	for _, of := range p {
		row := []string{fmt.Sprint(of.executors)}
		for _, number := range []func(*miraTimes) string{
			func(t *miraTimes) string {
				return lab.Decimals(t.Tasks[workload.First], 0)
			}, func(t *miraTimes) string { return lab.Decimals(t.Longer[workload.First], 0) + " ES" },
			func(t *miraTimes) string { return lab.Decimals(lab.Mean(t.Seconds)*float64(len(t.Seconds)), 0) + " s" }} {
			row = append(row, number(&of.together), number(&of.apart))
		}
		t.Add(row...)
	}
	return t
}

// figureTwelve is query 7 on YARN, on new executors of Mira, and on warm ones.
func figureTwelve(l *lab.Lab) (*chart.Tracks, miraLives, error) {
	queries, err := queries(l, size)
	if err != nil {
		return nil, miraLives{}, err
	}
	at := slices.IndexFunc(queries, func(j workload.Job) bool { return j.Name == "q7-"+size })
	t := &chart.Tracks{Title: "Query 7 of TPC-H: executors, and how many it could use", Subtitle: "simulated",
		X: "time since its submission, s", To: 30}
	all, err := onThree(t, queries[at])
	if err != nil {
		return nil, miraLives{}, err
	}
	life := func(i int) life { return lifeOf(t.Rows[i].Name, all[i]) }
	return t, miraLives{life(0), life(1), life(2), queries[at].Tasks(), len(queries[at].Stages)}, nil
}

// aloneClaims judges the claims about Fig. 9, 11 and 12. The verdict is against the best baseline with the idle
// time-out of the claim.
func aloneClaims(ran []miraTimes, lives miraLives, pools poolSizes) (claims []lab.Claim) {
	const experiment = "mira/fig9-12"
	var times [][]float64
	for _, t := range ran {
		times = append(times, t.Seconds)
	}
	for _, c := range []struct {
		id         string
		yarn, mira int // indexes of times
		paper      float64
	}{{"cold-60", 1, 4, 1.5}, {"cold-1", 0, 4, 2.1}, {"warm-60", 1, 5, 2.1}, {"warm-1", 0, 5, 3}} {
		yarn, alone := lab.Median(lab.Ratios(times[c.yarn], times[c.mira])), lab.Median(lab.Ratios(times[c.yarn+2],
			times[c.mira]))
		best := min(yarn, alone)
		ours := fmt.Sprintf("%s× over Spark+YARN, %s× over Spark standalone", lab.Decimals(yarn, 2), lab.Decimals(alone, 2))
		if c.mira == 5 {
			ours += fmt.Sprintf("; %s× and %s× if executors stay warm for queries",
				lab.Decimals(lab.Median(lab.Ratios(times[c.yarn], times[6])), 2),
				lab.Decimals(lab.Median(lab.Ratios(times[c.yarn+2], times[6])), 2))
		}
		without := func(i int) float64 { return lab.Median(times[i]) - driver.Seconds() }
		claims = append(claims, Paper.Stated(experiment, c.id).Because(lab.Decimals(without(c.yarn+2), 1),
			lab.Decimals(without(c.mira), 1)).Judge(ours, best >= c.paper, best > 1))
	}
	most := lab.Quantile(lab.Ratios(times[1], times[5]), 0.25)
	together, apart := ran[5], ran[7]
	first, alsoFirst := together.Longer[workload.First], apart.Longer[workload.First]
	after := lab.Median(apart.Seconds) / lab.Median(together.Seconds)
	yarn, cold, warm := lives.yarn, lives.cold, lives.warm
	return append(claims,
		Paper.Stated(experiment, "most").Judge(
			fmt.Sprintf("three quarters of the queries are at least %s× as fast, over Spark+YARN with 60 s",
				lab.Decimals(most, 2)), most >= 2, most > 1.2),
		Paper.Stated(experiment, "concentrates").Because(
			lab.Percent(together.Contends/(lab.Mean(together.Seconds)*float64(len(together.Seconds)))), pools[0].executors,
			lab.Percent(1-pools[0].less())).
			Judge(fmt.Sprintf("first tasks of stages take %s executor-seconds longer, and %s with stages back to back; "+
				"the median query takes %s× as long with those", lab.Decimals(first, 0), lab.Decimals(alsoFirst, 0),
				lab.Decimals(after, 2)),
				first <= 0.8*alsoFirst && after >= 1, first < alsoFirst),
		Paper.Stated(experiment, "all-there").Because(lab.Decimals(yarn.all, 1)).Judge(lab.Decimals(yarn.all, 1)+" s",
			lab.Within(yarn.all, 12, 18), yarn.all >= 6),
		Paper.Stated(experiment, "lag").Judge(fmt.Sprintf("%s s on Spark+YARN, %s s on Mira", lab.Decimals(yarn.lag, 1),
			lab.Decimals(cold.lag, 1)), yarn.lag >= 3 && cold.lag < 0.1, yarn.lag >= 1),
		Paper.Stated(experiment, "new").MadeSo(lab.Decimals(cold.met, 2)+" s", lab.Within(cold.met, 0.9, 1.3)),
		Paper.Stated(experiment, "narrow").Because(lives.tasks, lives.stages,
			lab.Decimals(float64(lives.tasks)/float64(lives.stages)/executors, 1)).
			Judge(fmt.Sprintf("%s executor-seconds on new executors, %s on warm ones", lab.Decimals(cold.work, 0),
				lab.Decimals(warm.work, 0)), warm.work <= 0.75*cold.work, warm.work < cold.work),
		Paper.Stated(experiment, "start").MadeSo(fmt.Sprintf("%s s and %s s", lab.Decimals(yarn.ready+yarn.first, 1),
			lab.Decimals(cold.ready+cold.met, 1)), lab.Within(yarn.ready+yarn.first, 9, 11) && lab.Within(cold.ready+cold.met,
			3.5, 4.5)))
}
