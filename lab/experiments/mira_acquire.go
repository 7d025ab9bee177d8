package experiments

import (
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/workload"
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

// wait returns for how long each task of a wave of n waits for its executor, ascending, in seconds. On Mira all executors but one have
// served an application before.
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
	err := each(l, "waits", len(systems)*len(counts), func(i int) ([]float64, error) { return systems[i/len(counts)].wait(counts[i%len(counts)]) },
		func(i int, w []float64) { waits[i/len(counts)] = append(waits[i/len(counts)], w) })
	if err != nil {
		return nil, err
	}
	table := newTable("Seconds from the time when N tasks are ready until they have executors (Fig. 3 and 10)", "system", "N", "first", "quarter", "half", "three quarters", "last")
	plot := &chart.Plot{Title: "How long N tasks wait for executors", Subtitle: "simulated; on Mira, one executor is new", X: "N", Y: "seconds until the first and the last has its executor"}
	for i, s := range systems {
		first, last := chart.Series{Name: s.name + ", first", Color: i + 1, Dashed: true}, chart.Series{Name: s.name + ", last", Color: i + 1}
		for k, n := range counts {
			w := waits[i][k]
			table.add(s.name, fmt.Sprint(n), decimals(w[0], 2), decimals(quantile(w, 0.25), 2), decimals(quantile(w, 0.5), 2), decimals(quantile(w, 0.75), 2), decimals(w[len(w)-1], 2))
			first.X, first.Y = append(first.X, float64(n)), append(first.Y, w[0])
			last.X, last.Y = append(last.X, float64(n)), append(last.Y, w[len(w)-1])
		}
		plot.Series = append(plot.Series, last, first)
	}
	waves, again, err := miraFigureSix()
	if err != nil {
		return nil, err
	}
	demand, err := miraFigureOne()
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: []Table{miraParts(), table, waves.table()}, Claims: miraAcquireClaims(waits, waves),
		Pictures: []Picture{{"waits", "Waits for executors (Fig. 3 and 10; simulated)", plot}, {"demand", "110 tasks of 10 s (Fig. 1 and 5; simulated)", demand},
			{"waves", "Two waves of 110 tasks on Spark+YARN (Fig. 6; simulated)", again}}}, nil
}

// miraParts are the parts of an acquisition (Fig. 4), which are parameters of the model.
func miraParts() Table {
	t := newTable("Parts of an acquisition: parameters of the model", "part", "Spark+YARN", "Spark standalone", "Mira, new executor", "Mira, warm executor")
	none := "–"
	t.add("requests", "1, then twice as many every "+sparkAsksEvery.String(), "as on YARN", "all at once", "all at once")
	t.add("heartbeat of the server", "every "+yarnBeat.String()+", one container each", none, none, none)
	t.add("heartbeat of the application", sparkFirstBeat.String()+", doubling to "+sparkSlowestBeat.String(), none, none, none)
	t.add("container", yarnContainer.String(), standaloneStarts.String(), "in the next row", none)
	t.add("executor", sparkStarts.String(), sparkStarts.String(), miraCold.String(), none)
	t.add("assignment", none, none, none, miraWarm.String())
	t.add("driver until the first task is ready", yarnDriver.String(), miraDriver.String(), miraDriver.String(), miraDriver.String())
	return t
}

// miraWaves are the runs of Fig. 6, by idle time-out.
type miraWaves []miraWaveRun

type miraWaveRun struct {
	idle   time.Duration
	used   float64 // share of the time of its executors in which they run tasks
	second float64 // seconds that the second wave takes
}

func (w miraWaves) table() Table {
	t := newTable("Two waves of 110 tasks of 10 s on Spark+YARN (Fig. 6)", "idle time-out", "executors used", "second wave")
	for _, r := range w {
		t.add(inSeconds(r.idle), percent(r.used), decimals(r.second, 1)+" s")
	}
	return t
}

// miraBetween is the time between the waves of Fig. 6, in which the driver works; the paper does not say how long.
const miraBetween = 2 * time.Second

// miraFigureSix runs two waves with each idle time-out.
func miraFigureSix() (all miraWaves, picture *chart.Tracks, err error) {
	picture = &chart.Tracks{Title: "Two waves of 110 tasks of 10 s on Spark+YARN", Subtitle: "simulated", X: "time since the submission, s", To: 70}
	for _, idle := range []time.Duration{time.Second, time.Minute} {
		s := miraYARN(idle, false)
		waves := miraBenchmark(110, 2)
		first, second := waves.Stages[0], waves.Stages[1]
		between := cluster.Stage{Name: "between", Tasks: 1, Duration: miraBetween, Parents: []int{0}}
		second.Parents = []int{1}
		w := &workload.Workload{Jobs: []workload.Job{miraJob(2, "waves", -1, s.driver, []cluster.Stage{first, between, second}, nil)}}
		m := &miraMeter{fair: miraExecutors, last: 2, keep: true}
		r, err := s.run(w, m)
		if err != nil {
			return nil, nil, err
		}
		run, begins, ends := miraWaveRun{idle: idle}, 0.0, 0.0
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
		run.used, run.second = busy/held, ends-begins
		all = append(all, run)
		picture.Rows = append(picture.Rows, miraDemand(s.name, m.rows, 0, picture.To))
	}
	return all, picture, nil
}

// miraFigureOne is the demand for executors, and what is there, of 110 tasks.
func miraFigureOne() (*chart.Tracks, error) {
	t := &chart.Tracks{Title: "110 tasks of 10 s: executors, requests, and how many there could be", Subtitle: "simulated", X: "time since the submission, s", To: 40}
	return t, miraOnThree(t, miraBenchmark(110, 1))
}

// miraOnThree draws an application alone on YARN, on new executors of Mira, and on executors of Mira that have run it once.
func miraOnThree(t *chart.Tracks, app workload.Job) error {
	yarn, cold := miraYARN(time.Minute, false), miraOwn.newly()
	for _, c := range []struct {
		name   string
		system miraSystem
		before int
	}{{yarn.name, yarn, 0}, {"Mira, cold", cold, 0}, {"Mira, warm", miraOwn, 1}} {
		ends, rows, err := c.system.sequence(slices.Repeat([]workload.Job{app}, c.before+1), true)
		if err != nil {
			return err
		}
		from := 0.0
		for _, e := range ends[:c.before] {
			from += e
		}
		t.Rows = append(t.Rows, miraDemand(c.name, rows, from, t.To))
	}
	return nil
}

// miraDemand draws the executors of one application, from a time on.
func miraDemand(name string, rows []miraRow, from, lasts float64) chart.Track {
	t := chart.Track{Name: name, Top: 120, High: 110}
	busy, idle := chart.Area{Name: "executors that run tasks", Color: 1}, chart.Area{Name: "idle executors", Color: 2}
	load, asked := chart.Series{Name: "tasks that run or could", Step: true, Color: 4}, chart.Series{Name: "requested", Step: true, Dashed: true, Color: 3}
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

// miraAcquireClaims judges the claims of sections II and IV.B, from waits by system and number of executors.
func miraAcquireClaims(waits [][][]float64, waves miraWaves) []Claim {
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
	quick, kept := waves[0], waves[1]
	flat := last(own[many]) / last(own[few])
	return []Claim{
		stated(experiment, "base").madeSo(s(yarn[few][0]), within(yarn[few][0], 2.7, 3.7)),
		stated(experiment, "total").judge(s(last(yarn[many])), within(last(yarn[many]), 14.2, 17.4), last(yarn[many]) > 7.9),
		stated(experiment, "standalone").madeSo(percent(faster), within(faster, 0.18, 0.28)),
		stated(experiment, "standalone-last").judge(s(last(alone[many])), within(last(alone[many]), 8.6, 10.6), last(alone[many]) > 4.8),
		stated(experiment, "warm").judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(y75, y75many), factors(a75, a75many)), y75 >= 112 && a75 >= 85, y75 > 10 && a75 > 10),
		stated(experiment, "last").judge(fmt.Sprintf("%s of Spark+YARN, %s of Spark standalone", factors(yLow, yHigh), factors(aLow, aHigh)), yLow >= 4.9*0.8 && yHigh >= 14.6*0.8 && aLow >= 3*0.8 && aHigh >= 9*0.8, yHigh > 2 && aHigh > 2),
		stated(experiment, "constant").madeSo(fmt.Sprintf("the last of 110 waits %s times as long as the last of 2", decimals(flat, 2)), flat < 1.05),
		stated(experiment, "released").judge(fmt.Sprintf("%s, %s s", percent(quick.used), decimals(quick.second, 0)), within(quick.used, 0.75, 0.95) && within(quick.second, 23, 33), quick.used > kept.used && quick.second > kept.second),
		stated(experiment, "retained").judge(fmt.Sprintf("%s, %s s", percent(kept.used), decimals(kept.second, 0)), within(kept.used, 0.53, 0.73) && within(kept.second, 10, 17), quick.used > kept.used && quick.second > kept.second),
	}
}
