package profile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

const mib = resource.MiB

// peaked is a run whose memory was measured, and nothing else.
func peaked(input, peak resource.Amount) Run {
	return Run{Features: Features{Input: input}, Duration: time.Minute,
		Peak: resource.Vector{resource.Memory: peak}, Unknown: resource.AllKinds &^ resource.KindsOf(resource.Memory)}
}

// squeezed is the same of a run that would have used more.
func squeezed(input, peak resource.Amount) Run {
	r := peaked(input, peak)
	r.AtLeast = resource.KindsOf(resource.Memory)
	return r
}

// reserved is the reservation without a limit, in MiB.
func reserved(h *History, input resource.Amount) float64 {
	r, _ := h.Reserve(app, Features{Input: input}, 0)
	return float64(r.Bytes) / float64(mib)
}

func TestReserve(t *testing.T) {
	six := []Run{}
	for _, peak := range []float64{26, 26.5, 27, 26.2, 26.4, 26.8} {
		six = append(six, peaked(0, resource.Amount(peak*float64(mib))))
	}
	var byInput []Run // 100 MiB, and 2 bytes for each byte of input
	for i := range resource.Amount(8) {
		byInput = append(byInput, peaked((i+1)*100*mib, (i+1)*200*mib+100*mib))
	}
	var alternate []Run // two inputs, with no line through them
	for i := range 12 {
		alternate = append(alternate, peaked([]resource.Amount{100, 101, 102}[i%3]*mib,
			[]resource.Amount{50, 900, 60}[i%3]*mib))
	}
	unmeasured := peaked(0, 5)
	unmeasured.Unknown = resource.AllKinds
	for _, c := range []struct {
		name         string
		runs         []Run
		short        []Shortfall
		input, limit resource.Amount
		least, most  float64 // MiB
		words        string
	}{
		{name: "nothing is known"},
		{name: "no memory was measured", runs: []Run{unmeasured}},
		{name: "one run", runs: six[:1], least: 29.25, most: 29.25, words: "1 run, 26MiB, error unknown"},
		{name: "six runs", runs: six, least: 28.2, most: 28.3, words: "6 runs, 27MiB at most, error 1 %"},
		{name: "a limit", runs: six, limit: 28 * mib, least: 28, most: 28,
			words: "6 runs, 27MiB at most, error 1 %, the limit is less"},
		{name: "a line", runs: byInput, input: 150 * mib, least: 400, most: 420,
			words: "8 runs, 1700MiB at most, error 0 %"},
		{name: "a line, farther than it reaches", runs: byInput, input: resource.TiB, least: 2 * 6400, most: 2 * 7400,
			words: "8 runs, 1700MiB at most, error 0 %, the input is outside of what was measured"},
		{name: "the same, twice as far", runs: byInput, input: 2 * resource.TiB, least: 2 * 6400, most: 2 * 7400,
			words: "8 runs, 1700MiB at most, error 0 %, the input is outside of what was measured"},
		{name: "a line, with an input below all", runs: byInput, input: 1, least: 300, most: 300,
			words: "8 runs, 1700MiB at most, error 0 %, the input is outside of what was measured"},
		{name: "a line, and the input is not known", runs: byInput, least: 1700, most: 1700 * 1.12,
			words: "8 runs, 1700MiB at most, error 75 %"},
		{name: "only a shortfall", short: []Shortfall{{Held: 64 * mib}}, least: 128, most: 128,
			words: "one ended for want of memory with 64MiB"},
		{name: "a shortfall at half of the input", short: []Shortfall{{Held: 64 * mib, Features: Features{Input: 100}}},
			input: 200, least: 128, most: 128, words: "one ended for want of memory with 64MiB"},
		{name: "a shortfall at twice the input", short: []Shortfall{{Held: 64 * mib, Features: Features{Input: 100}}},
			input: 50, least: 64, most: 64, words: "one ended for want of memory with 64MiB"},
		{name: "a shortfall below what runs say", runs: six, short: []Shortfall{{Held: mib}}, least: 28.2, most: 28.3,
			words: "6 runs, 27MiB at most, error 1 %, one ended for want of memory with 1MiB"},
		{name: "a bound below what runs say", runs: append(six[:6:6], squeezed(0, mib)), least: 28.2, most: 28.3,
			words: "7 runs, 27MiB at most, error 1 %, of 1 of them a lower bound"},
		{name: "a bound above", runs: append(six[:6:6], squeezed(0, 70*mib)), least: 73, most: 74,
			words: "7 runs, 70MiB at most, error 1 %, of 1 of them a lower bound"},
		{name: "bounds alone", runs: []Run{squeezed(0, 10*mib), squeezed(0, 20*mib)}, least: 40, most: 40,
			words: "2 runs, 20MiB at most, error 75 %, of 2 of them a lower bound"},
		{name: "two inputs", runs: alternate, input: 100 * mib, least: 50, most: 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h History
			observe(t, &h, c.runs...)
			for _, s := range c.short {
				if err := h.ObserveShortfall(app, s); err != nil {
					t.Fatal(err)
				}
			}
			r, ok := h.Reserve(app, Features{Input: c.input}, c.limit)
			if ok != (c.most > 0) {
				t.Fatalf("known: %v", ok)
			}
			got := float64(r.Bytes) / float64(mib)
			if got < c.least*(1-1e-6) || got > c.most*(1+1e-6) {
				t.Errorf("reserves %v MiB: want %v to %v; %+v", got, c.least, c.most, r)
			}
			if c.words != "" && r.String() != c.words {
				t.Errorf("says %q", r)
			}
		})
	}
}

// TestReserveByNearestInputs: where repeated inputs need very different amounts, each gets its own.
func TestReserveByNearestInputs(t *testing.T) {
	var h History
	for i := range 15 {
		few := resource.Amount(i % 5)
		observe(t, &h, peaked(100*mib, 50*mib+few*mib), peaked(1000*mib, 9*mib+few*mib/5))
	}
	r, _ := h.Reserve(app, Features{Input: 1000 * mib}, 0)
	if r.Told.Model == ByQuantile || r.Bytes > 13*mib {
		t.Errorf("reserves %s: %+v", resource.FormatMemory(r.Bytes), r)
	}
	if got := reserved(&h, 100*mib); got < 54 || got > 70 {
		t.Errorf("reserves %v MiB", got)
	}
}

// TestReservationCoversWhatOutgrewIt: whatever an application needed so far, the next reservation suffices for another
// run like the latest one. So a history of another program under the same name misleads for one run.
func TestReservationCoversWhatOutgrewIt(t *testing.T) {
	for _, old := range []int{1, 5, 20, MostRuns, 3 * MostRuns} {
		var h History
		for range old {
			observe(t, &h, peaked(0, 10*mib))
		}
		observe(t, &h, peaked(0, resource.GiB))
		if got := reserved(&h, 0); got < 1024 {
			t.Errorf("after %d runs of 10MiB and one of 1GiB, %v MiB are reserved", old, got)
		}
		// The larger program leaves: it is forgotten after as many runs as outweigh it.
		for range 2 * MostRuns {
			observe(t, &h, peaked(0, 10*mib))
		}
		if got := reserved(&h, 0); got > 11 {
			t.Errorf("after %d runs of 10MiB, %v MiB are reserved", 2*MostRuns, got)
		}
	}
}

// TestShortfallIsTold: a shortfall counts until a run of at least its input has ended well.
func TestShortfallIsTold(t *testing.T) {
	var h History
	observe(t, &h, peaked(100, 10*mib))
	if err := h.ObserveShortfall(app, Shortfall{Features: Features{Input: 200}, Held: 100 * mib}); err != nil {
		t.Fatal(err)
	}
	if got := reserved(&h, 200); got != 150 {
		t.Errorf("reserves %v MiB", got)
	}
	observe(t, &h, peaked(100, 10*mib), squeezed(200, 10*mib))
	if got := reserved(&h, 200); got < 133 || got > 134 {
		t.Errorf("reserves %v MiB after a run of less input, and one that was squeezed", got)
	}
	observe(t, &h, peaked(200, 140*mib))
	if got := reserved(&h, 200); got < 140 || got > 180 {
		t.Errorf("reserves %v MiB after a run of the same input", got)
	}
	var r cluster.Reservation
	for held, attempts := 64*mib, 0; r.Bytes < 5*resource.GiB; held, attempts = r.Bytes, attempts+1 {
		if r = r.After(held, 5*resource.GiB); r.Bytes < min(2*held, 5*resource.GiB) || attempts > 7 {
			t.Fatalf("after %s: %+v", resource.FormatMemory(held), r)
		}
	}
	if !r.Limited {
		t.Errorf("not at its limit: %+v", r)
	}
	for _, held := range []resource.Amount{0, -1, resource.MostMemory + 1} {
		if err := h.ObserveShortfall(app, Shortfall{Held: held}); err == nil {
			t.Errorf("held %d is taken", held)
		}
	}
	if _, ok := new(History).Estimate(app, Features{}); ok || h.Forget(app) == 0 {
		t.Error("an estimate of nothing, or nothing to forget")
	}
}

// randomPast has random runs and shortfalls of app. Peaks follow the input or do not, some are of another program, and
// some runs are squeezed or not measured.
func randomPast(t *testing.T, random *rand.Rand, most int) *History {
	h, slope := &History{}, random.Float64()*3
	for range random.IntN(most) {
		input := resource.Amount(random.IntN(20)) * 50 * mib
		peak := resource.Amount((slope*float64(input) + float64(100*mib)) * math.Exp(random.NormFloat64()/4))
		if random.IntN(10) == 0 {
			peak = resource.Amount(random.Int64N(int64(resource.GiB)))
		}
		r := peaked(input, peak)
		r.Cores = resource.Amount(random.IntN(3)) * resource.Core
		switch random.IntN(12) {
		case 0:
			r.AtLeast = resource.KindsOf(resource.Memory)
		case 1:
			r.Peak, r.Unknown = resource.Vector{}, resource.AllKinds
		case 2:
			if err := h.ObserveShortfall(app, Shortfall{Features: r.Features, Held: peak + 1}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		observe(t, h, r)
	}
	return h
}

// TestReservationsOfAnyPast: properties of reservations on random histories.
func TestReservationsOfAnyPast(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0x2e5e))
		h := randomPast(t, random, MostRuns-2)
		f := Features{Input: resource.Amount(random.IntN(30)) * 40 * mib,
			Cores: resource.Amount(random.IntN(4)) * resource.Core}
		limit := resource.Amount(random.IntN(3)) * 500 * mib
		checkReservation(t, h, f, limit)
		before, known := h.Reserve(app, f, 0)

		// What was squeezed, and what ended for want of memory, never lowers a reservation.
		s := squeezed(f.Input, resource.Amount(random.Int64N(int64(2*resource.GiB))))
		observe(t, h, s)
		if r, _ := h.Reserve(app, f, 0); r.Bytes < before.Bytes && known {
			t.Errorf("seed %d: a run that was squeezed lowers %d to %d", seed, before.Bytes, r.Bytes)
		}
		before, _ = h.Reserve(app, f, 0)
		held := resource.Amount(1 + random.Int64N(int64(2*resource.GiB)))
		if err := h.ObserveShortfall(app, Shortfall{Features: f, Held: held}); err != nil {
			t.Fatal(err)
		}
		r, ok := h.Reserve(app, f, 0)
		if !ok || r.Bytes < before.Bytes || r.Bytes <= held || r.After(held, 0).Bytes < 2*held {
			t.Errorf("seed %d: after an end with %d, %d follows %d", seed, held, r.Bytes, before.Bytes)
		}
		checkReservation(t, h, f, limit)
		if t.Failed() {
			t.FailNow()
		}
	}
}

// checkReservation checks what holds for every history.
func checkReservation(t *testing.T, h *History, f Features, limit resource.Amount) {
	t.Helper()
	r, ok := h.Reserve(app, f, limit)
	known, bounds, most := 0, 0, resource.Amount(0)
	if p := h.apps[app]; p != nil {
		for i := range p.runs {
			if !p.runs[i].Unknown.Has(resource.Memory) {
				known++
				most = max(most, p.runs[i].Peak[resource.Memory])
				if p.runs[i].AtLeast.Has(resource.Memory) {
					bounds++
				}
			}
		}
		if ok != (known > 0 || len(p.short) > 0) {
			t.Errorf("%d runs, %d shortfalls: known %v", known, len(p.short), ok)
		}
	}
	if ok != (r.Bytes > 0) || limit > 0 && r.Bytes > limit || r.Bytes > resource.MostMemory || r.Runs > known ||
		r.AtLeast > bounds || r.Most > most || r.Limited && r.Bytes != limit || ok != (r.String() != "") ||
		!(r.Told.Error >= 0) || math.IsInf(r.Told.Error, 0) || (r.Runs > 0) != (r.Told.Model != "") {
		t.Errorf("%d runs, %d bounds, %d at most, limit %d: %+v", known, bounds, most, limit, r)
	}
	if again, _ := h.Reserve(app, f, limit); again != r {
		t.Errorf("%+v, and then %+v", r, again)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	back, notes, err := ReadHistory(text)
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	if read, _ := back.Reserve(app, f, limit); read != r {
		t.Errorf("%+v, and read back %+v", r, read)
	}
}

// TestReserveAgainstSlowReference: without features, a reservation is what a search through all peaks finds, and the
// margin of its error.
func TestReserveAgainstSlowReference(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0x510))
		var h History
		n := 1 + random.IntN(60)
		var peaks []resource.Amount
		for range n {
			peaks = append(peaks, resource.Amount(random.IntN(50)+1)*mib)
			observe(t, &h, peaked(0, peaks[len(peaks)-1]))
		}
		peaks = peaks[max(0, n-MostRuns):]
		best := resource.Amount(math.MaxInt64)
		for _, candidate := range peaks {
			covered, all := 0.0, 0.0
			for i, peak := range peaks {
				weight := math.Pow(0.5, float64(len(peaks)-1-i)/HalfLife)
				all += weight
				if peak <= candidate {
					covered += weight
				}
			}
			if covered >= ReservedQuantile*all-1e-9 {
				best = min(best, candidate)
			}
		}
		r, _ := h.Reserve(app, Features{}, 0)
		want := math.Ceil(float64(best) * (1 + min(1, 0.25+float64(len(peaks))*r.Told.Error)/float64(len(peaks)+1)))
		if math.Abs(float64(r.Bytes)-want) > 1 {
			t.Errorf("seed %d, %d runs: reserves %d, want %v", seed, n, r.Bytes, want)
		}
	}
}

// TestReservationsSuffice: of runs whose peak follows the input with noise, about as many outgrow their reservation as
// the quantile leaves, and what is reserved in vain is a small part.
func TestReservationsSuffice(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var h History
	outgrown, n, reservedInVain, used := 0, 2000, 0.0, 0.0
	for i := range n {
		input := resource.Amount(random.Int64N(int64(10*resource.GiB))) + mib
		peak := resource.Amount((0.3*float64(input) + float64(200*mib)) * math.Exp(random.NormFloat64()/10))
		if r, ok := h.Reserve(app, Features{Input: input}, 0); ok && i > 10 {
			if r.Bytes < peak {
				outgrown++
			}
			reservedInVain += max(0, float64(r.Bytes-peak))
			used += float64(peak)
		}
		observe(t, &h, peaked(input, peak))
	}
	if share := float64(outgrown) / float64(n); share > 0.06 || reservedInVain > 0.4*used {
		t.Errorf("%.3f outgrew their reservation, %.2f of what was used was reserved in vain", share, reservedInVain/used)
	}
}

// TestBoundsInEstimates: a run that was held back teaches no smaller demand, and a larger one.
func TestBoundsInEstimates(t *testing.T) {
	var h History
	for range 3 {
		observe(t, &h, peaked(0, 100*mib))
	}
	for range 10 {
		observe(t, &h, squeezed(0, 20*mib))
	}
	if e, _ := h.Estimate(app, Features{}); e.Variants[0].Peak[resource.Memory] != 100*mib {
		t.Errorf("after squeezed runs, %v", e.Variants[0].Peak)
	}
	for range 10 {
		observe(t, &h, squeezed(0, 300*mib))
	}
	if e, _ := h.Estimate(app, Features{}); e.Variants[0].Peak[resource.Memory] != 300*mib {
		t.Errorf("after squeezed runs that used more, %v", e.Variants[0].Peak)
	}
}

// TestReserveFromOlderText: a history that was written before there were shortfalls and lower bounds is read.
func TestReserveFromOlderText(t *testing.T) {
	h, notes, err := ReadHistory([]byte(`{"version":1,"apps":[{"owner":"ann","name":"sort","observed":2,"runs":[` +
		`{"number":0,"duration_ns":1000,"peak":[0,28311552,0,0]},` +
		`{"number":1,"duration_ns":1000,"peak":[0,28311552,0,0]}]}]}`))
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	if got := reserved(h, 0); got != 29.25 {
		t.Errorf("reserves %v MiB", got)
	}
	_, notes, err = ReadHistory([]byte(`{"version":1,"apps":[{"name":"a","runs":[],"shortfalls":[{"held_bytes":0},7,` +
		`{"held_bytes":5,"input_bytes":-1}]}]}`))
	if err != nil || len(notes) != 2 {
		t.Errorf("%q, %v", notes, err)
	}
}

func BenchmarkReserveAfterARun(b *testing.B) {
	var h History
	random := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		input := resource.Amount(random.Int64N(int64(resource.GiB))) + 1
		if _, err := h.Observe(app, peaked(input, input/2+mib)); err != nil {
			b.Fatal(err)
		}
		h.Reserve(app, Features{Input: input}, 0)
	}
}
