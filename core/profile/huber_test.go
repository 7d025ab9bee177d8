package profile

import (
	"math"
	"math/rand/v2"
	"testing"
)

func ones(n int) []float64 {
	one := make([]float64, n)
	for i := range one {
		one[i] = 1
	}
	return one
}

// Without outliers the line is that of least squares, nearly; outliers do not move it far.
func TestHuberAndOutliers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var h huber
	for range 50 {
		var x [][]float64
		var y []float64
		for i := range 40 {
			row := []float64{1e9 * random.Float64(), random.Float64()}
			value := 3 + 2e-9*row[0] - 5*row[1] + 0.1*random.NormFloat64()
			if i%10 == 0 {
				value += 50
			}
			x, y = append(x, row), append(y, value)
		}
		l, ok := h.fit(x, y, ones(40), ones(40))
		if !ok || math.Abs(l.W[0]*1e9-2) > 0.3 || math.Abs(l.W[1]+5) > 0.3 || math.Abs(l.B-3) > 0.3 {
			t.Fatalf("got %v, %v", l, ok)
		}
	}
}

func TestHuberExact(t *testing.T) {
	var h huber
	x, y := [][]float64{{1}, {2}, {4}, {8}, {16}}, []float64{5, 7, 11, 19, 35}
	l, ok := h.fit(x, y, ones(5), y)
	if !ok || math.Abs(l.W[0]-2) > 1e-6 || math.Abs(l.B-3) > 1e-6 {
		t.Errorf("got %v, %v", l, ok)
	}
	y[3] = 100 // one of five is wrong
	if l, ok = h.fit(x, y, ones(5), ones(5)); !ok || math.Abs(l.W[0]-2) > 0.1 || math.Abs(l.B-3) > 0.1 {
		t.Errorf("with an outlier: got %v, %v", l, ok)
	}
}

// Rows of little weight hardly count.
func TestHuberWeights(t *testing.T) {
	var h huber
	x, y := [][]float64{{0}, {0}, {1}, {1}}, []float64{0, 2, 10, 30}
	l, ok := h.fit(x, y, []float64{1, 1e-6, 1, 1e-6}, ones(4))
	if !ok || math.Abs(l.B) > 0.1 || math.Abs(l.W[0]-10) > 0.2 {
		t.Errorf("got %v, %v", l, ok)
	}
}

func TestHuberIsRefused(t *testing.T) {
	var h huber
	for what, x := range map[string][][]float64{
		"no rows":           {},
		"fewer rows":        {{1, 2}, {3, 4}},
		"a constant column": {{1, 7}, {2, 7}, {3, 7}, {4, 7}},
		"a large constant":  {{1e12}, {1e12}, {1e12}, {1e12}},
		"a multiple":        {{1, 2}, {2, 4}, {3, 6}, {5, 10}},
		"a sum":             {{1, 2, 3}, {2, 1, 3}, {5, 1, 6}, {1, 1, 2}, {2, 7, 9}},
		"nearly the same":   {{1, 1}, {2, 2}, {3, 3}, {4, 4 + 1e-9}},
		"equal rows":        {{1, 2}, {1, 2}, {1, 2}, {1, 2}},
		"a column of 0":     {{0}, {0}, {0}},
	} {
		if l, ok := h.fit(x, make([]float64, len(x)), ones(len(x)), ones(len(x))); ok {
			t.Errorf("%s: got %v", what, l)
		}
	}
}
