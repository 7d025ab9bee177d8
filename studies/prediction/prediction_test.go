package prediction

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fixed reserves an amount, and knows how often it was told what.
type fixed struct {
	bytes           float64
	learned, failed *int
}

func (f fixed) first(*task) float64               { return f.bytes }
func (f fixed) next(_ *task, had float64) float64 { return 2 * had }

type counted struct{ fixed }

func (c counted) learn(*task)           { *c.fixed.learned++ }
func (c counted) failed(*task, float64) { *c.fixed.failed++ }

// TestReplay: wastage, failures and growth of one task are as the package comment has them.
func TestReplay(t *testing.T) {
	const hour = 3600 * 1000
	one := []task{{process: "p", peak: 5e9, request: 16e9, start: 1, lasts: hour, selected: true}}
	for _, c := range []struct {
		bytes float64
		fails failsAfter
		grows bool
		want  score
	}{
		{bytes: 7e9, fails: whole, want: score{Wastage: 2}},
		{bytes: 5e9, fails: whole, want: score{}},
		{bytes: 0, fails: whole, want: score{Wastage: 11}},
		{bytes: 99e9, fails: whole, want: score{Wastage: 11}},
		{bytes: 2e9, fails: whole, want: score{Wastage: 2 + 4 + 3, Failures: 2}},
		{bytes: 2e9, fails: half, want: score{Wastage: 1 + 2 + 3, Failures: 2}},
		{bytes: 2e9, fails: aSecond, want: score{Wastage: 6.0/3600 + 3, Failures: 2}},
		{bytes: 2e9, grows: true, want: score{Grown: 1, GrownGBh: 3}},
	} {
		learned, failed := 0, 0
		x := contender{make: func() method { return counted{fixed{c.bytes, &learned, &failed}} }, fails: c.fails,
			grows: c.grows}
		o := x.replay(one)
		if math.Abs(o.All.Wastage-c.want.Wastage) > 1e-9 || o.All.Failures != c.want.Failures ||
			o.All.Grown != c.want.Grown || math.Abs(o.All.GrownGBh-c.want.GrownGBh) > 1e-9 || o.Selected != o.All ||
			learned != 1 || failed != c.want.Failures {
			t.Errorf("%+v: %+v, learned %d, failed %d", c, o.All, learned, failed)
		}
	}
}

// TestKnowsWhatHasEnded: a method knows at a start what ended before, or at the same time, and nothing else.
func TestKnowsWhatHasEnded(t *testing.T) {
	tasks := []task{{process: "p", peak: 5, request: 1e6, start: 1000, lasts: 1000},
		{process: "p", peak: 6, request: 1e6, start: 1999, lasts: 5000},
		{process: "p", peak: 7, request: 1e6, start: 2000, lasts: 9},
		{process: "q", peak: 8, request: 1e6, start: 9000, lasts: 1}}
	var asked []float64
	c := contender{make: func() method { return &asking{asked: &asked} }, fails: whole}
	c.replay(tasks)
	if want := []float64{0, 0, 5, 0}; !slices.Equal(asked, want) {
		t.Errorf("the largest peaks that were known: %v, want %v", asked, want)
	}
}

// asking keeps what it knew at each start.
type asking struct {
	doubles
	asked *[]float64
	most  float64
}

func (a *asking) learn(t *task) { a.most = max(a.most, t.peak) }
func (a *asking) first(*task) float64 {
	*a.asked = append(*a.asked, a.most)
	return 0
}

const table = `workflow,process,status,memory_req_bytes,start_ms,realtime_ms,peak_rss,rchar
w,p,COMPLETED,100,20,5,50,7
w,p,COMPLETED,100,10,5,40,
w,p,FAILED,100,10,5,40,7
w,p,COMPLETED,100,10,5,,7
v,p,COMPLETED,100,10,0,40,7
`

func TestParse(t *testing.T) {
	all, err := parse(strings.NewReader(table))
	if err != nil || len(all) != 2 || all[0].skipped != 2 || all[1].skipped != 1 || len(all[0].tasks) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	want := task{process: "p", peak: 40, request: 100, start: 10, lasts: 5}
	if all[0].tasks[0] != want || all[0].tasks[1].input != 7 {
		t.Errorf("%+v", all[0].tasks)
	}
	for _, text := range []string{"", "workflow,process\n", strings.Replace(table, ",40,7", ",40", 1)} {
		if _, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	w := workflow{name: "w"}
	for i := range 40 {
		w.tasks = append(w.tasks, task{process: "p", start: int64(40 - i)}, task{process: "brief", start: 1})
	}
	w.tasks = append(w.tasks, task{process: "rare"})
	w.prepare(map[string]bool{"w brief": true})
	chosen := 0
	for _, task := range w.tasks {
		if task.selected {
			chosen++
			if task.process != "p" || task.start <= 12 {
				t.Errorf("selected %+v", task)
			}
		}
	}
	if chosen != 28 {
		t.Errorf("%d selected, want 28 of 40", chosen)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(table)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, w := range all {
			for _, c := range contenders() {
				if o := c.replay(w.tasks[:min(5, len(w.tasks))]); !(o.All.Wastage >= 0) || math.IsInf(o.All.Wastage, 0) {
					t.Errorf("%s wastes %v on %q", c.name, o.All.Wastage, text)
				}
			}
		}
	})
}

// made are tasks whose peak follows the input with noise.
func made(seed uint64, n int, noise float64) (tasks []task) {
	random := rand.New(rand.NewPCG(seed, 7))
	for i := range n {
		input := 1e9 * (1 + random.Float64()*9)
		tasks = append(tasks, task{process: "p", input: input, peak: (1e9 + input/2) * math.Exp(noise*random.NormFloat64()),
			request: 64e9, start: int64(i+1) * 1000, lasts: 900, selected: true})
	}
	return tasks
}

// TestMethodsLearn: every method that learns wastes much less than requests do, and those that look at the input less
// than those that do not.
func TestMethodsLearn(t *testing.T) {
	tasks := made(1, 400, 0.02)
	waste := map[string]float64{}
	for _, c := range contenders() {
		if !c.grows && c.fails == whole {
			waste[c.name] = c.replay(tasks).All.Wastage / gigabyteHours * 1e15
		}
	}
	for name, w := range waste {
		if name != "requests" && w > waste["requests"]/5 {
			t.Errorf("%s wastes %v, requests %v", name, w, waste["requests"])
		}
	}
	for _, by := range []string{"Witt linear", "Sizey", ours} {
		if waste[by] > 0.7*waste["Witt percentile"] {
			t.Errorf("%s wastes %v, Witt percentile %v", by, waste[by], waste["Witt percentile"])
		}
	}
}

// TestTovar: what it reserves wastes least of all peaks, by a slow reference.
func TestTovar(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 9))
		var m tovar
		var tasks []*task
		for range 1 + random.IntN(20) {
			x := &task{peak: float64(1 + random.IntN(10)), lasts: int64(1 + random.IntN(100))}
			tasks = append(tasks, x)
			m.learn(x)
		}
		got, least, largest := m.first(nil), math.Inf(1), 0.0
		for _, x := range tasks {
			largest = max(largest, x.peak)
		}
		cost := func(a float64) (sum float64) {
			for _, x := range tasks {
				sum += a * float64(x.lasts)
				if x.peak > a {
					sum += largest * float64(x.lasts)
				}
			}
			return sum
		}
		for _, x := range tasks {
			least = min(least, cost(x.peak))
		}
		if math.Abs(cost(got)-least) > 1e-6 {
			t.Errorf("seed %d: reserves %v, which costs %v instead of %v", seed, got, cost(got), least)
		}
	}
}

func TestParts(t *testing.T) {
	if got := percentile([]float64{1, 2, 3, 4}, 0.95); math.Abs(got-3.85) > 1e-12 {
		t.Errorf("percentile %v", got)
	}
	var l line
	for i := range 5 {
		l.add(float64(i), 3*float64(i)+1)
	}
	if got := l.at(10); math.Abs(got-31) > 1e-9 {
		t.Errorf("line %v", got)
	}
	if got := kendall([]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}); math.Abs(got-2.0/3) > 1e-12 {
		t.Errorf("tau %v", got)
	}
	var x, y []float64
	for i := range 100 {
		x, y = append(x, float64(i)/99), append(y, math.Abs(float64(i)/99-0.5))
	}
	for name, fit := range map[string]func(x, y []float64) func(float64) float64{"pieces": fitPieces, "forest": fitForest,
		"neighbours": func(x, y []float64) func(float64) float64 { return fitNeighbours(x, y, 3, true) }} {
		if got := fit(x, y)(0.25); math.Abs(got-0.25) > 0.03 {
			t.Errorf("%s %v, want 0.25", name, got)
		}
		if a := accuracyOf(x, y, 10, fit); a > 0 || a < -0.5 {
			t.Errorf("%s: accuracy %v", name, a)
		}
	}
	var a autopilot
	for range 100 {
		a.learn(&task{peak: 1e9})
	}
	if got := a.first(nil); got < 1.15e9 || got > 1.05*1.15e9 {
		t.Errorf("autopilot %v", got)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		got  lab.Claim
		want lab.Verdict
	}{
		{judgeFree("", []float64{0.1, 0.6}, 0.5), lab.Holds}, {judgeFree("", []float64{0.1, 0.61}, 0.6), lab.Partly},
		{judgeFree("", []float64{0.1, 0.9}, 0.61), lab.Fails},
		{judgeStrict("", []float64{1, 1}, 1), lab.Holds}, {judgeStrict("", []float64{1, 1.01}, 1), lab.Partly},
		{judgeStrict("", []float64{1, 1.01, 2}, 1), lab.Fails},
		{judgeFailures("", []int{1, 2}, []int{1, 2}), lab.Holds}, {judgeFailures("", []int{0, 2}, []int{1, 1}), lab.Partly},
		{judgeFailures("", []int{2, 2}, []int{1, 2}), lab.Fails},
	} {
		if c.got.Holds != c.want {
			t.Errorf("%s: %s, want %s", c.got.Says, c.got.Holds, c.want)
		}
	}
}
