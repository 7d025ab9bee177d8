package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// synthetic is an application whose phases last a + b·s/c + k·ln(c)·√s + d·c seconds on c cores with s GiB of input,
// and whose peaks saturate in c: the applications of the notes on predictors.
type synthetic struct {
	phases [][8]float64
}

func makeSynthetic(r *rand.Rand) (s synthetic) {
	for range 3 + r.IntN(4) {
		s.phases = append(s.phases, [8]float64{
			2 + 8*r.Float64(), 5 + 35*r.Float64(), 3 * r.Float64(), 2 * r.Float64(),
			20 + 280*r.Float64(), 0.5 + 2.5*r.Float64(), 10 + 150*r.Float64(), 0.5 + 2.5*r.Float64()})
	}
	return s
}

// run returns the run on cores with input GiB. time and rate are the noise of durations and of bandwidths.
func (s synthetic) run(cores, input float64, noise func(share float64) float64) Run {
	r := Run{Features: Features{Cores: resource.Amount(cores) * resource.Core,
		Input: resource.Amount(input * float64(resource.GiB))}}
	for _, p := range s.phases {
		seconds := p[0] + p[1]*input/cores + p[2]*math.Log(cores)*math.Sqrt(input) + p[3]*cores
		rate := func(most, half float64) resource.Amount {
			return resource.Amount(most * cores / (cores + half) * math.Pow(input, 0.1) * noise(0.1) * float64(resource.MB))
		}
		r.Phases = append(r.Phases, cluster.Phase{Duration: time.Duration(seconds * noise(0.05) * 1e9),
			Demand: resource.Vector{resource.CPU: resource.Amount(cores) * resource.Core, resource.Disk: rate(p[4], p[5]),
				resource.Network: rate(p[6], p[7])}})
	}
	return r
}

func exact(float64) float64 { return 1 }

// fourErrors are mean relative errors of an estimate against the run without noise, in percent.
type fourErrors struct{ start, duration, disk, network float64 }

func compare(e Variant, truth Run) (m fourErrors) {
	n := float64(len(truth.Phases))
	relative := func(got, want float64) float64 { return 100 * math.Abs(got-want) / want / n }
	var at, is time.Duration
	for i, p := range truth.Phases {
		got := e.Phases[i]
		if i > 0 {
			m.start += relative(at.Seconds(), is.Seconds()) * n / (n - 1)
		}
		m.duration += relative(got.Duration.Seconds(), p.Duration.Seconds())
		m.disk += relative(float64(got.Demand[resource.Disk]), float64(p.Demand[resource.Disk]))
		m.network += relative(float64(got.Demand[resource.Network]), float64(p.Demand[resource.Network]))
		at, is = at+got.Duration, is+p.Duration
	}
	return m
}

// learn observes 25 runs, of which some are outliers, and adds up the errors inside of what was measured and outside.
func (table *table) learn(t *testing.T, seed uint64, outliers float64, rows []string) {
	random := rand.New(rand.NewPCG(seed, 4))
	s := makeSynthetic(random)
	h, app := History{Rows: rows}, App{Name: "a"}
	for _, cores := range []float64{1, 2, 3, 4, 5} {
		for _, input := range []float64{1, 2, 4, 7, 10} {
			slow := 1.0
			if random.Float64() < outliers {
				slow = 1.3 + 0.9*random.Float64()
			}
			r := s.run(cores, input, func(share float64) float64 { return math.Exp(share * random.NormFloat64()) })
			for i := range r.Phases {
				p := &r.Phases[i]
				p.Duration = time.Duration(float64(p.Duration) * slow)
				for _, k := range []resource.Kind{resource.Disk, resource.Network} {
					p.Demand[k] = resource.Amount(float64(p.Demand[k]) / slow)
				}
			}
			if notes, err := h.Observe(app, r); err != nil || len(notes) > 0 {
				t.Fatal(notes, err)
			}
		}
	}
	for _, at := range []struct{ cores, input float64 }{{1, 3}, {2, 5}, {3, 8.5}, {4, 3}, {5, 5}, {2, 20}, {4, 15},
		{8, 10}, {6, 20}} {
		truth := s.run(at.cores, at.input, exact)
		e, ok := h.Estimate(app, truth.Features)
		if !ok || len(e.Variants) != 1 || e.Variants[0].Runs != 25 || sum(e.Variants[0].Phases) != e.Variants[0].Duration {
			t.Fatalf("seed %d: %+v", seed, e)
		}
		m := compare(e.Variants[0], truth)
		if at.cores > 5 || at.input > 10 {
			table.outside = append(table.outside, m)
		} else {
			table.inside = append(table.inside, m)
		}
		for _, d := range e.Variants[0].Details {
			if d.Samples != 25 || !(d.Error >= 0) || d.Error > 1 {
				t.Errorf("seed %d: %+v", seed, d)
			}
			table.models[d.Model]++
		}
	}
}

// table is the errors of estimates.
type table struct {
	inside, outside []fourErrors
	models          map[string]int
}

func meanOf(all []fourErrors) (m fourErrors) {
	for _, e := range all {
		m.start += e.start / float64(len(all))
		m.duration += e.duration / float64(len(all))
		m.disk += e.disk / float64(len(all))
		m.network += e.network / float64(len(all))
	}
	return m
}

// The mean errors stay in the range of a table that was made with prototypes: 60 applications, 25 runs each, noise of
// 5 % on durations and 10 % on rates. Its best rows reach 1.7 % for starts, 1.8 % for durations and 3.3 % for rates
// inside of what was measured, 2.6 % for starts outside, and with outliers 2.5, 2.3, 3.8 and 2.8 %; its support
// vectors on features as they are, the paper's predictor, 19.5 % for starts and 5.2 % for rates.
func TestSyntheticTable(t *testing.T) {
	apps := uint64(60)
	if testing.Short() {
		apps = 6
	}
	for _, test := range []struct {
		outliers        float64
		rows            []string
		inside, outside fourErrors // at most
	}{
		{0, nil, fourErrors{2, 2.2, 5.5, 5.5}, fourErrors{6, 6, 12, 12}},
		{0.08, nil, fourErrors{2.5, 2.7, 6, 6}, fourErrors{7, 7, 13, 13}},
		{0, []string{BySVR}, fourErrors{20, 20, 9, 9}, fourErrors{35, 35, 20, 20}},
		{0, []string{BySVRLog}, fourErrors{7, 7, 6, 6}, fourErrors{14, 14, 12, 12}},
	} {
		table := table{models: map[string]int{}}
		for seed := range apps {
			table.learn(t, seed, test.outliers, test.rows)
		}
		inside, outside := meanOf(table.inside), meanOf(table.outside)
		t.Logf("outliers %v, rows %v: inside %.1f, outside %.1f; %v", test.outliers, test.rows, inside, outside, table.models)
		if !inside.within(test.inside) || !outside.within(test.outside) {
			t.Errorf("want at most %v inside, %v outside", test.inside, test.outside)
		}
	}
}

func (e fourErrors) within(most fourErrors) bool {
	return e.start <= most.start && e.duration <= most.duration && e.disk <= most.disk && e.network <= most.network
}

// From samples to an estimate: a program reads, computes and writes; the durations depend on its input. It is sampled
// once a second, from any moment on, while it shares a machine. Some samples are missing.
func TestLearnedFromSamples(t *testing.T) {
	program := func(input float64) []level {
		return []level{{int(5 * input), use(0.5, 100*input, 90, 5)}, {int(8 + 10*input), use(3, 400, 0, 0)},
			{int(4 * input), use(0.3, 400, 70, 0)}}
	}
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 6))
		var h History
		for run := range 12 {
			input := float64(1 + run%4)
			fine := sampled(0.1, random, repeatSeconds(program(input), 10)...) // each is a tenth of a second
			var series []Stretch
			for from := 0; from < len(fine); {
				n := 10
				if from == 0 {
					n = 1 + random.IntN(10)
				}
				s := Stretch{}
				for _, x := range fine[from:min(from+n, len(fine))] {
					s.Length += x.Length / 10
					s.Usage = s.Usage.Add(x.Usage)
				}
				count := resource.Amount(min(n, len(fine)-from))
				for k := range s.Usage {
					s.Usage[k] /= count
				}
				if random.IntN(30) == 0 {
					s.Usage, s.Unknown = resource.Vector{}, resource.KindsOf(resource.CPU, resource.Memory, resource.Disk,
						resource.Network)
				}
				series = append(series, s)
				from += n
			}
			r, _ := Segment(series)
			r.Features = Features{Cores: 4 * resource.Core, Input: resource.Amount(input) * resource.GiB}
			if _, err := h.Observe(app, r); err != nil {
				t.Fatal(err)
			}
		}
		e, _ := h.Estimate(app, Features{Cores: 4 * resource.Core, Input: 6 * resource.GiB})
		v := e.Variants[0]
		if len(v.Phases) != 3 || v.Share < 0.7 {
			t.Errorf("seed %d: %d variants, the first with %.2f of the runs and %d phases", seed, len(e.Variants), v.Share,
				len(v.Phases))
			continue
		}
		for i, want := range program(6) {
			got := v.Phases[i]
			if seconds := float64(want.seconds); math.Abs(got.Duration.Seconds()-seconds) > 0.1*seconds+1 {
				t.Errorf("seed %d: phase %d lasts %v, want %d s", seed, i+1, got.Duration, want.seconds)
			}
			for _, k := range []resource.Kind{resource.CPU, resource.Disk} {
				if a, b := float64(got.Demand[k]), float64(want.usage[k]); math.Abs(a-b) > 0.3*b+0.05*float64(v.Peak[k]) {
					t.Errorf("seed %d: phase %d %v is %.0f, want %.0f", seed, i+1, k, a, b)
				}
			}
		}
	}
}

// repeatSeconds returns levels whose lengths are multiplied.
func repeatSeconds(levels []level, times int) (all []level) {
	for _, l := range levels {
		all = append(all, level{l.seconds * times, l.usage})
	}
	return all
}

// BenchmarkLearn25 learns an application of six phases from 25 runs, and estimates.
func BenchmarkLearn25(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 4))
	s := makeSynthetic(random)
	var h History
	for i := range 25 {
		if _, err := h.Observe(App{}, s.run(float64(i%5+1), float64(i/5+1), func(share float64) float64 {
			return math.Exp(share * random.NormFloat64())
		})); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		p := h.apps[App{}]
		p.learned, p.asked = [2][]*variant{}, nil
		h.Estimate(App{}, Features{Cores: 2000, Input: resource.GiB})
	}
}
