package mira

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// wave is how long the tasks of the micro-benchmark take (Fig. 1).
const wave = 10 * time.Second

// benchmark is the micro-benchmark of section II.A: waves of n tasks each, one after the other.
func benchmark(n, waves int) workload.Job {
	j := workload.Job{}
	for i := range waves {
		s := cluster.Stage{Name: fmt.Sprintf("wave-%d", i+1), Tasks: n, Duration: wave}
		if i > 0 {
			s.Parents = []int{i - 1}
		}
		j.Stages = append(j.Stages, s)
	}
	return j
}

// wait returns for how long each task of a wave of n waits for its executor, ascending, in seconds. On Mira all
// executors but one have served an application before.
func (s *system) wait(n int) (waits []float64, err error) {
	jobs := []workload.Job{benchmark(n, 1)}
	if s.spark == nil {
		jobs = []workload.Job{benchmark(n-1, 1), jobs[0]}
	}
	w := &workload.Workload{}
	for i := range jobs {
		w.Jobs = append(w.Jobs, job(i+2, "waves", i-1, s.driver, jobs[i].Stages, nil))
	}
	id := cluster.JobID(len(jobs) + 1)
	r, err := s.run(w, &meter{fair: executors, last: id})
	if err != nil {
		return nil, err
	}
	ready := 0.0
	for _, t := range r.Tasks {
		switch {
		case t.ID.Job != id:
		case t.ID.Stage == 0:
			ready = time.Duration(t.Finished).Seconds()
		default:
			waits = append(waits, time.Duration(t.Launched).Seconds()-ready)
		}
	}
	slices.Sort(waits)
	return waits, nil
}

// acquireSystems are those of Fig. 3 and 10.
func acquireSystems() []system {
	return []system{yarn(time.Minute, false), standalone(time.Minute, false), own}
}

func acquire(l *lab.Lab) (*lab.Findings, error) {
	counts := []int{2, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}
	if l.Quick {
		counts = []int{2, 110}
	}
	systems := acquireSystems()
	waits := make([][][]float64, len(systems))
	err := lab.Each(l, "waits", len(systems)*len(counts), func(i int) ([]float64, error) {
		return systems[i/len(counts)].wait(counts[i%len(counts)])
	}, func(i int, w []float64) { waits[i/len(counts)] = append(waits[i/len(counts)], w) })
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Seconds from the time when N tasks are ready until they have executors (Fig. 3 and 10)",
		"system",
		"N", "first", "quarter", "half", "three quarters", "last")
	plot := &chart.Plot{Title: "How long N tasks wait for executors",
		Subtitle: "simulated; on Mira, one executor is new, so that with two tasks three quarters wait for it", X: "N",
		Y: "seconds until three quarters and all have executors", LogY: true}
	for i, s := range systems {
		name, _, _ := strings.Cut(s.name, ",")
		most, last := chart.Series{Name: name + ", 75 %", Color: i + 1, Dashed: true},
			chart.Series{Name: name + ", last", Color: i + 1}
		for k, n := range counts {
			w := waits[i][k]
			table.Add(s.name, fmt.Sprint(n), lab.Decimals(w[0], 2), lab.Decimals(lab.Quantile(w, 0.25), 2),
				lab.Decimals(lab.Quantile(w, 0.5), 2),
				lab.Decimals(lab.Quantile(w, 0.75), 2), lab.Decimals(w[len(w)-1], 2))
			most.X, most.Y = append(most.X, float64(n)), append(most.Y, lab.Quantile(w, 0.75))
			last.X, last.Y = append(last.X, float64(n)), append(last.Y, w[len(w)-1])
		}
		plot.Series = append(plot.Series, last, most)
	}
	waves, again, err := figureSix()
	if err != nil {
		return nil, err
	}
	demand, grows, err := figureOne()
	if err != nil {
		return nil, err
	}
	real, tables, err := miraMeasured()
	if err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: append([]lab.Table{parts(waits), table, grows.table(), waves.table()}, tables...),
		Claims: acquireClaims(waits, waves, grows, real),
		Pictures: []lab.Picture{{Name: "waits", Caption: "Waits for executors (Fig. 3 and 10; simulated)", Picture: plot},
			{Name: "demand", Caption: "110 tasks of 10 s (Fig. 1 and 5; simulated)", Picture: demand},
			{Name: "waves", Caption: "Two waves of 110 tasks on Spark+YARN (Fig. 6; simulated)", Picture: again}}}, nil
}

// parts are the parts of an acquisition (Fig. 4), which are parameters of the model, and what they come to.
func parts(waits [][][]float64) lab.Table {
	t := lab.NewTable("Parts of an acquisition: parameters of the model, and what they come to (Fig. 4)", "part",
		"Spark+YARN", "Spark standalone", "Mira, new executor", "Mira, warm executor")
	none := "–"
	t.Add("requests", "1, then twice as many every "+sparkAsksEvery.String(), "as on YARN", "all at once", "all at once")
	t.Add("heartbeat of the server", "every "+yarnBeat.String()+", one container each", none, none, none)
	t.Add("heartbeat of the application", sparkFirstBeat.String()+", doubling to "+sparkSlowestBeat.String(), none, none,
		none)
	t.Add("container", yarnContainer.String(), standaloneStarts.String(), "in the next row", none)
	t.Add("executor", sparkStarts.String(), sparkStarts.String(), cold.String(), none)
	t.Add("assignment", none, none, none, warm.String())
	last := len(waits[0]) - 1
	yarn, alone, own := waits[0][0], waits[1][0], waits[2][last] // of the most tasks, half have warm executors
	t.Add("simulated: the first executor after its request", lab.Decimals(yarn[0], 2)+"s", lab.Decimals(alone[0], 2)+"s",
		lab.Decimals(own[len(own)-1], 2)+"s", lab.Decimals(1000*lab.Quantile(own, 0.5), 0)+"ms")
	t.Add("driver until the first task is ready", yarnDriver.String(), driver.String(), driver.String(),
		driver.String())
	return t
}

// miraWaves are the runs of Fig. 6, by idle time-out.
type miraWaves []waveRun

type waveRun struct {
	idle   time.Duration
	gap    time.Duration // between the waves
	used   float64       // share of the time of its executors in which they run tasks
	second float64       // seconds that the second wave takes
}

func (w miraWaves) table() lab.Table {
	t := lab.NewTable("Two waves of 110 tasks of 10 s on Spark+YARN (Fig. 6)", "idle time-out", "between the waves",
		"executors used", "second wave")
	for _, r := range w {
		t.Add(inSeconds(r.idle), inSeconds(r.gap), lab.Percent(r.used), lab.Decimals(r.second, 1)+" s")
	}
	return t
}

// miraBetween are times between the waves of Fig. 6, in which the driver works. The paper does not say how long that
// is; the first counts.
var miraBetween = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}

// figureSix runs two waves with each idle time-out and each time between them; the picture has the first.
func figureSix() (all miraWaves, picture *chart.Tracks, err error) {
	picture = &chart.Tracks{Title: "Two waves of 110 tasks of 10 s on Spark+YARN", Subtitle: "simulated",
		X: "time since the submission, s", To: 70}
	for _, between := range miraBetween {
		for _, idle := range []time.Duration{time.Second, time.Minute} {
			run, rows, err := twoWaves(idle, between)
			if err != nil {
				return nil, nil, err
			}
			if all = append(all, run); between == miraBetween[0] {
				picture.Rows = append(picture.Rows, demand("Spark+YARN, "+inSeconds(idle), rows, 0, picture.To))
			}
		}
	}
	return all, picture, nil
}

// twoWaves runs two waves on YARN.
func twoWaves(idle, between time.Duration) (run waveRun, rows []miraRow, err error) {
	s := yarn(idle, false)
	waves := benchmark(110, 2)
	first, second := waves.Stages[0], waves.Stages[1]
	driver := cluster.Stage{Name: "between", Tasks: 1, Duration: between, Parents: []int{0}}
	second.Parents = []int{1}
	w := &workload.Workload{Jobs: []workload.Job{job(2, "waves", -1, s.driver,
		[]cluster.Stage{first, driver, second}, nil)}}
	m := &meter{fair: executors, last: 2, keep: true}
	r, err := s.run(w, m)
	if err != nil {
		return run, nil, err
	}
	begins, ends := 0.0, 0.0
	for _, t := range r.Tasks {
		switch t.ID.Stage {
		case 2:
			begins = time.Duration(t.Finished).Seconds()
		case 3:
			ends = max(ends, time.Duration(t.Finished).Seconds())
		}
	}
	held, busy := 0.0, 0.0
	for i := range m.rows[:len(m.rows)-1] {
		lasts := m.rows[i+1].At.Sub(m.rows[i].At).Seconds()
		held, busy = held+lasts*float64(m.rows[i].Usable), busy+lasts*float64(m.rows[i].Busy)
	}
	return waveRun{idle, between, busy / held, ends - begins}, m.rows, nil
}

// growth is how an application on YARN requests executors and gets them (Fig. 5): when its k-th was requested,
// and when it was there, in seconds since its tasks are ready.
type growth struct{ asked, came []float64 }

func growthOf(rows []miraRow) (g growth) {
	ready := -1.0
	for _, r := range rows {
		at := time.Duration(r.At).Seconds()
		if ready < 0 && r.Load > 0 {
			ready = at
		}
		for len(g.asked) < r.Asked {
			g.asked = append(g.asked, at-ready)
		}
		for len(g.came) < r.Usable {
			g.came = append(g.came, at-ready)
		}
	}
	return g
}

func (g growth) table() lab.Table {
	t := lab.NewTable("Requests of 110 tasks on Spark+YARN, and executors that are there (Fig. 5)",
		"seconds since the tasks are ready", "requested", "there")
	until := func(all []float64, at float64) string {
		return fmt.Sprint(int(lab.ShareAtMost(all, at)*float64(len(all)) + 0.5))
	}
	for at := 0.0; at <= 16; at += 2 {
		t.Add(lab.Decimals(at, 0), until(g.asked, at), until(g.came, at))
	}
	return t
}

// response is how long executors took to be there once they were requested: the mean of the first and of the last
// quarter of them.
func (g growth) response() (first, last float64) {
	var took []float64
	for i := range g.came {
		took = append(took, g.came[i]-g.asked[i])
	}
	quarter := len(took) / 4
	return lab.Mean(took[:quarter]), lab.Mean(took[len(took)-quarter:])
}

// figureOne is the demand for executors, and what is there, of 110 tasks.
func figureOne() (*chart.Tracks, growth, error) {
	t := &chart.Tracks{Title: "110 tasks of 10 s: executors, requests, and how many there could be",
		Subtitle: "simulated", X: "time since the submission, s", To: 40}
	rows, err := onThree(t, benchmark(110, 1))
	if err != nil {
		return nil, growth{}, err
	}
	return t, growthOf(rows[0]), nil
}

// onThree draws an application alone on YARN, on new executors of Mira, and on executors of Mira that have run it
// once. It returns what the application had over time in each case.
func onThree(t *chart.Tracks, app workload.Job) (all [][]miraRow, err error) {
	yarn, cold := yarn(time.Minute, false), own.newly()
	for _, c := range []struct {
		name   string
		system system
		before int
	}{{yarn.name, yarn, 0}, {"Mira, cold", cold, 0}, {"Mira, warm", own, 1}} {
		ran, rows, err := c.system.sequence(slices.Repeat([]workload.Job{app}, c.before+1), true)
		if err != nil {
			return nil, err
		}
		from := 0.0
		for _, e := range ran.Seconds[:c.before] {
			from += e
		}
		t.Rows = append(t.Rows, demand(c.name, rows, from, t.To))
		all = append(all, slices.DeleteFunc(rows, func(r miraRow) bool { return time.Duration(r.At).Seconds() < from }))
	}
	return all, nil
}

// demand draws the executors of one application, from a time on.
func demand(name string, rows []miraRow, from, lasts float64) chart.Track {
	t := chart.Track{Name: name, Top: 120, High: 110}
	busy, idle := chart.Area{Name: "executors that run tasks", Color: 1}, chart.Area{Name: "idle executors", Color: 2}
	load, asked := chart.Series{Name: "tasks that run or could", Step: true, Color: 4},
		chart.Series{Name: "requested", Step: true, Dashed: true, Color: 3}
	for _, r := range rows {
		at := time.Duration(r.At).Seconds() - from
		if at < 0 || at > lasts {
			continue
		}
		t.X = append(t.X, at)
		busy.Y, idle.Y = append(busy.Y, float64(r.Busy)), append(idle.Y, float64(r.Usable-r.Busy))
		load.X, load.Y = append(load.X, at), append(load.Y, float64(min(r.Load, executors)))
		asked.X, asked.Y = append(asked.X, at), append(asked.Y, float64(min(r.Asked, executors)))
	}
	t.Areas, t.Lines = []chart.Area{busy, idle}, []chart.Series{load, asked}
	return t
}

// acquireClaims judges the claims of sections II, III.C and IV.B, from waits by system and number of executors.
func acquireClaims(waits [][][]float64, waves miraWaves, grows growth, real miraReal) []lab.Claim {
	const experiment = "mira/fig1-10"
	last := func(w []float64) float64 { return w[len(w)-1] }
	yarn, alone, own := waits[0], waits[1], waits[2]
	few, many := 0, len(yarn)-1
	s := func(v float64) string { return lab.Decimals(v, 2) + " s" }
	gain := func(of [][]float64, wait func([]float64) float64) (low, high float64) {
		return wait(of[few]) / wait(own[few]), wait(of[many]) / wait(own[many])
	}
	p75 := func(w []float64) float64 { return lab.Quantile(w, 0.75) }
	factors := func(low, high float64) string { return lab.Decimals(low, 1) + "× to " + lab.Decimals(high, 1) + "×" }
	of := func(waits [][]float64, at int) float64 { return p75(waits[at]) / p75(own[at]) }
	y75, y75many, a75, a75many := of(yarn, min(1, many)), of(yarn, many), of(alone, min(1, many)), of(alone, many)
	yLow, yHigh := gain(yarn, last)
	aLow, aHigh := gain(alone, last)
	faster := 1 - alone[few][0]/yarn[few][0]
	quick, kept, long := waves[0], waves[1], waves[len(waves)-1]
	soon, late := grows.response()
	overWarm := last(yarn[many]) / p75(own[many])
	return append([]lab.Claim{
		Paper.Stated(experiment, "base").MadeSo(s(yarn[few][0]), lab.Within(yarn[few][0], 2.7, 3.7)),
		Paper.Stated(experiment, "total").Judge(s(last(yarn[many])), lab.Within(last(yarn[many]), 14.2, 17.4),
			last(yarn[many]) > 7.9),
		Paper.Stated(experiment, "standalone").MadeSo(lab.Percent(faster), lab.Within(faster, 0.18, 0.28)),
		Paper.Stated(experiment, "standalone-last").Judge(s(last(alone[many])), lab.Within(last(alone[many]), 8.6, 10.6),
			last(alone[many]) > 4.8),
		Paper.Stated(experiment, "gap").Judge(fmt.Sprintf("%s s for the first quarter of the executors, %s s for the last",
			lab.Decimals(soon, 1), lab.Decimals(late, 1)), late >= 1.5*soon, late > soon),
		Paper.Stated(experiment, "warm").Judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(y75, y75many),
			factors(a75, a75many)), y75 >= 112 && a75 >= 85, y75 > 10 && a75 > 10),
		Paper.Stated(experiment, "most").Because(s(p75(yarn[many])), lab.Decimals(overWarm, 0)).
			Judge(lab.Decimals(max(y75, y75many), 0)+"×", max(y75, y75many) >= 400, max(y75, y75many) >= 200),
		Paper.Stated(experiment, "last").Because(s(last(yarn[few])), s(last(alone[many]))).
			Judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(yLow, yHigh), factors(aLow, aHigh)),
				yLow >= 4.9*0.8 && yHigh >= 14.6*0.8 && aLow >= 3*0.8 && aHigh >= 9*0.8, yHigh > 2 && aHigh > 2),
		Paper.Stated(experiment, "released").Judge(fmt.Sprintf("%s, %s s", lab.Percent(quick.used), lab.Decimals(quick.second,
			0)),
			lab.Within(quick.used, 0.75, 0.95) && lab.Within(quick.second, 23, 33), quick.used > kept.used &&
				quick.second > kept.second),
		Paper.Stated(experiment, "retained").Because(lab.Decimals(kept.second, 1), lab.Percent(long.used),
			inSeconds(long.gap)).
			Judge(fmt.Sprintf("%s, %s s", lab.Percent(kept.used), lab.Decimals(kept.second, 0)), lab.Within(kept.used, 0.53,
				0.73) &&
				lab.Within(kept.second, 10, 17), quick.used > kept.used && quick.second > kept.second),
		Paper.Stated(experiment, "faster").Because(lab.Decimals(kept.second, 1), lab.Decimals(quick.second/15, 1)).
			Judge(lab.Decimals(quick.second/kept.second, 1)+"×", lab.Within(quick.second/kept.second, 1.5, 2.3),
				quick.second > kept.second),
	}, realClaims(real)...)
}

// realClaims judges the claims that rest on measurements of real pools.
func realClaims(real miraReal) []lab.Claim {
	const experiment = "mira/fig1-10"
	waits := func(n int, metric string) float64 {
		return metricOf(real.acquisition, fmt.Sprintf("go/executors=%d", n), metric)
	}
	ms := func(v float64) string { return lab.Decimals(v, 1) + " ms" }
	warm, fewer, slowest := waits(112, "warm-p75-ms"), waits(8, "warm-p75-ms"), waits(112, "warm-last-ms")
	half, all := waits(112, "cold-p50-ms"), waits(112, "cold-last-ms")
	median := metricOf(real.shares, "executors=112/applications=10", "divided-p50-us")
	large := metricOf(real.shares, "executors=10000/applications=1000", "divided-p50-us")
	return []lab.Claim{
		Paper.Stated(experiment, "real-warm").Judge(ms(warm), warm <= 36, warm <= 72),
		Paper.Stated(experiment, "real-new").Judge(
			fmt.Sprintf("half of new ones after %s, the last after %s; the last warm one after %s", ms(half), ms(all),
				ms(slowest)), half > slowest && all <= 1100, half > slowest),
		Paper.Stated(experiment, "constant").Because(lab.Decimals(1000*slowest/112, 0)).
			Judge(fmt.Sprintf("%s for N = 8, %s for N = 112", ms(fewer), ms(warm)), warm <= 1.5*fewer, warm <= 36),
		Paper.Stated(experiment, "reevaluation").Judge(
			fmt.Sprintf("%s µs with 112 executors and 10 applications, %s µs with 10,000 and 1,000", lab.Decimals(median, 1),
				lab.Decimals(large, 0)), median < 100, median < 200),
	}
}
