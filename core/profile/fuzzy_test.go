package profile

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// powerLaw is a program of five phases without a bend.
func powerLaw(f Features) (seconds []float64) {
	input, cores := float64(f.Input)/float64(resource.GiB), float64(f.Cores)/float64(resource.Core)
	return []float64{40 * input / cores, 5 * input, 8 * math.Sqrt(input), 4 * input / cores, 20 * input / math.Sqrt(cores)}
}

// observePlanted adds runs of a program with noise of 8 %.
func observePlanted(t *testing.T, h *History, n int, program func(Features) []float64, r *rand.Rand) {
	t.Helper()
	for range n {
		run := Run{Features: drawFeatures(r)}
		for i, s := range program(run.Features) {
			d := time.Duration(s * math.Exp(0.08*r.NormFloat64()) * float64(time.Second))
			run.Phases = append(run.Phases,
				cluster.Phase{Duration: d, Demand: resource.Vector{resource.CPU: resource.Amount(500 * (1 + i%2))}})
		}
		if notes, err := h.Observe(app, run); err != nil || len(notes) > 0 {
			t.Fatal(notes, err)
		}
	}
}

// fuzzyDurations returns which durations of the likeliest variant ByFuzzy predicts, 0 for the whole run.
func fuzzyDurations(t *testing.T, h *History, f Features) (phases []int) {
	t.Helper()
	e, ok := h.Estimate(app, f)
	if !ok {
		t.Fatal("no estimate")
	}
	for _, d := range e.Variants[0].Details {
		if d.Model == ByFuzzy {
			phases = append(phases, d.Phase)
		}
	}
	return phases
}

// missedPhases returns the mean relative error of the estimated durations of phases.
func missedPhases(t *testing.T, h *History, program func(Features) []float64) (mean float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(78, 1))
	const n = 100
	for range n {
		f := drawFeatures(r)
		e, _ := h.Estimate(app, f)
		for i, want := range program(f) {
			mean += math.Abs(e.Variants[0].Phases[i].Duration.Seconds()/want-1) / 5 / n
		}
	}
	return mean
}

var middle = Features{Cores: 3000, Input: 4 * resource.GiB, Memory: 3 * resource.GiB}

// A program that bends is forecast by the fuzzy model once there are enough runs, and better; one without a bend is
// not.
func TestFuzzyWhereItErrsLess(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 11))
	var h History
	rowsOnly := History{Rows: []string{ByHuberLog, ByHuberErnest, BySVRLog, BySVR}}
	twin := rand.New(rand.NewPCG(5, 11))
	observePlanted(t, &h, FewestPhaseSamples-1, planted, r)
	if got := fuzzyDurations(t, &h, middle); got != nil {
		t.Errorf("%d runs: it predicts durations %v", FewestPhaseSamples-1, got)
	}
	observePlanted(t, &h, 141, planted, r)
	observePlanted(t, &rowsOnly, 200, planted, twin)
	got := fuzzyDurations(t, &h, middle)
	with, without := missedPhases(t, &h, planted), missedPhases(t, &rowsOnly, planted)
	t.Logf("200 runs: it predicts durations %v; errors of %.1f %%, without it %.1f %%", got, 100*with, 100*without)
	if !slices.Contains(got, 2) || !slices.Contains(got, 4) || with > 0.9*without {
		t.Error("phases that spill are not predicted better")
	}
	if got := fuzzyDurations(t, &rowsOnly, middle); got != nil {
		t.Errorf("it predicts durations %v, and is not allowed", got)
	}

	var straight History
	observePlanted(t, &straight, 70, powerLaw, rand.New(rand.NewPCG(0, 21)))
	if got := fuzzyDurations(t, &straight, middle); got != nil {
		t.Errorf("it predicts durations %v of a power law", got)
	}
}

// What a detail says of the fuzzy model: it learned from more runs than are kept, and its error is that at runs left
// out.
func TestFuzzySaysWhereFrom(t *testing.T) {
	var h History
	observePlanted(t, &h, 150, planted, rand.New(rand.NewPCG(6, 11)))
	e, _ := h.Estimate(app, middle)
	if want := "phases 1, 2, 4: lengths by model fuzzy, from 150 runs, mean error at most"; len(e.Notes) != 1 ||
		!strings.HasPrefix(e.Notes[0], want) {
		t.Errorf("notes %q, want %q", e.Notes, want)
	}
	for _, d := range e.Variants[0].Details {
		switch {
		case d.Model != ByFuzzy:
		case d.Of != "duration" || d.Samples < FewestPhaseSamples || d.Samples > 150 || d.Error < 0.03 || d.Error > 0.5:
			t.Errorf("%+v", d)
		default:
			return
		}
	}
	t.Errorf("no number is by the fuzzy model: %+v", e.Variants[0].Details)
}

// A history that was stored, read back and taught more gives the same estimates as one that stayed in memory.
func TestFuzzyIsReadBack(t *testing.T) {
	r, twin := rand.New(rand.NewPCG(7, 11)), rand.New(rand.NewPCG(7, 11))
	var h, stayed History
	for _, n := range []int{100, 30, 130} {
		observePlanted(t, &h, n, planted, r)
		observePlanted(t, &stayed, n, planted, twin)
		text, err := json.Marshal(&h)
		if err != nil {
			t.Fatal(err)
		}
		back, notes, err := ReadHistory(text)
		if err != nil || len(notes) > 0 {
			t.Fatal(notes, err)
		}
		h = *back
		if again, _ := json.Marshal(&h); string(again) != string(text) {
			t.Error("written again, it differs")
		}
		a, _ := h.Estimate(app, middle)
		if b, _ := stayed.Estimate(app, middle); !reflect.DeepEqual(a, b) {
			t.Errorf("%+v and %+v", a, b)
		}
		if len(fuzzyDurations(t, &h, middle)) == 0 {
			t.Error("the fuzzy model predicts nothing")
		}
	}
	full, _ := json.Marshal(h.apps[app].runs)
	older, _ := json.Marshal(h.apps[app].older)
	t.Logf("%d runs in full take %d bytes, the durations of %d more %d", len(h.apps[app].runs), len(full),
		len(h.apps[app].older), len(older))
	if len(h.apps[app].older) != mostOlder || len(older) > len(full) {
		t.Errorf("%d older runs take %d bytes", len(h.apps[app].older), len(older))
	}
}

// Runs that went two ways with as many phases are not mixed in one fuzzy model.
func TestFuzzyOfTwoVariants(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 11))
	var h History
	for i := range 200 {
		f := Features{Cores: 2000, Input: resource.Amount(1+i%3) * resource.GiB}
		slow := 1 + 4*float64(i%2)
		if _, err := h.Observe(app,
			Run{Features: f, Duration: time.Duration(slow * (10 + r.Float64()) * float64(time.Second)),
				Phases: []cluster.Phase{{Duration: time.Duration(slow * (10 + r.Float64()) * float64(time.Second))}}}); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB})
	if len(e.Variants) != 2 {
		t.Fatalf("%d variants", len(e.Variants))
	}
	for _, d := range slices.Concat(e.Variants[0].Details, e.Variants[1].Details) {
		if d.Model == ByFuzzy {
			t.Errorf("%+v", d)
		}
	}
}

func TestReadUnsoundOutlines(t *testing.T) {
	const head = `{"version":1,"apps":[{"name":"a","observed":9,"runs":[{"number":8,"duration_ns":5}],"older":[`
	for list, want := range map[string]string{
		`[7,1000,5,0,20,20]`:          "",
		`[7,1000,5,0,20]`:             "5 numbers: must be 6 to 21",
		`[9,1000,5,0,20,20]`:          "number 9: must be 0 to 8",
		`[-1,1000,5,0,20,20]`:         "number -1: must be 0 to 8",
		`[7,-1,5,0,20,20]`:            "cores -1: must be 0 to 1000000000",
		`[7,1000,5,0,20,0]`:           "0 ms: must be 1 to 315360000000",
		`[7,1000,5,0,315360000001,1]`: "315360000001 ms: must be 1 to 315360000000",
		`["seven"]`:                   "json: cannot unmarshal string into Go value of type int64",
	} {
		h, notes, err := ReadHistory([]byte(head + list + "]}]}"))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.TrimPrefix(strings.Join(notes, "; "), `"a" older run 1: left out: `)
		if kept := len(h.apps[App{Name: "a"}].older); got != want ||
			kept != len(slices.DeleteFunc([]string{want}, func(s string) bool { return s != "" })) {
			t.Errorf("%s: %q, kept %d", list, got, kept)
		}
	}
	_, notes, err := ReadHistory([]byte(`{"version":1,"apps":[{"name":"a","older":[[0,1,1,1,1,1]]}]}`))
	if err != nil || !reflect.DeepEqual(notes, []string{`"a" older run 1: left out: there is no newer run`}) {
		t.Error(notes, err)
	}
}

// BenchmarkLearn200 learns an application of five phases from the 40 runs that are kept and the durations of 160
// more, and estimates: with the fuzzy model and without.
func BenchmarkLearn200(b *testing.B) {
	for name, rows := range map[string][]string{"fuzzy": nil, "rows": {ByHuberLog, ByHuberErnest, BySVRLog, BySVR}} {
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(9, 11))
			h := History{Rows: rows}
			for range 200 {
				f := drawFeatures(r)
				run := Run{Features: f}
				for _, d := range phasesOf(f, 1, r) {
					run.Phases = append(run.Phases, cluster.Phase{Duration: d})
				}
				if _, err := h.Observe(app, run); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				p := h.apps[app]
				p.learned, p.asked = [2][]*variant{}, nil
				h.Estimate(app, middle)
			}
		})
	}
}

// The table of decision 33: mean errors of phases, and how many of six durations the fuzzy model predicts.
func TestFuzzyTable(t *testing.T) {
	if testing.Short() {
		t.Skip("fits models to 32 histories")
	}
	const seeds = 4
	for _, n := range []int{60, 70, 100, 200} {
		row := fmt.Sprintf("| %d |", n)
		for k, program := range []func(Features) []float64{planted, powerLaw} {
			var errors [2]float64
			by := 0
			for seed := range uint64(seeds) {
				for i, rows := range [][]string{nil, {ByHuberLog, ByHuberErnest, BySVRLog, BySVR}} {
					h := History{Rows: rows}
					observePlanted(t, &h, n, program, rand.New(rand.NewPCG(seed, 21)))
					errors[i] += missedPhases(t, &h, program) / seeds
					by += len(fuzzyDurations(t, &h, middle))
				}
			}
			row += fmt.Sprintf(" %.1f %%, without %.1f %% | %.1f |", 100*errors[0], 100*errors[1], float64(by)/seeds)
			if errors[0] > 1.1*errors[1]+0.001 || k == 0 && n >= 100 && errors[0] > 0.9*errors[1] {
				t.Errorf("%d runs, program %d: errors of %.1f %%, without it %.1f %%", n, k, 100*errors[0], 100*errors[1])
			}
		}
		t.Log(row)
	}
}
