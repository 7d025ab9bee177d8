package profile

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// synthetic is an application whose phases last a + b·s/c + k·ln(c)·√s + d·c seconds on c cores with s GiB of input, and
// whose peaks saturate in c: the applications of the notes on predictors.
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
	r := Run{Features: Features{Cores: resource.Amount(cores) * resource.Core, Input: resource.Amount(input * float64(resource.GiB))}}
	for _, p := range s.phases {
		seconds := p[0] + p[1]*input/cores + p[2]*math.Log(cores)*math.Sqrt(input) + p[3]*cores
		rate := func(most, half float64) resource.Amount {
			return resource.Amount(most * cores / (cores + half) * math.Pow(input, 0.1) * noise(0.1) * float64(resource.MB))
		}
		r.Phases = append(r.Phases, cluster.Phase{Duration: time.Duration(seconds * noise(0.05) * 1e9),
			Demand: resource.Vector{resource.CPU: resource.Amount(cores) * resource.Core, resource.Disk: rate(p[4], p[5]), resource.Network: rate(p[6], p[7])}})
	}
	return r
}

func exact(float64) float64 { return 1 }

// errors4 are mean relative errors of an estimate against the run without noise, in percent.
type errors4 struct{ start, duration, disk, network float64 }

func compare(e Variant, truth Run) (m errors4) {
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

func TestSyntheticTable(t *testing.T) {
	apps := 2
	for _, rows := range [][]string{nil} {
		for _, outliers := range []float64{0, 0.08} {
			var inside, outside errors4
			models := map[string]int{}
			begin := time.Now()
			for seed := range apps {
				random := rand.New(rand.NewPCG(uint64(seed), 4))
				s := makeSynthetic(random)
				h := History{Rows: rows}
				app := App{Name: "a"}
				for _, c := range []float64{1, 2, 3, 4, 5} {
					for _, in := range []float64{1, 2, 4, 7, 10} {
						slow := 1.0
						if random.Float64() < outliers {
							slow = 1.3 + 0.9*random.Float64()
						}
						r := s.run(c, in, func(share float64) float64 { return math.Exp(share * random.NormFloat64()) })
						for i := range r.Phases {
							r.Phases[i].Duration = time.Duration(float64(r.Phases[i].Duration) * slow)
							for _, k := range []resource.Kind{resource.Disk, resource.Network} {
								r.Phases[i].Demand[k] = resource.Amount(float64(r.Phases[i].Demand[k]) / slow)
							}
						}
						if _, err := h.Observe(app, r); err != nil {
							t.Fatal(err)
						}
					}
				}
				for _, at := range [][3]float64{{1, 3, 0}, {2, 5, 0}, {3, 8.5, 0}, {4, 3, 0}, {5, 5, 0}, {2, 20, 1}, {4, 15, 1}, {8, 10, 1}, {6, 20, 1}} {
					truth := s.run(at[0], at[1], exact)
					e, _ := h.Estimate(app, truth.Features)
					m := compare(e.Variants[0], truth)
					to, n := &inside, float64(5*apps)
					if at[2] == 1 {
						to, n = &outside, float64(4*apps)
					}
					to.start += m.start / n
					to.duration += m.duration / n
					to.disk += m.disk / n
					to.network += m.network / n
					for _, d := range e.Variants[0].Details {
						if d.Of == "duration" {
							models[d.Model]++
						}
					}
				}
			}
			t.Logf("%v outliers %v: inside %.1f, outside %.1f %v in %v", rows, outliers, inside, outside, models, time.Since(begin))
		}
	}
}
