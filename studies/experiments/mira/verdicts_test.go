package mira

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// sharedData is the folder of recorded data next to the project.
const sharedData = "../../../../shared/data"

// TestVerdictsOfMira: the paper's own numbers hold, and numbers on either side of a criterion do not.
func TestVerdictsOfMira(t *testing.T) {
	systems := append(rivals(true), own)
	queries := make([]workload.Job, 10)
	for i := range queries {
		queries[i].Stages = []cluster.Stage{{Tasks: i + 1, Duration: time.Second}}
	}
	// trial is a run of ten queries that take the given seconds each in the mean, and the longer ones less by the given
	// share each.
	trial := func(query, less, whole, rate, delay float64, missed int, wasted float64) []miraTrial {
		t := miraTrial{Whole: whole, Throughput: rate, efficiency: efficiency{Delay: 10 * delay, Came: 100,
			Unassigned: wasted * whole * executors, Increases: 1000, Missed: missed, Lasted: []float64{0.1}}}
		for i := range queries {
			t.Latency = append(t.Latency, query*(1+less*(4.5-float64(i))))
		}
		return []miraTrial{t}
	}
	all := func(rival, own []miraTrial) [][]miraTrial { return [][]miraTrial{rival, rival, rival, rival, own} }
	yarn, mira := trial(42, 0.01, 267, 87, 914, 435, 0.112), trial(10, 0, 148, 91, 131, 9, 0.029)
	shared := func(trials [][]miraTrial) []lab.Claim { return sharedClaims(systems, queries, trials, trials) }
	behind := all(yarn, mira)
	behind[3] = trial(10, 0, 148, 87, 131, 435, 0.029) // one baseline is as good
	readings := func(yarn, unset, mira []miraTrial) []lab.Claim {
		return readingClaims([][]miraTrial{yarn, unset, mira, mira, mira})
	}
	keeps := func(none, kept, next []miraTrial) []lab.Claim {
		return keepClaims([][][]miraTrial{{none, none, kept, none, next}, {kept, kept, kept, kept, kept}})
	}

	waits := func(first, of2, p75, of110 float64) [][]float64 {
		many := slices.Repeat([]float64{p75}, 110)
		many[0], many[109] = first, of110
		return [][]float64{{first, of2}, many, many}
	}
	waves := miraWaves{{time.Second, 0, 0.85, 28}, {time.Minute, 0, 0.63, 15}}
	grows := func(late float64) growth { return growth{[]float64{0, 0, 0, 0}, []float64{3, 3, 3, late}} }
	// real is a pool in which 8 and 112 tasks wait for warm executors, 112 for new ones, and a step divides executors.
	real := func(few, many, new, step float64) miraReal {
		return miraReal{[]measurement{{"go/executors=8", map[string]float64{"warm-p75-ms": few}},
			{"go/executors=112", map[string]float64{"warm-p75-ms": many, "warm-last-ms": many, "cold-p50-ms": new,
				"cold-last-ms": new}}},
			[]measurement{{"executors=112/applications=10", map[string]float64{"divided-p50-us": step}},
				{"executors=10000/applications=1000", map[string]float64{"divided-p50-us": step}}}}
	}
	paper := acquireClaims([][][]float64{waits(3.2, 5.4, 15.6, 16.1), waits(2.46, 3.4, 5, 9.9),
		waits(0.036, 1.1, 0.036, 1.1)}, waves, grows(9), real(36, 36, 1100, 99))
	flat := waits(1, 1, 1, 1)

	lives := miraLives{yarn: life{ready: 6.8, first: 3.2, all: 15, lag: 5},
		cold: life{ready: 2.9, met: 1.1, work: 9}, warm: life{work: 6}}
	alike := miraLives{yarn: life{all: 4}, cold: life{work: 9}, warm: life{work: 9}}
	times := func(yarn1, yarn60, alone, cold, warm, apart float64, lives miraLives) []lab.Claim {
		var all []miraTimes
		for _, v := range []float64{yarn1, yarn60, alone, alone, cold, warm, warm, apart} {
			all = append(all, miraTimes{Seconds: []float64{v, v, v, v}, Longer: [3]float64{0, v, 0}})
		}
		return aloneClaims(all, lives, poolSizes{{8, all[5], all[7]}})
	}
	for _, c := range []struct {
		name string
		made []lab.Claim
		want []lab.Verdict
	}{
		{"shared", shared(all(yarn, mira)), slices.Repeat([]lab.Verdict{lab.Holds}, 11)},
		{"shared, all alike", shared(all(mira, mira)), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails, lab.Fails, lab.Fails,
			lab.Fails, lab.Partly, lab.Fails,
			lab.Fails, lab.Fails, lab.Fails}},
		{"shared, one as good as Mira", shared(behind), []lab.Verdict{lab.Fails, lab.Fails, lab.Partly, lab.Holds, lab.Holds,
			lab.Fails, lab.Holds, lab.Fails,
			lab.Fails, lab.Fails, lab.Holds}},
		{"readings", readings(yarn, trial(42, 0, 304, 87, 914, 435, 0.112), mira), slices.Repeat([]lab.Verdict{lab.Holds},
			7)},
		{"readings, half of the row", readings(yarn, yarn, trial(10, 0, 148, 91, 131, 9, 0.08)), []lab.Verdict{lab.Fails,
			lab.Partly, lab.Holds, lab.Holds, lab.Partly, lab.Holds, lab.Holds}},
		{"readings, all alike", readings(yarn, yarn, yarn), []lab.Verdict{lab.Fails, lab.Fails, lab.Fails, lab.Partly,
			lab.Fails, lab.Fails, lab.Partly}},
		{"keeps", keepClaims([][][]miraTrial{{yarn, yarn, mira, yarn, yarn}}), []lab.Verdict{lab.Holds, lab.Holds}},
		{"keeps, faster in one mix", keeps(yarn, mira, yarn), []lab.Verdict{lab.Holds, lab.Partly}},
		{"keeps, in part", keeps(trial(10, 0, 148, 91, 131, 30, 0.02), trial(10, 0, 148, 91, 131, 15, 0.04),
			trial(10, 0, 148, 91, 131, 0, 0.08)), []lab.Verdict{lab.Partly, lab.Fails}},
		{"keeps, all alike", keeps(yarn, yarn, yarn), []lab.Verdict{lab.Fails, lab.Fails}},
		{"waits", paper, []lab.Verdict{lab.Untested, lab.Holds, lab.Untested, lab.Holds, lab.Holds, lab.Holds, lab.Holds,
			lab.Holds, lab.Holds, lab.Holds, lab.Holds, lab.Holds,
			lab.Holds, lab.Holds, lab.Holds}},
		{"waits, all alike", acquireClaims([][][]float64{flat, flat, flat}, miraWaves{waves[1], waves[0]}, grows(3),
			real(10, 100, 100, 300)), slices.Repeat([]lab.Verdict{lab.Fails}, 15)},
		{"real, in part", realClaims(real(10, 36, 1200, 150)), []lab.Verdict{lab.Holds, lab.Partly, lab.Partly, lab.Partly}},
		{"alone", times(63, 42, 64, 21, 20, 25, lives), []lab.Verdict{lab.Holds, lab.Holds, lab.Holds, lab.Holds, lab.Holds,
			lab.Holds, lab.Holds, lab.Holds,
			lab.Untested, lab.Holds, lab.Untested}},
		{"alone, standalone as fast", times(63, 42, 21, 21, 20, 20, alike),
			[]lab.Verdict{lab.Fails, lab.Fails, lab.Partly, lab.Partly, lab.Holds, lab.Fails, lab.Fails, lab.Fails, lab.Fails,
				lab.Fails, lab.Fails}},
	} {
		if got := lab.Verdicts(c.made); !slices.Equal(got, c.want) {
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
		m := meter{fair: 56}
		for _, r := range c.rows {
			m.increase(r)
		}
		if m.Increases != c.increases || m.Short != c.short || m.Missed != c.missed {
			t.Errorf("%s: %d increases, %d short, %d missed", c.name, m.Increases, m.Short, m.Missed)
		}
	}
}

// TestSparkAsksForExecutors: requests grow by 1, 2, 4, ... each second, YARN grants each server one container per
// second, and idle executors end; on a standalone cluster an application gets its half at most.
func TestSparkAsksForExecutors(t *testing.T) {
	alone := standalone(time.Second, false)
	waits, err := alone.wait(8)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{2.46, 3.46, 3.46, 4.46, 4.46, 4.46, 4.46, 5.46}
	if !slices.EqualFunc(waits, want, func(a, b float64) bool { return lab.Within(a-b, -1e-6, 1e-6) }) {
		t.Errorf("on a standalone cluster 8 tasks wait %v, want %v", waits, want)
	}
	yarn := yarn(time.Second, false)
	if waits, err = yarn.wait(110); err != nil || waits[0] != 3.2 || waits[109] < (110-15)/14+5+3 {
		t.Errorf("on YARN 110 tasks wait %v, %v", waits, err)
	}
	half := standalone(time.Minute, true)
	m := &meter{fair: executors, last: 2, keep: true}
	if _, err := half.run(
		&workload.Workload{Jobs: []workload.Job{job(2, "waves", -1, half.driver, benchmark(110, 1).Stages, nil)}},
		m); err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, r := range m.rows {
		most = max(most, r.Usable)
	}
	if most != executors/2 {
		t.Errorf("an application has up to %d executors", most)
	}
}

// TestSparkIsPreempted: an application that comes gets executors of another one, which holds all that it may.
func TestSparkIsPreempted(t *testing.T) {
	yarn := yarn(time.Second, true)
	long := benchmark(2000, 1)
	short := benchmark(50, 1)
	w := &workload.Workload{Jobs: []workload.Job{job(1, "background", -1, time.Second, long.Stages, nil),
		job(2, "query", -1, yarn.driver, short.Stages, nil)}}
	w.Jobs[1].Submitted = 60e9
	m := &meter{fair: executors / 2, last: 2, keep: true}
	r, err := yarn.run(w, m)
	if err != nil {
		t.Fatal(err)
	}
	if r.Jobs[0].Preempted == 0 || !r.Jobs[1].Done {
		t.Errorf("the background lost %d tasks, and the query: %+v", r.Jobs[0].Preempted, r.Jobs[1])
	}
	for _, row := range m.rows {
		if row.Usable+row.BackUsable > executors-2 {
			t.Fatalf("at %v applications have %d and %d executors, beside two masters", time.Duration(row.At), row.Usable,
				row.BackUsable)
		}
	}
}

// TestLoadOfAnApplication: tasks of stages that wait for others are no load, and neither is the driver.
func TestLoadOfAnApplication(t *testing.T) {
	j := job(2, "waves", -1, time.Second, benchmark(3, 2).Stages, nil)
	b := book.NewBook(nil)
	if err := b.Enter(0, &cluster.Event{Kind: cluster.JobSubmitted, NewJob: &j.Job}); err != nil {
		t.Fatal(err)
	}
	state, _ := b.Snapshot().Job(2)
	if n := load(state); n != 0 || !driverWaits(state) {
		t.Errorf("before the driver has ended, %d tasks could run", n)
	}
}

// Two tasks of 10 s and then one, on a standalone cluster: executors come 2.46 s after their requests, at 2.9 s and
// 3.9 s. They hold memory from the requests on, until they have been idle for so long, or to the end at 26.36 s. On
// Mira all executors of the pool hold memory all the time.
func TestMemoryThatIdleExecutorsHold(t *testing.T) {
	first, second := benchmark(2, 1).Stages[0], benchmark(1, 1).Stages[0]
	second.Parents = []int{0}
	w := func(s *system) *workload.Workload {
		return &workload.Workload{Jobs: []workload.Job{job(2, "waves", -1, s.driver, []cluster.Stage{first, second},
			nil)}}
	}
	for _, c := range []struct {
		system      system
		held, spare float64
		begun       int
	}{
		{standalone(time.Minute, false), 23.46 + 22.46, 15.92, 2},
		{standalone(time.Second, false), 23.46 + 13.46, 6.92, 2},
		// ends after the start of two executors, driver and tasks
		{own, 25.1 * executors, 25.1*executors - 30 - 2.9, 0},
	} {
		m := &meter{fair: executors, last: 2}
		if _, err := c.system.run(w(&c.system), m); err != nil {
			t.Fatal(err)
		}
		if !lab.Within(m.Held-c.held, -1e-6, 1e-6) || !lab.Within(m.Spare-c.spare, -1e-6, 1e-6) || m.Begun != c.begun {
			t.Errorf("%s: executors hold memory for %v ES, %v of them idle, and %d started; want %v, %v, %d", c.system.name,
				m.Held, m.Spare, m.Begun, c.held, c.spare, c.begun)
		}
	}
}

// wantWaves checks that each task of j took as long as its truth says for what its executor had run before: the first
// task of the executor, the first of the stage there, or a later one. It returns how many tasks there were of each.
func wantWaves(t *testing.T, j workload.Job) (seen [3]int) {
	t.Helper()
	s := own.newly()
	w := &workload.Workload{Jobs: []workload.Job{job(2, j.Name, -1, s.driver, j.Stages, j.Truth)}}
	r, err := s.run(w, &meter{fair: executors, last: 2})
	if err != nil {
		t.Fatal(err)
	}
	ran := map[cluster.NodeID]map[int32]bool{}
	for _, task := range r.Tasks { // in the order of launch
		before := ran[task.Node]
		warmth := workload.Warm
		switch {
		case before == nil:
			warmth, ran[task.Node] = workload.Fresh, map[int32]bool{}
		case !before[task.ID.Stage]:
			warmth = workload.First
		}
		ran[task.Node][task.ID.Stage] = true
		if task.ID.Stage == 0 { // the driver
			continue
		}
		seen[warmth]++
		if task.Warmth != warmth {
			t.Fatalf("%s: %v ran with warmth %d, want %d", j.Name, task.ID, task.Warmth, warmth)
		}
		truth := &w.Jobs[0].Truth[task.ID.Stage]
		later, _ := truth.Duration.Of(int(task.ID.Index))
		if got, want := task.Finished.Sub(task.Launched), truth.DurationIn(warmth, int(task.ID.Index), later); got != want {
			t.Fatalf("%s: %v took %v, want %v with warmth %d", j.Name, task.ID, got, want, warmth)
		}
	}
	return seen
}

// TestWavesOfAnApplication: tasks of each wave take as long as those of that wave, for each executor and stage.
func TestWavesOfAnApplication(t *testing.T) {
	j := benchmark(300, 2)
	for i := range j.Stages {
		j.Truth = append(j.Truth, workload.StageTruth{Duration: workload.ForAll(time.Duration(i+1) * time.Second),
			Fresh: []time.Duration{7 * time.Second, 8 * time.Second}, First: []time.Duration{3 * time.Second, 4 * time.Second,
				5 * time.Second}})
	}
	// One executor is not fresh for the first stage: it has served the driver.
	if got, want := wantWaves(t, j), [3]int{600 - 224, 113, 111}; got != want {
		t.Errorf("%v tasks later, first of their stage, first of their executor; want %v", got, want)
	}
}

// TestRecordedWavesStay: what was recorded of fresh executors, of first and of later tasks is what tasks take, each
// by itself.
func TestRecordedWavesStay(t *testing.T) {
	file := filepath.Join(sharedData, "decima-tpch", "tpch-spark-dags.jsonl.gz")
	packed, err := os.Open(file)
	if err != nil {
		t.Skip("needs ../shared/data/decima-tpch, recorded by others")
	}
	defer packed.Close()
	text, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := decimaWaves(sharedData)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*workload.Job{}
	for i := range jobs {
		byName[jobs[i].Name] = &jobs[i]
	}
	checked := [2]int{}
	for d := json.NewDecoder(text); ; {
		var q struct {
			Size   string
			Query  int
			Stages []struct{ Fresh, Rest map[string][]int }
		}
		if err := d.Decode(&q); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		j := byName[fmt.Sprintf("q%d-%s", q.Query, q.Size)]
		for i, s := range q.Stages {
			truth := &j.Truth[i]
			for k, recorded := range [][]int{s.Fresh["50"], s.Rest["50"]} { // as many executors as the truth is of
				tasks := [][]time.Duration{truth.Fresh, truth.Duration.Values()}[k]
				for n := range min(len(recorded), len(tasks)) {
					if want := max(time.Duration(recorded[n])*time.Millisecond, time.Millisecond); tasks[n] != want {
						t.Fatalf("%s, stage %d: task %d takes %v, recorded were %v", j.Name, i, n, tasks[n], want)
					}
					checked[k]++
				}
			}
		}
	}
	if checked[0] < 1000 || checked[1] < 10000 {
		t.Errorf("%d durations of fresh executors and %d of later tasks were compared", checked[0], checked[1])
	}
	for _, name := range []string{"q7-10g", "q21-10g"} {
		if seen := wantWaves(t, *byName[name]); slices.Contains(seen[:], 0) {
			t.Errorf("%s: %v tasks later, first of their stage, first of their executor", name, seen)
		}
	}
}

// TestMeasurements: a line of a benchmark is read as go test prints it, and one that is none is named.
func TestMeasurements(t *testing.T) {
	m, err := measurementOf([]string{"BenchmarkAcquisition/go/executors=8-2", "5", "2.5", "warm-p75-ms", "60",
		"cold-p75-ms"})
	if err != nil || m.name != "go/executors=8" || m.of["warm-p75-ms"] != 2.5 || m.of["cold-p75-ms"] != 60 {
		t.Errorf("%v, %v", m, err)
	}
	for _, bad := range [][]string{{}, {"BenchmarkA/b-2", "5", "2.5"}, {"BenchmarkA/b-2", "5", "two", "ms"},
		{"ok", "example.org/a"}} {
		if m, err := measurementOf(bad); err == nil {
			t.Errorf("%q: %v", bad, m)
		}
	}
	if _, tables, err := miraMeasured(); err != nil || len(tables) != 2 {
		t.Errorf("%d tables, %v", len(tables), err)
	}
}
