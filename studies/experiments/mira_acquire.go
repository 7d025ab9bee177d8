package experiments

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
)

// miraWave is how long the tasks of the micro-benchmark take (Fig. 1).
const miraWave = 10 * time.Second

// miraBenchmark is the micro-benchmark of section II.A: waves of n tasks each, one after the other.
func miraBenchmark(n, waves int) workload.Job {
	j := workload.Job{}
	for i := range waves {
		s := cluster.Stage{Name: fmt.Sprintf("wave-%d", i+1), Tasks: n, Duration: miraWave}
		if i > 0 {
			s.Parents = []int{i - 1}
		}
		j.Stages = append(j.Stages, s)
	}
	return j
}

// wait returns for how long each task of a wave of n waits for its executor, ascending, in seconds. On Mira all
// executors but one have served an application before.
func (s *miraSystem) wait(n int) (waits []float64, err error) {
	jobs := []workload.Job{miraBenchmark(n, 1)}
	if s.spark == nil {
		jobs = []workload.Job{miraBenchmark(n-1, 1), jobs[0]}
	}
	w := &workload.Workload{}
	for i := range jobs {
		w.Jobs = append(w.Jobs, miraJob(i+2, "waves", i-1, s.driver, jobs[i].Stages, nil))
	}
	id := cluster.JobID(len(jobs) + 1)
	r, err := s.run(w, &miraMeter{fair: miraExecutors, last: id})
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

// miraAcquireSystems are those of Fig. 3 and 10.
func miraAcquireSystems() []miraSystem {
	return []miraSystem{miraYARN(time.Minute, false), miraStandalone(time.Minute, false), miraOwn}
}

func miraAcquire(l *lab) (*Findings, error) {
	counts := []int{2, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110}
	if l.quick {
		counts = []int{2, 110}
	}
	systems := miraAcquireSystems()
	waits := make([][][]float64, len(systems))
	err := each(l, "waits", len(systems)*len(counts), func(i int) ([]float64, error) {
		return systems[i/len(counts)].wait(counts[i%len(counts)])
	}, func(i int, w []float64) { waits[i/len(counts)] = append(waits[i/len(counts)], w) })
	if err != nil {
		return nil, err
	}
	table := newTable("Seconds from the time when N tasks are ready until they have executors (Fig. 3 and 10)", "system",
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
			table.add(s.name, fmt.Sprint(n), decimals(w[0], 2), decimals(quantile(w, 0.25), 2), decimals(quantile(w, 0.5), 2),
				decimals(quantile(w, 0.75), 2), decimals(w[len(w)-1], 2))
			most.X, most.Y = append(most.X, float64(n)), append(most.Y, quantile(w, 0.75))
			last.X, last.Y = append(last.X, float64(n)), append(last.Y, w[len(w)-1])
		}
		plot.Series = append(plot.Series, last, most)
	}
	waves, again, err := miraFigureSix()
	if err != nil {
		return nil, err
	}
	demand, grows, err := miraFigureOne()
	if err != nil {
		return nil, err
	}
	real, tables, err := miraMeasured()
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: append([]Table{miraParts(waits), table, grows.table(), waves.table()}, tables...),
		Claims: miraAcquireClaims(waits, waves, grows, real),
		Pictures: []Picture{{"waits", "Waits for executors (Fig. 3 and 10; simulated)", plot},
			{"demand", "110 tasks of 10 s (Fig. 1 and 5; simulated)", demand},
			{"waves", "Two waves of 110 tasks on Spark+YARN (Fig. 6; simulated)", again}}}, nil
}

// miraParts are the parts of an acquisition (Fig. 4), which are parameters of the model, and what they come to.
func miraParts(waits [][][]float64) Table {
	t := newTable("Parts of an acquisition: parameters of the model, and what they come to (Fig. 4)", "part",
		"Spark+YARN", "Spark standalone", "Mira, new executor", "Mira, warm executor")
	none := "–"
	t.add("requests", "1, then twice as many every "+sparkAsksEvery.String(), "as on YARN", "all at once", "all at once")
	t.add("heartbeat of the server", "every "+yarnBeat.String()+", one container each", none, none, none)
	t.add("heartbeat of the application", sparkFirstBeat.String()+", doubling to "+sparkSlowestBeat.String(), none, none,
		none)
	t.add("container", yarnContainer.String(), standaloneStarts.String(), "in the next row", none)
	t.add("executor", sparkStarts.String(), sparkStarts.String(), miraCold.String(), none)
	t.add("assignment", none, none, none, miraWarm.String())
	last := len(waits[0]) - 1
	yarn, alone, own := waits[0][0], waits[1][0], waits[2][last] // of the most tasks, half have warm executors
	t.add("simulated: the first executor after its request", decimals(yarn[0], 2)+"s", decimals(alone[0], 2)+"s",
		decimals(own[len(own)-1], 2)+"s", decimals(1000*quantile(own, 0.5), 0)+"ms")
	t.add("driver until the first task is ready", yarnDriver.String(), miraDriver.String(), miraDriver.String(),
		miraDriver.String())
	return t
}

// miraWaves are the runs of Fig. 6, by idle time-out.
type miraWaves []miraWaveRun

type miraWaveRun struct {
	idle   time.Duration
	gap    time.Duration // between the waves
	used   float64       // share of the time of its executors in which they run tasks
	second float64       // seconds that the second wave takes
}

func (w miraWaves) table() Table {
	t := newTable("Two waves of 110 tasks of 10 s on Spark+YARN (Fig. 6)", "idle time-out", "between the waves",
		"executors used", "second wave")
	for _, r := range w {
		t.add(inSeconds(r.idle), inSeconds(r.gap), percent(r.used), decimals(r.second, 1)+" s")
	}
	return t
}

// miraBetween are times between the waves of Fig. 6, in which the driver works. The paper does not say how long that
// is; the first counts.
var miraBetween = []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second}

// miraFigureSix runs two waves with each idle time-out and each time between them; the picture has the first.
func miraFigureSix() (all miraWaves, picture *chart.Tracks, err error) {
	picture = &chart.Tracks{Title: "Two waves of 110 tasks of 10 s on Spark+YARN", Subtitle: "simulated",
		X: "time since the submission, s", To: 70}
	for _, between := range miraBetween {
		for _, idle := range []time.Duration{time.Second, time.Minute} {
			run, rows, err := miraTwoWaves(idle, between)
			if err != nil {
				return nil, nil, err
			}
			if all = append(all, run); between == miraBetween[0] {
				picture.Rows = append(picture.Rows, miraDemand("Spark+YARN, "+inSeconds(idle), rows, 0, picture.To))
			}
		}
	}
	return all, picture, nil
}

// miraTwoWaves runs two waves on YARN.
func miraTwoWaves(idle, between time.Duration) (run miraWaveRun, rows []miraRow, err error) {
	s := miraYARN(idle, false)
	waves := miraBenchmark(110, 2)
	first, second := waves.Stages[0], waves.Stages[1]
	driver := cluster.Stage{Name: "between", Tasks: 1, Duration: between, Parents: []int{0}}
	second.Parents = []int{1}
	w := &workload.Workload{Jobs: []workload.Job{miraJob(2, "waves", -1, s.driver,
		[]cluster.Stage{first, driver, second}, nil)}}
	m := &miraMeter{fair: miraExecutors, last: 2, keep: true}
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
	return miraWaveRun{idle, between, busy / held, ends - begins}, m.rows, nil
}

// miraGrowth is how an application on YARN requests executors and gets them (Fig. 5): when its k-th was requested,
// and when it was there, in seconds since its tasks are ready.
type miraGrowth struct{ asked, came []float64 }

func growthOf(rows []miraRow) (g miraGrowth) {
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

func (g miraGrowth) table() Table {
	t := newTable("Requests of 110 tasks on Spark+YARN, and executors that are there (Fig. 5)",
		"seconds since the tasks are ready", "requested", "there")
	until := func(all []float64, at float64) string {
		return fmt.Sprint(int(shareAtMost(all, at)*float64(len(all)) + 0.5))
	}
	for at := 0.0; at <= 16; at += 2 {
		t.add(decimals(at, 0), until(g.asked, at), until(g.came, at))
	}
	return t
}

// response is how long executors took to be there once they were requested: the mean of the first and of the last
// quarter of them.
func (g miraGrowth) response() (first, last float64) {
	var took []float64
	for i := range g.came {
		took = append(took, g.came[i]-g.asked[i])
	}
	quarter := len(took) / 4
	return mean(took[:quarter]), mean(took[len(took)-quarter:])
}

// miraFigureOne is the demand for executors, and what is there, of 110 tasks.
func miraFigureOne() (*chart.Tracks, miraGrowth, error) {
	t := &chart.Tracks{Title: "110 tasks of 10 s: executors, requests, and how many there could be",
		Subtitle: "simulated", X: "time since the submission, s", To: 40}
	rows, err := miraOnThree(t, miraBenchmark(110, 1))
	if err != nil {
		return nil, miraGrowth{}, err
	}
	return t, growthOf(rows[0]), nil
}

// miraOnThree draws an application alone on YARN, on new executors of Mira, and on executors of Mira that have run it
// once. It returns what the application had over time in each case.
func miraOnThree(t *chart.Tracks, app workload.Job) (all [][]miraRow, err error) {
	yarn, cold := miraYARN(time.Minute, false), miraOwn.newly()
	for _, c := range []struct {
		name   string
		system miraSystem
		before int
	}{{yarn.name, yarn, 0}, {"Mira, cold", cold, 0}, {"Mira, warm", miraOwn, 1}} {
		ran, rows, err := c.system.sequence(slices.Repeat([]workload.Job{app}, c.before+1), true)
		if err != nil {
			return nil, err
		}
		from := 0.0
		for _, e := range ran.Seconds[:c.before] {
			from += e
		}
		t.Rows = append(t.Rows, miraDemand(c.name, rows, from, t.To))
		all = append(all, slices.DeleteFunc(rows, func(r miraRow) bool { return time.Duration(r.At).Seconds() < from }))
	}
	return all, nil
}

// miraDemand draws the executors of one application, from a time on.
func miraDemand(name string, rows []miraRow, from, lasts float64) chart.Track {
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
		load.X, load.Y = append(load.X, at), append(load.Y, float64(min(r.Load, miraExecutors)))
		asked.X, asked.Y = append(asked.X, at), append(asked.Y, float64(min(r.Asked, miraExecutors)))
	}
	t.Areas, t.Lines = []chart.Area{busy, idle}, []chart.Series{load, asked}
	return t
}

// miraAcquireClaims judges the claims of sections II, III.C and IV.B, from waits by system and number of executors.
func miraAcquireClaims(waits [][][]float64, waves miraWaves, grows miraGrowth, real miraReal) []Claim {
	const experiment = "mira/fig1-10"
	last := func(w []float64) float64 { return w[len(w)-1] }
	yarn, alone, own := waits[0], waits[1], waits[2]
	few, many := 0, len(yarn)-1
	s := func(v float64) string { return decimals(v, 2) + " s" }
	gain := func(of [][]float64, wait func([]float64) float64) (low, high float64) {
		return wait(of[few]) / wait(own[few]), wait(of[many]) / wait(own[many])
	}
	p75 := func(w []float64) float64 { return quantile(w, 0.75) }
	factors := func(low, high float64) string { return decimals(low, 1) + "× to " + decimals(high, 1) + "×" }
	of := func(waits [][]float64, at int) float64 { return p75(waits[at]) / p75(own[at]) }
	y75, y75many, a75, a75many := of(yarn, min(1, many)), of(yarn, many), of(alone, min(1, many)), of(alone, many)
	yLow, yHigh := gain(yarn, last)
	aLow, aHigh := gain(alone, last)
	faster := 1 - alone[few][0]/yarn[few][0]
	quick, kept, long := waves[0], waves[1], waves[len(waves)-1]
	soon, late := grows.response()
	overWarm := last(yarn[many]) / p75(own[many])
	return append([]Claim{
		stated(experiment, "base").madeSo(s(yarn[few][0]), within(yarn[few][0], 2.7, 3.7)),
		stated(experiment, "total").judge(s(last(yarn[many])), within(last(yarn[many]), 14.2, 17.4), last(yarn[many]) > 7.9),
		stated(experiment, "standalone").madeSo(percent(faster), within(faster, 0.18, 0.28)),
		stated(experiment, "standalone-last").judge(s(last(alone[many])), within(last(alone[many]), 8.6, 10.6),
			last(alone[many]) > 4.8),
		stated(experiment, "gap").judge(fmt.Sprintf("%s s for the first quarter of the executors, %s s for the last",
			decimals(soon, 1), decimals(late, 1)), late >= 1.5*soon, late > soon),
		stated(experiment, "warm").judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(y75, y75many),
			factors(a75, a75many)), y75 >= 112 && a75 >= 85, y75 > 10 && a75 > 10),
		stated(experiment, "most").because(s(p75(yarn[many])), decimals(overWarm, 0)).
			judge(decimals(max(y75, y75many), 0)+"×", max(y75, y75many) >= 400, max(y75, y75many) >= 200),
		stated(experiment, "last").because(s(last(yarn[few])), s(last(alone[many]))).
			judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(yLow, yHigh), factors(aLow, aHigh)),
				yLow >= 4.9*0.8 && yHigh >= 14.6*0.8 && aLow >= 3*0.8 && aHigh >= 9*0.8, yHigh > 2 && aHigh > 2),
		stated(experiment, "released").judge(fmt.Sprintf("%s, %s s", percent(quick.used), decimals(quick.second, 0)),
			within(quick.used, 0.75, 0.95) && within(quick.second, 23, 33), quick.used > kept.used &&
				quick.second > kept.second),
		stated(experiment, "retained").because(decimals(kept.second, 1), percent(long.used), inSeconds(long.gap)).
			judge(fmt.Sprintf("%s, %s s", percent(kept.used), decimals(kept.second, 0)), within(kept.used, 0.53, 0.73) &&
				within(kept.second, 10, 17), quick.used > kept.used && quick.second > kept.second),
		stated(experiment, "faster").because(decimals(kept.second, 1), decimals(quick.second/15, 1)).
			judge(decimals(quick.second/kept.second, 1)+"×", within(quick.second/kept.second, 1.5, 2.3),
				quick.second > kept.second),
	}, miraRealClaims(real)...)
}

// miraRealClaims judges the claims that rest on measurements of real pools.
func miraRealClaims(real miraReal) []Claim {
	const experiment = "mira/fig1-10"
	waits := func(n int, metric string) float64 {
		return metricOf(real.acquisition, fmt.Sprintf("go/executors=%d", n), metric)
	}
	ms := func(v float64) string { return decimals(v, 1) + " ms" }
	warm, fewer, slowest := waits(112, "warm-p75-ms"), waits(8, "warm-p75-ms"), waits(112, "warm-last-ms")
	half, all := waits(112, "cold-p50-ms"), waits(112, "cold-last-ms")
	median := metricOf(real.shares, "executors=112/applications=10", "divided-p50-us")
	large := metricOf(real.shares, "executors=10000/applications=1000", "divided-p50-us")
	return []Claim{
		stated(experiment, "real-warm").judge(ms(warm), warm <= 36, warm <= 72),
		stated(experiment, "real-new").judge(
			fmt.Sprintf("half of new ones after %s, the last after %s; the last warm one after %s", ms(half), ms(all),
				ms(slowest)), half > slowest && all <= 1100, half > slowest),
		stated(experiment, "constant").because(decimals(1000*slowest/112, 0)).
			judge(fmt.Sprintf("%s for N = 8, %s for N = 112", ms(fewer), ms(warm)), warm <= 1.5*fewer, warm <= 36),
		stated(experiment, "reevaluation").judge(
			fmt.Sprintf("%s µs with 112 executors and 10 applications, %s µs with 10,000 and 1,000", decimals(median, 1),
				decimals(large, 0)), median < 100, median < 200),
	}
}
