package experiments

import (
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/workload"
)

// TestVerdictsOfMira: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfMira(t *testing.T) {
	systems := append(miraRivals(true), miraOwn)
	// trial is a run of ten queries that take the given seconds each.
	trial := func(query, whole, rate, delay float64, missed int, wasted float64) []miraTrial {
		return []miraTrial{{slices.Repeat([]float64{query}, 10), whole, rate,
			miraEfficiency{Delay: 10 * delay, Unassigned: wasted * whole * miraExecutors, Increases: 1000, Missed: missed, Lasted: []float64{0.1}}}}
	}
	all := func(rival, own []miraTrial) [][]miraTrial { return [][]miraTrial{rival, rival, rival, rival, own} }
	yarn, mira := trial(42, 267, 87, 914, 435, 0.112), trial(10, 148, 91, 131, 9, 0.029)
	shared := func(trials [][]miraTrial) []Claim { return miraSharedClaims(systems, trials, trials) }
	behind := all(yarn, mira)
	behind[3] = trial(10, 148, 87, 131, 435, 0.029) // one baseline is as good

	waits := func(first, of2, p75, of110 float64) [][]float64 {
		many := slices.Repeat([]float64{p75}, 110)
		many[0], many[109] = first, of110
		return [][]float64{{first, of2}, many, many}
	}
	waves := miraWaves{{time.Second, 0.85, 28}, {time.Minute, 0.63, 15}}
	paper := miraAcquireClaims([][][]float64{waits(3.2, 5.4, 8.6, 16.1), waits(2.46, 3.4, 5, 9.9), waits(0.036, 1.1, 0.036, 1.1)}, waves)
	flat := waits(1, 1, 1, 1)

	times := func(yarn1, yarn60, alone, cold, warm float64) []Claim {
		var all [][]float64
		for _, v := range []float64{yarn1, yarn60, alone, alone, cold, warm} {
			all = append(all, []float64{v, v, v, v})
		}
		return miraAloneClaims(all)
	}
	for _, c := range []struct {
		name string
		made []Claim
		want []Verdict
	}{
		{"shared", shared(all(yarn, mira)), []Verdict{Holds, Holds, Holds, Holds, Holds, Holds, Holds, Holds}},
		{"shared, all alike", shared(all(mira, mira)), []Verdict{Fails, Fails, Fails, Partly, Fails, Fails, Fails, Fails}},
		{"shared, one as good as Mira", shared(behind), []Verdict{Fails, Holds, Fails, Holds, Fails, Holds, Fails, Holds}},
		{"waits", paper, []Verdict{Untested, Holds, Untested, Holds, Holds, Holds, Untested, Holds, Holds}},
		{"waits, all alike", miraAcquireClaims([][][]float64{flat, flat, flat}, miraWaves{waves[1], waves[0]}),
			[]Verdict{Fails, Fails, Fails, Fails, Fails, Fails, Untested, Fails, Fails}},
		{"alone", times(63, 42, 64, 21, 20), []Verdict{Holds, Holds, Holds, Holds, Holds}},
		{"alone, standalone as fast", times(63, 42, 21, 21, 20), []Verdict{Fails, Fails, Partly, Partly, Holds}},
	} {
		if got := verdictsOf(c.made); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestIncreases: an increase of the load is missed if no executor came before it had gone, and short if not all came.
func TestIncreases(t *testing.T) {
	row := func(at, load, usable int) miraRow {
		return miraRow{At: 0, Load: load, Usable: usable}
	}
	for _, c := range []struct {
		name             string
		rows             []miraRow
		increases, short int
		missed           int
	}{
		{"all came", []miraRow{row(0, 0, 0), row(1, 3, 0), row(2, 3, 2), row(3, 3, 3)}, 1, 0, 0},
		{"some came", []miraRow{row(0, 3, 0), row(1, 3, 2), row(2, 1, 1)}, 1, 1, 0},
		{"none came", []miraRow{row(0, 3, 1), row(1, 1, 1), row(2, 5, 1), row(3, 1, 1)}, 2, 2, 2},
		{"others went as one came", []miraRow{row(0, 5, 3), row(1, 5, 1), row(2, 4, 2), row(3, 2, 2)}, 1, 1, 0},
		{"more than its share", []miraRow{row(0, 200, 56)}, 0, 0, 0},
	} {
		m := miraMeter{fair: 56}
		for _, r := range c.rows {
			m.increase(r)
		}
		if m.Increases != c.increases || m.Short != c.short || m.Missed != c.missed {
			t.Errorf("%s: %d increases, %d short, %d missed", c.name, m.Increases, m.Short, m.Missed)
		}
	}
}

// TestSparkAsksForExecutors: requests grow by 1, 2, 4, ... each second, YARN grants each server one container per second, and idle
// executors end; on a standalone cluster an application gets its half at most.
func TestSparkAsksForExecutors(t *testing.T) {
	alone := miraStandalone(time.Second, false)
	waits, err := alone.wait(8)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{2.46, 3.46, 3.46, 4.46, 4.46, 4.46, 4.46, 5.46}
	if !slices.EqualFunc(waits, want, func(a, b float64) bool { return within(a-b, -1e-6, 1e-6) }) {
		t.Errorf("on a standalone cluster 8 tasks wait %v, want %v", waits, want)
	}
	yarn := miraYARN(time.Second, false)
	if waits, err = yarn.wait(110); err != nil || waits[0] != 3.2 || waits[109] < (110-15)/14+5+3 {
		t.Errorf("on YARN 110 tasks wait %v, %v", waits, err)
	}
	half := miraStandalone(time.Minute, true)
	m := &miraMeter{fair: miraExecutors, last: 2, keep: true}
	if _, err := half.run(&workload.Workload{Jobs: []workload.Job{miraJob(2, "waves", -1, half.driver, miraBenchmark(110, 1).Stages, nil)}}, m); err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, r := range m.rows {
		most = max(most, r.Usable)
	}
	if most != miraExecutors/2 {
		t.Errorf("an application has up to %d executors", most)
	}
}

// TestSparkIsPreempted: an application that comes gets executors of another one, which holds all that it may.
func TestSparkIsPreempted(t *testing.T) {
	yarn := miraYARN(time.Second, true)
	long := miraBenchmark(2000, 1)
	short := miraBenchmark(50, 1)
	w := &workload.Workload{Jobs: []workload.Job{miraJob(1, "background", -1, time.Second, long.Stages, nil), miraJob(2, "query", -1, yarn.driver, short.Stages, nil)}}
	w.Jobs[1].Submitted = 60e9
	m := &miraMeter{fair: miraExecutors / 2, last: 2, keep: true}
	r, err := yarn.run(w, m)
	if err != nil {
		t.Fatal(err)
	}
	if r.Jobs[0].Preempted == 0 || !r.Jobs[1].Done {
		t.Errorf("the background lost %d tasks, and the query: %+v", r.Jobs[0].Preempted, r.Jobs[1])
	}
	for _, row := range m.rows {
		if row.Usable+row.BackUsable > miraExecutors-2 {
			t.Fatalf("at %v applications have %d and %d executors, beside two masters", time.Duration(row.At), row.Usable, row.BackUsable)
		}
	}
}

// TestLoadOfAnApplication: tasks of stages that wait for others are no load, and neither is the driver.
func TestLoadOfAnApplication(t *testing.T) {
	j := miraJob(2, "waves", -1, time.Second, miraBenchmark(3, 2).Stages, nil)
	b := cluster.NewBook(nil)
	if err := b.Enter(0, &cluster.Event{Kind: cluster.JobSubmitted, NewJob: &j.Job}); err != nil {
		t.Fatal(err)
	}
	state, _ := b.Snapshot().Job(2)
	if n := miraLoad(state); n != 0 || !miraDriverWaits(state) {
		t.Errorf("before the driver has ended, %d tasks could run", n)
	}
}
