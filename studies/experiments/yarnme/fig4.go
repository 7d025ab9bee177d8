package yarnme

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// mostRuns is the largest number of concurrent runs in Figs. 4 and 5.
const mostRuns = 5

// pair is the results of YARN and YARN-ME with one workload.
type pair struct {
	YARN    phases `json:"yarn"`
	Elastic phases `json:"elastic"`
}

// runPair simulates the runs under both schedulers.
func (a assumed) runPair(elasticOne lab.Contender, starts []start, seed uint64) (p pair, err error) {
	if p.YARN, _, err = a.runPhases(yarn, starts, seed); err != nil {
		return p, err
	}
	p.Elastic, _, err = a.runPhases(elasticOne, starts, seed)
	return p, err
}

// metric is a metric of section 5.1.
type metric struct {
	name string
	of   func(phases) float64
}

var metrics = []metric{
	{"runtime", func(p phases) float64 { return p.Runtime }},
	{"map phase", func(p phases) float64 { return p.Map }},
	{"reduce phase", func(p phases) float64 { return p.Reduce }},
	{"makespan", func(p phases) float64 { return p.Makespan }},
}

// gains returns the relative decrease of a metric, per iteration.
func gains(pairs []pair, m metric) []float64 {
	return lab.Values(pairs, func(p pair) float64 { return lab.Gain(m.of(p.YARN), m.of(p.Elastic)) })
}

// concurrent simulates 1 to 5 runs of an application.
func concurrent(l *lab.Lab, app application, data *lab.Table) (perRuns [][]pair, err error) {
	most := mostRuns
	if l.Quick {
		most = 1
	}
	perRuns = make([][]pair, most)
	err = lab.Each(l, app.name, most*l.Runs, func(i int) (pair, error) {
		return assumedDefault.runPair(yarnMESum, homogeneous(app, i/l.Runs+1), l.RunSeed(i%l.Runs))
	}, func(i int, p pair) {
		perRuns[i/l.Runs] = append(perRuns[i/l.Runs], p)
		row := []string{app.name, strconv.Itoa(i/l.Runs + 1), strconv.Itoa(i % l.Runs)}
		for _, m := range metrics {
			row = append(row, lab.Exact(m.of(p.YARN)), lab.Exact(m.of(p.Elastic)))
		}
		data.Add(append(row, lab.Exact(p.YARN.Memory), lab.Exact(p.Elastic.Memory), lab.Exact(p.Elastic.Elastic))...)
	})
	return perRuns, err
}

func concurrentData() lab.Table {
	heads := []string{"application", "concurrent_runs", "iteration"}
	for _, m := range []string{"runtime", "map", "reduce", "makespan"} {
		heads = append(heads, "yarn_"+m+"_s", "yarn_me_"+m+"_s")
	}
	return lab.NewTable("iterations", append(heads, "yarn_memory", "yarn_me_memory", "yarn_me_elastic")...)
}

// concurrentFindings shows the gains over the number of runs.
func concurrentFindings(app application, perRuns [][]pair) (lab.Table, lab.Picture) {
	table := lab.NewTable("Share by which YARN-ME is faster than YARN, "+app.name+" (average of the iterations)",
		"runs", "runtime", "map phase", "reduce phase", "makespan", "memory in use", "under-sized")
	bars := &chart.Bars{Title: app.name + ": YARN-ME over YARN",
		Subtitle: "simulated; average, minimum and maximum of the iterations", Y: "improvement, %"}
	for _, m := range metrics {
		s := chart.BarSeries{Name: m.name}
		for _, pairs := range perRuns {
			g := gains(pairs, m)
			s.Values, s.Low, s.High = append(s.Values, 100*lab.Mean(g)), append(s.Low, 100*slices.Min(g)),
				append(s.High, 100*slices.Max(g))
		}
		bars.Series = append(bars.Series, s)
	}
	for i, pairs := range perRuns {
		bars.Groups = append(bars.Groups, strconv.Itoa(i+1)+" runs")
		row := []string{strconv.Itoa(i + 1)}
		for _, m := range metrics {
			row = append(row, lab.Percent(lab.Mean(gains(pairs, m))))
		}
		before, after := meanMemory(pairs)
		elastic := 0.0
		for _, p := range pairs {
			elastic += p.Elastic.Elastic / float64(len(pairs))
		}
		table.Add(append(row, lab.Percent(before)+" → "+lab.Percent(after), lab.Percent(elastic))...)
	}
	return table, lab.Picture{Name: lab.FileName(app.name), Caption: "Improvement of YARN-ME over YARN for " + app.name +
		", over the number of concurrent runs (simulated)", Picture: bars}
}

// meanMemory returns the share of memory in use under YARN and under YARN-ME.
func meanMemory(pairs []pair) (before, after float64) {
	for _, p := range pairs {
		before += p.YARN.Memory / float64(len(pairs))
		after += p.Elastic.Memory / float64(len(pairs))
	}
	return before, after
}

func fig4(l *lab.Lab) (*lab.Findings, error) {
	data := concurrentData()
	perRuns, err := concurrent(l, pagerank, &data)
	if err != nil {
		return nil, err
	}
	table, bars := concurrentFindings(pagerank, perRuns)
	f := &lab.Findings{Tables: []lab.Table{table}, Pictures: []lab.Picture{bars}, Claims: fig4Claims(perRuns)}
	most := homogeneous(pagerank, len(perRuns))
	if err := fig4Timelines(l, f, most); err != nil {
		return nil, err
	}
	sensitivity, err := sensitivityTable(l, most)
	if err != nil {
		return nil, err
	}
	f.Tables, f.Data = append(f.Tables, sensitivity), append(f.Data, data)
	return f, nil
}

// fig4Timelines adds Figs. 4a and 4b: memory in use, and elastic tasks, over time.
func fig4Timelines(l *lab.Lab, f *lab.Findings, starts []start) error {
	memory := &chart.Plot{Title: "Memory in use, " + strconv.Itoa(len(starts)) + " Pagerank runs",
		Subtitle: "simulated; granted memory", X: "time, s", Y: "share of memory, %", YMin: new(float64)}
	running := &chart.Plot{Title: "Under-sized tasks under YARN-ME", Subtitle: "simulated", X: "time, s",
		Y: "running tasks", YMin: new(float64)}
	data := lab.NewTable("timeline", "scheduler", "time_s", "memory", "under_sized_tasks")
	for _, c := range []lab.Contender{yarn, yarnMESum} {
		_, r, err := assumedDefault.runPhases(c, starts, l.RunSeed(0))
		if err != nil {
			return err
		}
		used, elastic := chart.Series{Name: policyName(c), Step: true}, chart.Series{Step: true}
		for _, p := range over10s(r, 50*10*resource.GB) {
			used.X, used.Y = append(used.X, p.at), append(used.Y, 100*p.memory)
			elastic.X, elastic.Y = append(elastic.X, p.at), append(elastic.Y, p.elastic)
			data.Put(policyName(c), p.at, p.memory, p.elastic)
		}
		memory.Series = append(memory.Series, used)
		if c.Policy == "yarn-me" {
			running.Series = append(running.Series, elastic)
		}
	}
	f.Data = append(f.Data, data)
	f.Pictures = append(f.Pictures, lab.Picture{Name: "memory", Caption: "Memory in use over time (simulated; Fig. 4a)",
		Picture: memory},
		lab.Picture{Name: "elastic", Caption: "Under-sized tasks over time (simulated; Fig. 4b)", Picture: running})
	return nil
}

// moment is an average over a short time.
type moment struct{ at, memory, elastic float64 }

// over10s returns averages over 10 s each: granted memory as a share of all, and how many under-sized tasks ran.
func over10s(r *sim.Result, all resource.Amount) []moment {
	const length = 10 * time.Second
	var end timeline.Time
	for _, t := range r.Tasks {
		end = max(end, t.Finished)
	}
	moments := make([]moment, int(time.Duration(end)/length)+1)
	for i := range moments {
		moments[i].at = (time.Duration(i) * length).Seconds()
	}
	for _, t := range r.Tasks {
		for i := int(time.Duration(t.Launched) / length); i < len(moments); i++ {
			from := timeline.Time(time.Duration(i) * length)
			span := min(t.Finished, from.Add(length)).Sub(max(t.Launched, from))
			if span <= 0 {
				break
			}
			share := span.Seconds() / length.Seconds()
			moments[i].memory += share * float64(t.Memory) / float64(all)
			if t.UnderSized {
				moments[i].elastic += share
			}
		}
	}
	return moments
}

// otherAssumptions change one thing each.
func otherAssumptions() []assumed {
	change := func(name string, by func(*assumed)) assumed {
		a := assumedDefault
		a.name = name
		by(&a)
		return a
	}
	return []assumed{
		assumedDefault,
		change("mappers twice as long", func(a *assumed) { a.mapRate /= 2 }),
		change("mappers half as long", func(a *assumed) { a.mapRate *= 2 }),
		change("reducers twice as long", func(a *assumed) { a.reduceRate /= 2 }),
		change("reducers half as long", func(a *assumed) { a.reduceRate *= 2 }),
		change("durations as estimated", func(a *assumed) { a.spread = 0 }),
		change("application masters of no size", func(a *assumed) { a.master = 0 }),
		change("under-sized tasks get at least half", func(a *assumed) { a.leastShare = 0.5 }),
		change("disks are never contended", func(a *assumed) { a.disk = 0 }),
	}
}

// sensitivityTable shows the gains under other assumptions, and with other schedulers.
func sensitivityTable(l *lab.Lab, starts []start) (lab.Table, error) {
	table := lab.NewTable("The same under other assumptions (one iteration of the most runs)", "assumption", "runtime",
		"map phase", "reduce phase", "makespan", "memory in use")
	others := otherAssumptions()
	err := lab.Each(l, "other assumptions", len(others), func(i int) (pair, error) {
		return others[i].runPair(yarnMESum, starts, l.RunSeed(0))
	}, func(i int, p pair) {
		row := []string{others[i].name}
		for _, m := range metrics {
			row = append(row, lab.Percent(lab.Gain(m.of(p.YARN), m.of(p.Elastic))))
		}
		table.Add(append(row, lab.Percent(p.YARN.Memory)+" → "+lab.Percent(p.Elastic.Memory))...)
	})
	if err != nil {
		return table, err
	}
	free, _, err := assumedDefault.runPhases(yarnUnreserved, starts, l.RunSeed(0))
	if err != nil {
		return table, err
	}
	me, _, err := assumedDefault.runPhases(yarnMESum, starts, l.RunSeed(0))
	if err != nil {
		return table, err
	}
	row := []string{"against YARN without reservations"}
	for _, m := range metrics {
		row = append(row, lab.Percent(lab.Gain(m.of(free), m.of(me))))
	}
	table.Add(append(row, lab.Percent(free.Memory)+" → "+lab.Percent(me.Memory))...)
	return table, nil
}

func fig4Claims(perRuns [][]pair) []lab.Claim {
	last := perRuns[len(perRuns)-1]
	runtime, makespan := metrics[0], metrics[3]
	before, after := meanMemory(last)
	most, one, peak := lab.Mean(gains(last, makespan)), lab.Mean(gains(perRuns[0], runtime)), 0.0
	for _, pairs := range perRuns {
		peak = max(peak, lab.Mean(gains(pairs, runtime)))
	}
	overall := lab.Mean(gains(last, runtime))
	reclaimed := after - before
	return []lab.Claim{
		Paper.Stated("yarn-me/fig4", "utilisation").Judge(lab.Percent(before)+" → "+lab.Percent(after),
			before >= 0.72 && before <= 0.82 && after >= 0.9, reclaimed >= 0.1),
		Paper.Stated("yarn-me/fig4", "makespan").Near(lab.Percent(most), 0.39, most),
		Paper.Stated("yarn-me/fig4", "single-run").Near(lab.Percent(one)+" of the runtime", 0.30, one),
		Paper.Stated("yarn-me/fig4", "peak").Near(lab.Percent(peak)+" at most, "+lab.Percent(overall)+" with the most runs",
			0.39, overall),
		Paper.Stated("yarn-me/fig4", "memory-reclaimed").
			Judge(fmt.Sprintf("%s for %s points", lab.Percent(overall), lab.Decimals(100*reclaimed, 0)),
				overall > 1.5*reclaimed, overall > reclaimed),
	}
}

func fig5ab(l *lab.Lab) (*lab.Findings, error) {
	f := &lab.Findings{}
	data := concurrentData()
	all := map[string][][]pair{}
	for _, app := range []application{recommender, wordCount} {
		perRuns, err := concurrent(l, app, &data)
		if err != nil {
			return nil, err
		}
		all[app.name] = perRuns
		table, bars := concurrentFindings(app, perRuns)
		f.Tables, f.Pictures = append(f.Tables, table), append(f.Pictures, bars)
		sensitivity, err := sensitivityTable(&lab.Lab{Ctx: l.Ctx, Settings: lab.Settings{Seed: l.Seed, Workers: l.Workers}},
			homogeneous(app, len(perRuns)))
		if err != nil {
			return nil, err
		}
		sensitivity.Name = app.name + " under other assumptions (one iteration of the most runs)"
		f.Tables = append(f.Tables, sensitivity)
	}
	f.Data, f.Claims = []lab.Table{data}, fig5abClaims(all)
	return f, nil
}

func fig5abClaims(all map[string][][]pair) []lab.Claim {
	peak := func(app application) (most float64) {
		for _, pairs := range all[app.name] {
			most = max(most, lab.Mean(gains(pairs, metrics[0])))
		}
		return most
	}
	leastMap, steady := 1.0, true
	for _, app := range []application{recommender, wordCount} {
		before := 0.0
		for _, pairs := range all[app.name] {
			leastMap = min(leastMap, lab.Mean(gains(pairs, metrics[1])))
			now := lab.Mean(gains(pairs, metrics[0]))
			steady = steady && now >= before-0.02
			before = now
		}
	}
	words := all[wordCount.name]
	three := lab.Mean(gains(words[min(2, len(words)-1)], metrics[1]))
	return []lab.Claim{
		Paper.Stated("yarn-me/fig5ab", "recommender").Near(lab.Percent(peak(recommender)), 0.48, peak(recommender)),
		Paper.Stated("yarn-me/fig5ab", "word-count").Near(lab.Percent(peak(wordCount)), 0.41, peak(wordCount)),
		Paper.Stated("yarn-me/fig5ab", "mappers").Judge("at least "+lab.Percent(leastMap), leastMap >= 0.1, leastMap > 0),
		Paper.Stated("yarn-me/fig5ab", "map-phase").Near(lab.Percent(three), 0.46, three),
		Paper.Stated("yarn-me/fig5ab", "steady").Judge("see the tables", steady, false),
	}
}
