package profile

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

var app = App{Owner: "ann", Name: "sort"}

// short is a run of two phases of the given lengths in seconds.
func short(cores, input resource.Amount, first, second float64) Run {
	return Run{Features: Features{Cores: cores * resource.Core, Input: input * resource.GiB},
		Phases: []cluster.Phase{
			{Name: "read", Duration: time.Duration(first * 1e9), Demand: use(1, 100, 80, 0)},
			{Name: "sort", Duration: time.Duration(second * 1e9), Demand: use(2, 500, 0, 0)}}}
}

func observe(t *testing.T, h *History, runs ...Run) {
	t.Helper()
	for _, r := range runs {
		if notes, err := h.Observe(app, r); err != nil || len(notes) > 0 {
			t.Fatal(notes, err)
		}
	}
}

func seconds2(phases []cluster.Phase) (s []float64) {
	for _, p := range phases {
		s = append(s, math.Round(p.Duration.Seconds()*100)/100)
	}
	return s
}

func TestOneRun(t *testing.T) {
	var h History
	if _, ok := h.Estimate(app, Features{}); ok {
		t.Error("an estimate without a run")
	}
	observe(t, &h, short(2, 2, 10, 30))
	e, _ := h.Estimate(app, Features{Cores: 2000, Input: 4 * resource.GiB})
	v := e.Variants[0]
	want := cluster.Provenance{Model: AsMeasured, Samples: 1}
	if v.Duration != 80*time.Second || !reflect.DeepEqual(seconds2(v.Phases), []float64{20, 60}) || v.Told != want ||
		v.Phases[1].Name != "sort" {
		t.Errorf("got %+v", v)
	}
	if v.Phases[0].Demand != use(1, 100, 80, 0) || v.Peak != use(2, 500, 80, 0) {
		t.Errorf("demand %v, peak %v", v.Phases[0].Demand, v.Peak)
	}
	notes := []string{"input 4GiB: outside of what was measured, 2GiB", "runs 1: the error is unknown"}
	if !reflect.DeepEqual(e.Notes, notes) {
		t.Errorf("notes %q", e.Notes)
	}
	if e, _ = h.Estimate(app, Features{Cores: 2000}); e.Variants[0].Duration != 40*time.Second {
		t.Errorf("without an input: %v", e.Variants[0].Duration)
	}
}

func TestFewRuns(t *testing.T) {
	var h History
	observe(t, &h, short(2, 1, 10, 30), short(2, 2, 22, 60), short(2, 4, 40, 130))
	e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB})
	v := e.Variants[0]
	// Scaled to 1 GiB, reading takes 10, 11 and 10 s, sorting 30, 30 and 32.5 s, the whole 40, 41 and 42.5 s.
	if got := seconds2(v.Phases); v.Duration != 41*time.Second || !reflect.DeepEqual(got, []float64{10.25, 30.75}) {
		t.Errorf("got %v, %v", v.Duration, got)
	}
	if d := v.Details[0]; d.Model != ByMedian || d.Samples != 3 || !(d.Error > 0.01 && d.Error < 0.05) ||
		math.Abs(d.Spread-2.5/41) > 1e-9 || len(v.Details) != 15 {
		t.Errorf("details %+v", v.Details)
	}
}

// Inputs that are nearly the same say nothing about other inputs: run time is then in proportion, as for few runs.
func TestFarOutside(t *testing.T) {
	var h History
	for i := range 12 {
		observe(t, &h, Run{Features: Features{Cores: 1000, Input: resource.GiB + resource.Amount(i%4)*50*resource.MiB},
			Duration: time.Duration(100+i%5) * time.Second})
	}
	e, _ := h.Estimate(app, Features{Cores: 1000, Input: 10 * resource.GiB})
	if v := e.Variants[0]; v.Told.Model != ByMedian || v.Duration < 850*time.Second || v.Duration > 1050*time.Second {
		t.Errorf("got %v, %+v", v.Duration, v.Told)
	}
	if want := []string{"input 10GiB: outside of what was measured, 1GiB to 1174MiB"}; !reflect.DeepEqual(e.Notes, want) {
		t.Errorf("notes %q", e.Notes)
	}
}

// Recent runs weigh more: after as many runs as a half-life, a program that became slower is believed.
func TestRecentRuns(t *testing.T) {
	var h History
	for range 15 {
		observe(t, &h, short(2, 1, 10, 30))
	}
	for range 12 {
		observe(t, &h, short(2, 1, 12, 36))
	}
	if e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB}); e.Variants[0].Duration != 48*time.Second ||
		len(e.Variants) != 1 {
		t.Errorf("got %+v", e.Variants)
	}
}

func TestVariants(t *testing.T) {
	three := short(2, 1, 10, 30)
	three.Phases = append(three.Phases, cluster.Phase{Duration: 5 * time.Second, Demand: use(0, 10, 50, 0)})
	wobble := func(i int) float64 { return 1 + float64(i%3)/100 }
	for _, test := range []struct {
		what  string
		runs  func(i int) Run
		n     int
		whys  []string
		kept  []int
		first time.Duration
	}{
		{"one way", func(i int) Run { return short(2, 1, 10*wobble(i), 30) }, 12, []string{""}, []int{12}, 0},
		{"one phase more", func(i int) Run {
			if i%4 == 1 {
				return three
			}
			return short(2, 1, 10, 30)
		}, 8, []string{"", "phases: 3 instead of 2"}, []int{6, 2}, 40 * time.Second},
		{"the recent way of equally many", func(i int) Run {
			if i < 2 {
				return three
			}
			return short(2, 1, 10, 30)
		}, 4, []string{"", "phases: 3 instead of 2"}, []int{2, 2}, 40 * time.Second},
		{"twice as long", func(i int) Run {
			if i%3 == 1 {
				return short(2, 1, 20*wobble(i), 60)
			}
			return short(2, 1, 10*wobble(i), 30)
		}, 9, []string{"", "takes 2x as long with the same features"}, []int{6, 3}, 0},
		{"twice as long, other inputs", func(i int) Run {
			size := float64(1 + i%5)
			r := short(2, resource.Amount(size), 10*size*wobble(i), 30*size)
			if i%3 == 1 {
				r = short(2, resource.Amount(size), 20*size*wobble(i), 60*size)
			}
			return r
		}, 20, []string{"", "takes 2x as long with the same features"}, []int{13, 7}, 0},
		{"longer because of more input", func(i int) Run { return short(2, resource.Amount(1+9*(i%2)), 10, 30) }, 8,
			[]string{""}, []int{8}, 0},
		{"the other way round", func(i int) Run {
			r := short(2, 1, 20, 20)
			if i%3 == 1 {
				r.Phases[0], r.Phases[1] = r.Phases[1], r.Phases[0]
			}
			return r
		}, 9, []string{"", "uses cpu earlier in its run"}, []int{6, 3}, 0},
	} {
		t.Run(test.what, func(t *testing.T) {
			var h History
			for i := range test.n {
				observe(t, &h, test.runs(i))
			}
			e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB})
			var whys []string
			var kept []int
			share := 0.0
			for _, v := range e.Variants {
				whys, kept, share = append(whys, v.Why), append(kept, v.Runs), share+v.Share
			}
			if !reflect.DeepEqual(whys, test.whys) || !reflect.DeepEqual(kept, test.kept) || math.Abs(share-1) > 1e-9 {
				t.Errorf("%d runs: %q, shares %v", kept, whys, share)
			}
			if got := e.Variants[0].Duration; test.first > 0 && got != test.first {
				t.Errorf("duration %v", got)
			}
		})
	}
}

// A run in which a phase was found as two counts as the other runs.
func TestJoinedPhases(t *testing.T) {
	var h History
	observe(t, &h, short(2, 1, 10, 30), short(2, 1, 11, 31))
	split := short(2, 1, 10, 30)
	split.Phases = []cluster.Phase{split.Phases[0], {Duration: time.Second, Demand: use(2, 450, 80, 0)},
		{Duration: 14 * time.Second, Demand: use(1.9, 490, 0, 0)},
		{Name: "sort", Duration: 15 * time.Second, Demand: use(2, 500, 0, 0)}}
	observe(t, &h, split)
	e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB})
	v := e.Variants[0]
	if len(e.Variants) != 1 || v.Runs != 3 || len(v.Phases) != 2 || v.Phases[1].Demand != use(2, 500, 0, 0) {
		t.Errorf("got %+v", v)
	}
	if want := []string{"runs 1: had more phases, which were joined to the 2 of the other runs"}; !reflect.DeepEqual(
		e.Notes, want) {
		t.Errorf("notes %q", e.Notes)
	}
	if kept, _ := h.Runs(app); len(kept[2].Phases) != 4 {
		t.Error("what is kept was changed")
	}
}

// Runs without measured phases count for the whole run.
func TestRunsWithoutPhases(t *testing.T) {
	var h History
	observe(t, &h, short(2, 1, 10, 30), Run{Features: short(2, 1, 0, 0).Features, Duration: 44 * time.Second,
		Unknown: resource.KindsOf(resource.Disk)})
	e, _ := h.Estimate(app, Features{Cores: 2000, Input: resource.GiB})
	v := e.Variants[0]
	if len(e.Variants) != 1 || v.Duration != 42*time.Second || v.Runs != 2 || len(v.Phases) != 2 ||
		v.Details[3].Samples != 1 || v.Details[0].Samples != 2 {
		t.Errorf("got %+v", e)
	}
}

func TestUnsoundRuns(t *testing.T) {
	good := short(2, 1, 10, 30)
	for _, test := range []struct {
		what   string
		change func(*Run)
		notes  string
		err    string
		phases int
	}{
		{"sound", func(*Run) {}, "", "", 2},
		{"nothing", func(r *Run) { r.Phases = nil }, "", "run: has neither a duration nor a phase with one", 0},
		{"a phase without length", func(r *Run) {
			r.Phases[0].Duration = 0
		}, "phase 1 duration 0s: must be above 0s and at most 87600h0m0s, left out", "", 1},
		{"a phase that ends before it begins", func(r *Run) { r.Phases[1].Duration = -time.Second },
			"phase 2 duration -1s: must be above 0s and at most 87600h0m0s, left out", "", 1},
		{"negative demand", func(r *Run) {
			r.Phases[1].Demand[resource.Disk] = -1
		}, "phase 2 disk -1: must be 0 to 1000000000000000000, disk is taken as unknown", "", 2},
		{"features", func(r *Run) {
			r.Cores, r.Input = -1, math.MinInt64
		}, "cores -1: must be 0 to 1000000000, taken as unknown; input -9223372036854775808: must be 0 to " +
			"1000000000000000000, taken as unknown", "", 2},
		{"a duration that is none", func(r *Run) {
			r.Duration = -1
		}, "duration -1ns: must be above 0s and at most 87600h0m0s, taken from the phases", "", 2},
		{"phases of another run", func(r *Run) {
			r.Duration = time.Hour
		}, "phases last 40s of a run of 1h0m0s: they are left out", "", 0},
		{"endless", func(r *Run) {
			r.Phases[0].Duration, r.Phases[1].Duration = cluster.LongestTime, cluster.LongestTime
		}, "", "run: phases last 175200h0m0s, must be at most 87600h0m0s together", 0},
		{"many phases", func(r *Run) {
			for range 50 {
				r.Phases = append(r.Phases, r.Phases[:2]...)
			}
		}, "phases 102: at most 16 are kept, the most alike are joined", "", 16},
	} {
		t.Run(test.what, func(t *testing.T) {
			var h History
			r := good
			r.Phases = append([]cluster.Phase{}, good.Phases...)
			test.change(&r)
			notes, err := h.Observe(app, r)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if strings.Join(notes, "; ") != test.notes || got != test.err {
				t.Errorf("notes %q, error %q", notes, got)
			}
			kept, observed := h.Runs(app)
			if (err == nil) != (observed == 1) || err == nil && len(kept[0].Phases) != test.phases {
				t.Errorf("kept %+v of %d", kept, observed)
			}
			if err != nil {
				return
			}
			// The notes stay with the run, and are not added again.
			text, err := h.MarshalJSON()
			again, _, failed := ReadHistory(text)
			if err := errors.Join(err, failed); err != nil {
				t.Fatal(err)
			}
			if kept, _ := again.Runs(app); strings.Join(kept[0].Notes, "; ") != test.notes {
				t.Errorf("read back with %q", kept[0].Notes)
			}
		})
	}
}

// Of many runs, repeats are forgotten before rare features.
func TestMostRuns(t *testing.T) {
	var h History
	observe(t, &h, short(8, 1, 10, 30))
	for i := range 500 {
		observe(t, &h, short(2, resource.Amount(1+i%2), 10, 30))
	}
	kept, observed := h.Runs(app)
	if len(kept) != MostRuns || observed != 501 || kept[0].Cores != 8000 {
		t.Errorf("kept %d of %d, the first with %d", len(kept), observed, kept[0].Cores)
	}
	if n := h.Forget(app); n != MostRuns || len(h.Apps()) != 0 {
		t.Errorf("forgot %d", n)
	}
}

func TestHistoryIsReadBack(t *testing.T) {
	var h History
	for i := range 60 {
		observe(t, &h, short(resource.Amount(1+i%4), resource.Amount(1+i%3), 10+float64(i%7), 30))
	}
	if _, err := h.Observe(App{Owner: "bob", Name: "x", Stage: "map"}, short(1, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	back, notes, err := ReadHistory(text)
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	f := Features{Cores: 3000, Input: 2 * resource.GiB}
	for _, app := range h.Apps() {
		a, _ := h.Estimate(app, f)
		b, ok := back.Estimate(app, f)
		if !ok || !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %+v and %+v", app, a, b)
		}
	}
	again, _ := json.Marshal(back)
	if string(again) != string(text) {
		t.Error("written again, it differs")
	}
}

func TestReadUnsoundHistory(t *testing.T) {
	for _, test := range []struct{ text, notes, err string }{
		{`{"version":1,"apps":[]}`, "", ""},
		{`{"version":2,"apps":[]}`, "", "version 2: must be 1: history of another version"},
		{`{}`, "", "version 0: must be 1: history of another version"},
		{`{"version":1,"apps":[{"name":"a","runs":[{"duration_ns":NaN}]}]}`, "",
			"history: invalid character 'N' looking for beginning of value"},
		{`{"version":1,"apps":[{"name":"a","runs":[{"number":0},{"duration_ns":"long"},{"duration_ns":1,"peak":[1,2,3,4,5]}]}]}`,
			`"a" run 1: left out: run: has neither a duration nor a phase with one; "a" run 2: left out: json: cannot unmarshal string into Go struct field runForm.numbered.Run.duration_ns of type time.Duration; ` +
				`"a" run 3: peak has 5 resources: must be at most 4, the rest is left out`, ""},
		{`{"version":1,"apps":[{"name":"a","runs":[{"phases":[{"duration_ns":5,"demand":[1000,5]}]},{"number":-7,"duration_ns":1}]}]}`,
			`"a" run 1: phase 1 has no disk, taken as unknown; "a" run 1: phase 1 has no network, taken as unknown; "a" run 2: number -7: must be 1 to 1099511627775, taken as 1`, ""},
	} {
		h, notes, err := ReadHistory([]byte(test.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if h == nil || strings.Join(notes, "; ") != test.notes || got != test.err {
			t.Errorf("%s: notes %q, error %q", test.text, notes, got)
		}
	}
	if _, _, err := ReadHistory([]byte(`{"version":7}`)); !errors.Is(err, ErrHistoryVersion) {
		t.Error(err)
	}
}

// randomRun returns any run, sound or not.
func randomRun(random *rand.Rand) Run {
	amount := func() resource.Amount {
		switch random.IntN(8) {
		case 0:
			return 0
		case 1:
			return -1
		case 2:
			return math.MaxInt64
		}
		return resource.Amount(math.Exp(20 * random.Float64()))
	}
	vector := func() (v resource.Vector) {
		for k := range v {
			v[k] = amount()
		}
		return v
	}
	r := Run{Features: Features{amount(), amount(), amount()}, Peak: vector(), Unknown: resource.Kinds(random.IntN(16))}
	if random.IntN(3) == 0 {
		r.Features = Features{Cores: resource.Amount(1+random.IntN(3)) * resource.Core, Input: resource.GiB}
	}
	for range random.IntN(4) {
		r.Phases = append(r.Phases, cluster.Phase{Duration: time.Duration(amount()), Demand: vector()})
	}
	if random.IntN(2) == 0 {
		r.Duration = time.Duration(amount())
	}
	return r
}

// What holds of every estimate, whatever was observed.
func checkEstimate(t *testing.T, h *History, app App, f Features) {
	t.Helper()
	e, ok := h.Estimate(app, f)
	kept, _ := h.Runs(app)
	if ok != (len(kept) > 0) {
		t.Fatalf("%d runs, estimate %v", len(kept), ok)
	}
	share := 0.0
	for i, v := range e.Variants {
		share += v.Share
		if (i == 0) != (v.Why == "") || v.Runs < 1 || i > 0 && v.Share > e.Variants[i-1].Share {
			t.Errorf("variant %d: %+v", i, v)
		}
		if v.Duration <= 0 || v.Duration > cluster.LongestTime || len(v.Phases) > 0 && sum(v.Phases) != v.Duration {
			t.Errorf("duration %v, phases %v", v.Duration, v.Phases)
		}
		for _, p := range v.Phases {
			if _, negative := p.Demand.Negative(); negative || p.Duration < 0 || !p.Demand.FitsIn(v.Peak) ||
				v.Unknown.In(p.Demand, 0) != p.Demand {
				t.Errorf("phase %+v, peak %v, unknown %v", p, v.Peak, v.Unknown)
			}
		}
		for _, d := range v.Details {
			if d.Model == "" || d.Samples < 1 || d.Samples > v.Runs && d.Model != ByFuzzy || !(d.Error >= 0) ||
				math.IsInf(d.Error, 0) || !(d.Spread >= 0) || math.IsInf(d.Spread, 0) {
				t.Errorf("detail %+v of %d runs", d, v.Runs)
			}
		}
	}
	if ok && math.Abs(share-1) > 1e-9 {
		t.Errorf("shares add up to %v", share)
	}
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
}

func TestRandomHistories(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 9))
		var h, twin History
		for range random.IntN(12) {
			r := randomRun(random)
			notes, err := h.Observe(app, r)
			said, wrong := twin.Observe(app, r)
			if !reflect.DeepEqual(notes, said) || (err == nil) != (wrong == nil) {
				t.Errorf("seed %d: %q, %v and %q, %v", seed, notes, err, said, wrong)
			}
			twin.Estimate(app, Features{}) // asking changes nothing
		}
		for _, f := range []Features{{}, {Cores: 1000}, {Cores: 4000, Input: resource.GiB, Memory: resource.GiB},
			{Cores: 1, Input: resource.MostMemory}, {-1, -1, -1}} {
			checkEstimate(t, &h, app, f)
			a, _ := h.Estimate(app, f)
			if b, _ := twin.Estimate(app, f); !reflect.DeepEqual(a, b) {
				t.Errorf("seed %d: %+v and %+v", seed, a, b)
			}
		}
		text, err := json.Marshal(&h)
		if err != nil {
			t.Fatal(err)
		}
		back, notes, err := ReadHistory(text)
		if err != nil || len(notes) > 0 {
			t.Fatalf("seed %d: %q, %v", seed, notes, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(text) {
			t.Errorf("seed %d: read back as %s, not %s", seed, again, text)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(`{"version":1,"apps":[{"owner":"ann","name":"a","observed":9,"runs":[{"number":3,"duration_ns":5000,"phases":[{"duration_ns":5000,"demand":[1000,5,0,1]}],"peak":[1000,5,0,1]}]}]}`))
	f.Add([]byte(`{"version":1,"apps":[{"owner":"ann","name":"sort","runs":[{"duration_ns":5,"input_bytes":7,"peak":[0,9,0,0],"at_least":["memory"]}],"shortfalls":[{"held_bytes":8,"input_bytes":9}]}]}`))
	f.Add([]byte(`{"version":1,"apps":[{"name":"a","runs":[{"phases":[{"duration_ns":0},{"duration_ns":7,"demand":[-1]}],"unknown":["disk"]},{"duration_ns":1},{}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, _, err := ReadHistory(text)
		if err != nil {
			return
		}
		for _, app := range h.Apps() {
			checkEstimate(t, h, app, Features{Cores: 1000, Input: resource.GiB})
		}
		checkReservation(t, h, Features{Cores: 1000, Input: resource.GiB}, 0)
		written, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		back, notes, err := ReadHistory(written)
		if err != nil || len(notes) > 0 {
			t.Fatalf("%s: %q, %v", written, notes, err)
		}
		if again, _ := json.Marshal(back); string(again) != string(written) {
			t.Errorf("read back as %s, not %s", again, written)
		}
	})
}
