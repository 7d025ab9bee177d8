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

// BenchmarkSVR fits the 25 runs of Prophet's profiles; a fit takes less than 1 ms.
func BenchmarkSVR(b *testing.B) {
	for _, r := range references(b) {
		if len(r.X) != 25 {
			continue
		}
		b.Run(r.Name, func(b *testing.B) {
			s := svr{C: r.C, Epsilon: r.Epsilon, Tolerance: 1e-6}
			b.ReportAllocs()
			for b.Loop() {
				s.fit(r.X, r.Y, r.Weight)
			}
		})
	}
}
