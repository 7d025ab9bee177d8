package profile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// level is a planted phase of the given length in seconds.
type level struct {
	seconds int
	usage   resource.Vector
}

func use(cores, memoryMiB, diskMB, networkMB float64) (v resource.Vector) {
	v[resource.CPU] = resource.Amount(cores * float64(resource.Core))
	v[resource.Memory] = resource.Amount(memoryMiB * float64(resource.MiB))
	v[resource.Disk] = resource.Amount(diskMB * float64(resource.MB))
	v[resource.Network] = resource.Amount(networkMB * float64(resource.MB))
	return v
}

// sampled returns a sample a second of planted phases, with a relative noise.
func sampled(noise float64, random *rand.Rand, levels ...level) (s []Stretch) {
	for _, l := range levels {
		for range l.seconds {
			x := Stretch{Length: time.Second, Usage: l.usage}
			for k := range x.Usage {
				if noise > 0 {
					x.Usage[k] = max(0, x.Usage[k]+resource.Amount(noise*random.NormFloat64()*float64(x.Usage[k])))
				}
			}
			s = append(s, x)
		}
	}
	return s
}

func lengths(phases []cluster.Phase) string {
	var all []string
	for _, p := range phases {
		all = append(all, fmt.Sprintf("%.0f", p.Duration.Seconds()))
	}
	return strings.Join(all, " ")
}

func TestPlantedPhases(t *testing.T) {
	low, high := use(1, 200, 5, 0), use(1, 200, 100, 0)
	for _, test := range []struct {
		what   string
		noise  float64
		levels []level
		want   string // seconds of the phases that are found
	}{
		{"one sample", 0, []level{{1, low}}, "1"},
		{"two samples", 0, []level{{1, low}, {1, high}}, "2"},
		{"constant", 0, []level{{600, low}}, "600"},
		{"zero", 0, []level{{60, resource.Vector{}}}, "60"},
		{"constant with noise", 0.3, []level{{600, low}}, "600"},
		{"two phases", 0, []level{{20, low}, {10, high}}, "20 10"},
		{"two short phases", 0, []level{{4, low}, {3, high}}, "4 3"},
		{"a step of 3 s", 0, []level{{100, low}, {3, high}, {200, low}}, "100 3 200"},
		{"a step of 3 s in noise", 0.2, []level{{100, low}, {3, high}, {200, low}}, "100 3 200"},
		{"a step of 3 s in half an hour", 0.05, []level{{700, low}, {3, high}, {1097, low}}, "700 3 1097"},
		{"a spike of 1 s", 0, []level{{100, low}, {1, high}, {100, low}}, "201"},
		{"noise of a tenth", 0.1, []level{{30, low}, {40, high}, {20, use(4, 200, 5, 0)}, {30, use(1, 900, 5, 50)}},
			"30 40 20 30"},
		{"each resource alone", 0.05, []level{{30, use(1, 100, 0, 0)}, {30, use(2, 100, 0, 0)}, {30, use(2, 200, 0, 0)},
			{30, use(2, 200, 50, 0)}, {30, use(2, 200, 50, 20)}}, "30 30 30 30 30"},
		{"trifles", 0, []level{{50, use(0.001, 0.1, 0.01, 0)}, {50, use(0.003, 0.3, 0.03, 0)}}, "100"},
		{"bursts", 0, repeat(60, level{4, use(1, 100, 0, 0)}, level{1, use(1, 100, 150, 0)}), "300"},
	} {
		t.Run(test.what, func(t *testing.T) {
			series := sampled(test.noise, rand.New(rand.NewPCG(7, 8)), test.levels...)
			r, notes := Segment(series)
			if got := lengths(r.Phases); got != test.want || len(notes) > 0 {
				t.Errorf("got phases of %s s, planted %s s; notes %q", got, test.want, notes)
			}
			checkSegmented(t, series, r)
		})
	}
}

func repeat(n int, levels ...level) (all []level) {
	for range n {
		all = append(all, levels...)
	}
	return all
}

// checkSegmented checks what holds of the phases of any series.
func checkSegmented(t *testing.T, series []Stretch, r Run) {
	t.Helper()
	var peak resource.Vector
	total := time.Duration(0)
	for _, s := range series {
		peak = peak.Max(s.Usage)
		total += s.Length
	}
	if r.Duration != total || sum(r.Phases) != total || len(r.Phases) < 1 || len(r.Phases) > MostPhases {
		t.Errorf("%d phases of %v, run of %v, series of %v", len(r.Phases), sum(r.Phases), r.Duration, total)
	}
	if r.Peak != peak {
		t.Errorf("peak %v, want %v", r.Peak, peak)
	}
	for _, p := range r.Phases {
		if !p.Demand.FitsIn(peak) || p.Duration <= 0 {
			t.Errorf("phase %+v, peak %v", p, peak)
		}
	}
}

func TestDemandOfPhases(t *testing.T) {
	series := sampled(0, nil, level{50, use(1, 100, 10, 0)}, level{1, use(2, 300, 200, 0)},
		level{50, use(1, 100, 10, 0)}, level{30, use(2, 500, 80, 20)})
	r, _ := Segment(series)
	want := []cluster.Phase{
		{Duration: 101 * time.Second, Demand: use(1, 300, 10, 0)}, // a spike counts for memory, and for the peak
		{Duration: 30 * time.Second, Demand: use(2, 500, 80, 20)}}
	if !reflect.DeepEqual(r.Phases, want) || r.Peak != use(2, 500, 200, 20) {
		t.Errorf("got %v, peak %v", r.Phases, r.Peak)
	}
}

// What only the samples at the ends of a phase say is not lost.
func TestDemandKnownAtTheEndsOnly(t *testing.T) {
	series := sampled(0, nil, level{6, use(1, 100, 10, 0)})
	for i := range series[1:5] {
		series[1+i].Usage[resource.Disk], series[1+i].Unknown = 0, resource.KindsOf(resource.Disk)
	}
	if r, _ := Segment(series); r.Phases[0].Demand != use(1, 100, 10, 0) || r.Unknown != 0 {
		t.Errorf("got %+v", r)
	}
}

// A ramp becomes stairs that lie above it.
func TestRamp(t *testing.T) {
	var series []Stretch
	for i := range 600 {
		series = append(series, Stretch{Length: time.Second, Usage: use(1, float64(i), 0, 0)})
	}
	r, _ := Segment(series)
	checkSegmented(t, series, r)
	if len(r.Phases) < 3 {
		t.Errorf("phases of %s s", lengths(r.Phases))
	}
	at, i := 0, 0
	for _, p := range r.Phases {
		for end := at + int(p.Duration.Seconds()); i < end; i++ {
			if series[i].Usage[resource.Memory] > p.Demand[resource.Memory] {
				t.Fatalf("second %d: %d bytes, the phase has %d", i, series[i].Usage[resource.Memory], p.Demand[resource.Memory])
			}
		}
		at = i
	}
}

// Samples that were joined while usage stayed the same give the same phases.
func TestJoinedSamples(t *testing.T) {
	series := []Stretch{
		{Length: 60 * time.Second, Usage: use(1, 100, 0, 0)},
		{Length: time.Second, Usage: use(1, 100, 40, 0)}, // in the middle of which the phase changes
		{Length: 2 * time.Second, Usage: use(1, 100, 80, 0)},
		{Length: 600 * time.Second, Usage: use(1, 100, 0, 0)},
		{Length: 100 * time.Millisecond, Usage: use(50, 100, 0, 0)}, // the end; its rate says nothing
	}
	r, notes := Segment(series)
	if got := lengths(r.Phases); got != "60 3 600" || len(notes) > 0 {
		t.Errorf("phases of %s s; notes %q", got, notes)
	}
	if want := use(1, 100, 80, 0); r.Peak != want {
		t.Errorf("peak %v, want %v", r.Peak, want)
	}
}

func TestUnsoundSeries(t *testing.T) {
	all := resource.KindsOf(resource.CPU, resource.Memory, resource.Disk, resource.Network)
	at := func(n int, usage resource.Vector, unknown resource.Kinds) (s []Stretch) {
		for range n {
			s = append(s, Stretch{Length: time.Second, Usage: unknown.In(usage, 0), Unknown: unknown})
		}
		return s
	}
	join := func(parts ...[]Stretch) (s []Stretch) {
		for _, p := range parts {
			s = append(s, p...)
		}
		return s
	}
	network := resource.KindsOf(resource.Network)
	low, high := use(1, 100, 0, 10), use(3, 100, 50, 10)
	for _, test := range []struct {
		what    string
		series  []Stretch
		want    string
		unknown resource.Kinds
		notes   string
	}{
		{"none", nil, "", 0, ""},
		{"no length", []Stretch{{Length: 0, Usage: low}, {Length: -5, Usage: low}}, "", 0,
			"samples 2: must have a length above 0s and at most 87600h0m0s together, left out"},
		{"only a gap", []Stretch{{Length: time.Minute, Unknown: all}}, "60", all,
			"gaps 1: nothing was measured for 1m0s of 1m0s"},
		{"a gap in a phase", join(at(20, low, 0), []Stretch{{Length: time.Minute, Unknown: all}}, at(20, low, 0),
			at(20, high, 0)), "100 20", 0, "gaps 1: nothing was measured for 1m0s of 2m0s"},
		{"never a kind", join(at(20, low, network), at(20, high, network)), "20 20", network, ""},
		{"a kind not in one phase", join(at(20, low, 0), at(20, high, network)), "20 20", 0,
			"phase 2 network: not measured, taken from phase 1"},
		{"a kind not in the first phase", join(at(20, low, network), at(20, high, 0)), "20 20", 0,
			"phase 1 network: not measured, taken from phase 2"},
		{"amounts out of range", join(at(20, low, 0), at(1, use(-1, 100, 0, 10), 0), at(20, low, 0)), "41", 0,
			"samples 1: cpu must be 0 to 1000000 cores, taken as unknown"},
		{"a clock that jumped", join(at(20, low, 0), []Stretch{{Length: cluster.LongestTime + 1, Usage: low}},
			at(20, high, 0)), "20 20", 0, "samples 1: must have a length above 0s and at most 87600h0m0s together, left out"},
	} {
		t.Run(test.what, func(t *testing.T) {
			r, notes := Segment(test.series)
			if got := lengths(r.Phases); got != test.want || r.Unknown&all != test.unknown ||
				strings.Join(notes, "; ") != test.notes {
				t.Errorf("phases of %q s, unknown %v, notes %q", got, r.Unknown&all, notes)
			}
		})
	}
}

// randomSeries returns any series, sound or not.
func randomSeries(random *rand.Rand, n int) (s []Stretch) {
	var x Stretch
	for range n {
		if random.IntN(3) == 0 {
			x.Usage = use(float64(random.IntN(4)), float64(random.IntN(400)), float64(random.IntN(80)), float64(random.IntN(3)))
		}
		x.Length = time.Duration(1+random.IntN(3)) * time.Second / time.Duration(1+random.IntN(2))
		x.Unknown = 0
		if random.IntN(5) == 0 {
			x.Unknown = resource.Kinds(random.IntN(16))
		}
		s = append(s, x)
	}
	return s
}

func TestRandomSeries(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 2))
		series := randomSeries(random, 1+random.IntN(900))
		r, _ := Segment(series)
		if sum(r.Phases) != r.Duration || len(r.Phases) < 1 || len(r.Phases) > MostPhases {
			t.Errorf("seed %d: %d phases of %v in a run of %v", seed, len(r.Phases), sum(r.Phases), r.Duration)
		}
		for _, p := range r.Phases {
			if _, negative := p.Demand.Negative(); negative || r.Unknown.In(p.Demand, 0) != p.Demand {
				t.Errorf("seed %d: phase %+v, unknown %v", seed, p, r.Unknown)
			}
		}
		var h History
		if notes, err := h.Observe(app, r); err != nil || len(notes) > 0 {
			t.Errorf("seed %d: what Segment returns is not sound: %q, %v", seed, notes, err)
		}
	}
}

// The partition costs as little as the best of all partitions does.
func TestPartitionIsBest(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		pieces := piecesOf(randomSeries(random, 2+random.IntN(8)), time.Second)
		n := len(pieces)
		whole := pieces[0]
		for i := range pieces[1:] {
			whole.join(&pieces[1+i])
		}
		kinds := 0.0
		for _, w := range whole.weight {
			if w > 0 {
				kinds++
			}
		}
		cost := func(ends []int) (total float64) {
			from := 0
			for _, end := range ends {
				p := pieces[from]
				for i := from + 1; i < end; i++ {
					p.join(&pieces[i])
				}
				if p.length < shortestPhase-shortOfPhase && len(ends) > 1 {
					return math.Inf(1)
				}
				for k, w := range p.weight {
					if w > 0 {
						total += p.square[k] - p.sum[k]*p.sum[k]/w
					}
				}
				from = end
			}
			return total + penalty*(kinds+1)*math.Log(max(whole.length, math.E))*float64(len(ends)-1)
		}
		least := math.Inf(1)
		for cuts := range 1 << (n - 1) {
			var ends []int
			for i := range n - 1 {
				if cuts&(1<<i) != 0 {
					ends = append(ends, i+1)
				}
			}
			least = min(least, cost(append(ends, n)))
		}
		ends := partition(pieces)
		if got := cost(ends); math.Abs(got-least) > 1e-9*max(1, least) {
			t.Errorf("seed %d: %v costs %v, the best partition %v", seed, ends, got, least)
		}
	}
}

// A day of samples, and steps in it that are as short as can be. Joining samples first finds them in the same place.
func TestDayOfSamples(t *testing.T) {
	levels := []level{{20000, use(1, 500, 5, 1)}, {3, use(1, 500, 120, 1)}, {30000, use(2, 800, 5, 1)},
		{5, use(2, 100, 5, 90)}, {36392, use(0.2, 100, 0, 0)}}
	series := sampled(0.1, rand.New(rand.NewPCG(1, 1)), levels...)
	r, _ := Segment(series)
	if got := lengths(r.Phases); got != "20000 3 30000 5 36392" {
		t.Errorf("phases of %s s", got)
	}
	again, _ := Segment(series)
	if !reflect.DeepEqual(r, again) {
		t.Error("not the same phases again")
	}
}

func TestReduceConstant(t *testing.T) {
	r, _ := Segment(sampled(0, nil, level{5000, use(1, 1, 1, 1)}))
	if got := lengths(r.Phases); got != "5000" {
		t.Errorf("phases of %s s", got)
	}
}

// BenchmarkSegmentDay finds the phases of a day of samples; it takes less than 0.2 s.
func BenchmarkSegmentDay(b *testing.B) {
	for _, noise := range []float64{0, 0.1} {
		series := sampled(noise, rand.New(rand.NewPCG(1, 1)),
			repeat(12, level{6000, use(1, 500, 5, 1)}, level{1200, use(2, 500, 100, 50)})...)
		b.Run(fmt.Sprintf("noise %v", noise), func(b *testing.B) {
			for b.Loop() {
				Segment(series)
			}
		})
	}
}
