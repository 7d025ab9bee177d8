package profile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// reference is a result of scikit-learn's SVR, which is LIBSVM: testdata/svr.py wrote it.
type reference struct {
	Name       string
	C, Epsilon float64
	X          [][]float64
	Y, Weight  []float64
	W          []float64
	B          float64
	Objective  float64
}

func references(tb testing.TB) []reference {
	tb.Helper()
	text, err := os.ReadFile("testdata/svr.json")
	if err != nil {
		tb.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(text, &all); err != nil {
		tb.Fatal(err)
	}
	return all
}

func TestSVRAsLIBSVM(t *testing.T) {
	const tolerance = 1e-6
	for _, r := range references(t) {
		s := svr{C: r.C, Epsilon: r.Epsilon, Tolerance: 1e-12}
		got, objective := s.fit(r.X, r.Y, r.Weight)
		off := math.Abs(got.B - r.B)
		for k := range r.W {
			off = max(off, math.Abs(got.W[k]-r.W[k]))
		}
		if !(off <= tolerance) || !(math.Abs(objective-r.Objective) <= tolerance*max(1, r.Objective)) {
			t.Errorf("%s: got %v %v, minimum %v; LIBSVM has %v %v, %v", r.Name, got.W, got.B, objective, r.W, r.B, r.Objective)
		}
	}
}

// The space that is reused leaves no trace, and a fit depends on nothing but its arguments.
func TestSVRIsReproduced(t *testing.T) {
	var shared svr
	for range 2 {
		for _, r := range references(t) {
			shared.C, shared.Epsilon, shared.Tolerance = r.C, r.Epsilon, 1e-9
			own := svr{C: r.C, Epsilon: r.Epsilon, Tolerance: 1e-9}
			a, objective := shared.fit(r.X, r.Y, r.Weight)
			b, again := own.fit(r.X, r.Y, r.Weight)
			if !slices.Equal(a.W, b.W) || a.B != b.B || objective != again {
				t.Errorf("%s: got %v and %v", r.Name, a, b)
			}
		}
	}
}

// No line nearby has a smaller value of what is minimised.
func TestSVRIsLeast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range references(t) {
		s := svr{C: r.C, Epsilon: r.Epsilon, Tolerance: 1e-12}
		best, least := s.fit(r.X, r.Y, r.Weight)
		for range 100 {
			other := linear{W: slices.Clone(best.W), B: best.B + random.NormFloat64()/10}
			for k := range other.W {
				other.W[k] += random.NormFloat64() / 10
			}
			value := dot(other.W, other.W) / 2
			for i := range r.X {
				weight := 1.0
				if r.Weight != nil {
					weight = r.Weight[i]
				}
				value += r.C * weight * max(0, math.Abs(other.at(r.X[i])-r.Y[i])-r.Epsilon)
			}
			if value < least-1e-9*max(1, least) {
				t.Fatalf("%s: %v has %v, less than %v of %v", r.Name, other, value, least, best)
			}
		}
	}
}

// fitsOf25 calls do with a fit, as regressions are made, of each reference of 25 runs. steps counts the steps of the
// last fit.
func fitsOf25(tb testing.TB, do func(name string, fit func(), steps func() int)) {
	for _, r := range references(tb) {
		if len(r.X) != 25 || r.Name == "constant target" || r.Name == "a column that is 0" {
			continue // there is no regression of constants
		}
		weight, unit := r.Weight, make([]float64, len(r.X))
		if weight == nil {
			for range r.X {
				weight = append(weight, 1)
			}
		}
		var l learner
		do(r.Name, func() {
			if _, ok := l.supportVectors(r.X, r.Y, weight, unit); !ok {
				tb.Fatalf("%s: no fit", r.Name)
			}
		}, func() int { return stepsOf(&l.svr, l.scaled[:len(r.X)], l.one[:len(r.X)], weight) })
	}
}

// stepsOf counts the steps of a fit.
func stepsOf(s *svr, x [][]float64, y, weight []float64) (steps int) {
	s.prepare(x, weight)
	for i, j, push := s.choose(y); push > 0 && steps < mostSteps*len(x); i, j, push = s.choose(y) {
		s.move(i, j, push)
		steps++
	}
	return steps
}

// A fit of the 25 runs of Prophet's profiles takes tens of steps per run, and never ends by their bound.
func TestSVRTakesFewSteps(t *testing.T) {
	const most = 50 // per run
	fits, slowest := 0, 0
	fitsOf25(t, func(name string, fit func(), steps func() int) {
		fits++
		fit()
		n := steps()
		if slowest = max(slowest, n); n == 0 || n > most*25 {
			t.Errorf("%s: %d steps, must be at most %d", name, n, most*25)
		}
	})
	if t.Logf("%d fits, the slowest takes %d steps", fits, slowest); fits < 15 {
		t.Errorf("only %d fits", fits)
	}
}

// BenchmarkSVR fits the 25 runs of Prophet's profiles as regressions are made.
func BenchmarkSVR(b *testing.B) {
	fitsOf25(b, func(name string, fit func(), _ func() int) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fit()
			}
		})
	})
}
