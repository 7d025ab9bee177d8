package prediction

import (
	"math"
	"math/rand/v2"
	"slices"
)

// sizey predicts by four models, weighted by their accuracy, with an offset for their errors.
//
// As in the authors' code: models of the peak by the input, both scaled to 0 to 1; accuracy is the mean of relative
// errors, at most 1 each, in cross-validation; with alpha 0, and the interpolation, a model weighs exp(accuracy) (the
// best values of the paper); of four kinds of offset, each model has the one that would have wasted least; an attempt
// that failed is followed by the largest peak seen, or by twice as much where that is not more, or where inputs and
// peaks rank alike (Kendall's tau above 0.25) and the input is the largest.
//
// Differently: the network, of one input and rectifiers, is a continuous line of pieces, which is fitted at once; the
// forest has one size instead of a search among 36; models are fitted again when a tenth more tasks have ended; the
// model of nearest neighbours is updated, which the authors' code forgets; errors are known when a task ends, and not
// when it begins. With one or two tasks, the largest peak and the default offset are reserved.
type sizey struct {
	x, y      []float64
	models    []sizeyModel
	fitted    int // tasks at the last fit
	predicted map[*task][sizeyModels]float64
	errors    [sizeyModels][]float64
	offsets   [sizeyModels]float64
	current   bool    // offsets are
	most      int     // the task with the largest peak
	alike     float64 // Kendall's tau of the first ranked tasks
	ranked    int
}

const (
	sizeyModels  = 4
	sizeyDefault = 0.05 // offset
	sizeyFewest  = 3    // tasks
	sizeyAlike   = 0.25 // Kendall's tau
)

// sizeyModel is a fitted model in scaled units, with its accuracy.
type sizeyModel struct {
	at       func(x float64) float64
	accuracy float64
}

func (m *sizey) first(t *task) float64 {
	n := len(m.y)
	switch {
	case n == 0:
		return 0
	case n < sizeyFewest:
		return m.y[m.most] * (1 + sizeyDefault)
	}
	m.fit()
	sx, sy := scalingOf(m.x[:m.fitted]), scalingOf(m.y[:m.fitted])
	var each [sizeyModels]float64
	value, offset, total := 0.0, 0.0, 0.0
	for i := range m.models {
		each[i] = sy.back(m.models[i].at(sx.of(t.input)))
		w := math.Exp(m.models[i].accuracy)
		value += w * each[i]
		offset += w * m.offsets[i]
		total += w
	}
	if m.predicted == nil {
		m.predicted = map[*task][sizeyModels]float64{}
	}
	m.predicted[t] = each
	value /= total
	if value += value * offset / total; value < 0 {
		return slices.Min(m.y) * sizeyDefault
	}
	return value
}

func (m *sizey) next(t *task, had float64) float64 {
	if len(m.y) == 0 {
		return 2 * had
	}
	largest := m.y[m.most]
	if largest < had*1.05 || t.input > m.x[m.most] && m.tau() > sizeyAlike {
		return 2 * had
	}
	return largest
}

// tau is Kendall's tau of inputs and peaks.
func (m *sizey) tau() float64 {
	if m.ranked != len(m.y) {
		m.alike, m.ranked = kendall(m.x, m.y), len(m.y)
	}
	return m.alike
}

func (m *sizey) failed(*task, float64) {}

func (m *sizey) learn(t *task) {
	if each, ok := m.predicted[t]; ok {
		for i, v := range each {
			m.errors[i] = append(m.errors[i], (t.peak-v)/t.peak)
		}
		delete(m.predicted, t)
	}
	m.x, m.y = append(m.x, t.input), append(m.y, t.peak)
	if t.peak > m.y[m.most] {
		m.most = len(m.y) - 1
	}
	m.current = false
}

// fit brings models and offsets up to date.
func (m *sizey) fit() {
	if n := len(m.y); m.models == nil || float64(n) >= 1.1*float64(m.fitted) {
		m.models, m.fitted, m.current = nil, n, false
		x, y := scalingOf(m.x).all(m.x), scalingOf(m.y).all(m.y)
		m.models = append(m.models, sizeyModel{fitLine(x, y), accuracyOf(x, y, 10, fitLine)},
			sizeyModel{fitPieces(x, y), accuracyOf(x, y, 5, fitPieces)},
			sizeyModel{fitForest(x, y), accuracyOf(x, y, 5, fitForest)})
		m.models = append(m.models, bestNeighbours(x, y))
	}
	if m.current {
		return
	}
	m.current = true
	sx, sy := scalingOf(m.x[:m.fitted]), scalingOf(m.y[:m.fitted])
	predicted := make([]float64, len(m.y))
	for i := range m.models {
		for k, x := range m.x {
			predicted[k] = sy.back(m.models[i].at(sx.of(x)))
		}
		m.offsets[i] = bestOffset(m.errors[i], predicted, m.y)
	}
}

// scaling maps the range of values to 0 to 1.
type scaling struct{ least, width float64 }

func scalingOf(values []float64) scaling {
	s := scaling{slices.Min(values), slices.Max(values) - slices.Min(values)}
	if s.width == 0 {
		s.width = 1
	}
	return s
}

func (s scaling) of(v float64) float64   { return (v - s.least) / s.width }
func (s scaling) back(v float64) float64 { return v*s.width + s.least }
func (s scaling) all(values []float64) (scaled []float64) {
	for _, v := range values {
		scaled = append(scaled, s.of(v))
	}
	return scaled
}

// accuracyOf returns minus the mean of relative errors in cross-validation with folds of neighbours, at most as many
// as there are tasks.
func accuracyOf(x, y []float64, folds int, fit func(x, y []float64) func(float64) float64) float64 {
	n, mean := len(y), 0.0
	folds = min(folds, n)
	for f := range folds {
		from, to := f*n/folds, (f+1)*n/folds
		at := fit(slices.Concat(x[:from], x[to:]), slices.Concat(y[:from], y[to:]))
		sum := 0.0
		for i := from; i < to; i++ {
			sum += min(1, math.Abs((y[i]-at(x[i]))/(y[i]+1e-8)))
		}
		mean -= sum / float64(to-from) / float64(folds)
	}
	return mean
}

func fitLine(x, y []float64) func(float64) float64 {
	var l line
	for i := range x {
		l.add(x[i], y[i])
	}
	return l.at
}

// piecesRidge is the penalty of the authors' network.
const piecesRidge = 0.001

// fitPieces fits a line with bends at 7 quantiles of x, as many as the network has rectifiers in a layer.
func fitPieces(x, y []float64) func(float64) float64 {
	sorted := slices.Sorted(slices.Values(x))
	const bends = 7
	var knots [bends]float64
	for k := range knots {
		knots[k] = percentile(sorted, float64(k)/bends)
	}
	const p = bends + 1
	row := func(x float64) (r [p]float64) {
		r[0] = 1
		for k, knot := range knots {
			r[k+1] = max(0, x-knot)
		}
		return r
	}
	var a [p][p + 1]float64
	for i := range x {
		r := row(x[i])
		for j := range p {
			for k := range p {
				a[j][k] += r[j] * r[k]
			}
			a[j][p] += r[j] * y[i]
		}
	}
	for j := range p {
		a[j][j] += piecesRidge
	}
	w := solve(&a)
	return func(x float64) (v float64) {
		for k, c := range row(x) {
			v += c * w[k]
		}
		return v
	}
}

// solve returns the solution of a positive definite system by elimination.
func solve(a *[8][9]float64) (w [8]float64) {
	for i := range a {
		for j := i + 1; j < len(a); j++ {
			f := a[j][i] / a[i][i]
			for k := i; k < len(a[j]); k++ {
				a[j][k] -= f * a[i][k]
			}
		}
	}
	for i := len(a) - 1; i >= 0; i-- {
		w[i] = a[i][len(a)]
		for k := i + 1; k < len(a); k++ {
			w[i] -= a[i][k] * w[k]
		}
		w[i] /= a[i][i]
	}
	return w
}

const (
	forestTrees = 10
	forestDepth = 5
)

// fitForest fits trees of regression, each to a sample drawn with replacement; the authors' have 10 to 50 trees of
// depth 3 to 7.
func fitForest(x, y []float64) func(float64) float64 {
	random := rand.New(rand.NewPCG(42, uint64(len(x))))
	trees := make([]*node, forestTrees)
	for i := range trees {
		points := make([]point, len(x))
		for k := range points {
			from := random.IntN(len(x))
			points[k] = point{x[from], y[from]}
		}
		slices.SortFunc(points, func(a, b point) int {
			switch {
			case a.x < b.x || a.x == b.x && a.y < b.y:
				return -1
			case a == b:
				return 0
			}
			return 1
		})
		trees[i] = grow(points, forestDepth)
	}
	return func(x float64) (v float64) {
		for _, t := range trees {
			v += t.value(x) / forestTrees
		}
		return v
	}
}

type point struct{ x, y float64 }

// node is a tree of regression.
type node struct {
	mean, at   float64
	below, not *node // nil for a leaf
}

func (t *node) value(x float64) float64 {
	for t.below != nil {
		if x <= t.at {
			t = t.below
		} else {
			t = t.not
		}
	}
	return t.mean
}

// grow splits points, which are in order of x, where the squared deviations become least.
func grow(points []point, depth int) *node {
	n, sum := float64(len(points)), 0.0
	for _, p := range points {
		sum += p.y
	}
	t := &node{mean: sum / n}
	best, split, left := sum*sum/n*(1+1e-12)+1e-15, 0, 0.0
	for i := 1; i < len(points) && depth > 0; i++ {
		left += points[i-1].y
		if points[i].x == points[i-1].x {
			continue
		}
		right := sum - left
		if gain := left*left/float64(i) + right*right/(n-float64(i)); gain > best {
			best, split = gain, i
		}
	}
	if split > 0 {
		t.at = (points[split-1].x + points[split].x) / 2
		t.below, t.not = grow(points[:split], depth-1), grow(points[split:], depth-1)
	}
	return t
}

// bestNeighbours is the mean of the nearest, weighted by nearness or not, of a number that cross-validation chooses.
func bestNeighbours(x, y []float64) (best sizeyModel) {
	best.accuracy = math.Inf(-1)
	for _, k := range []int{2, 3, 5, 7, 9} {
		for _, near := range []bool{false, true} {
			fit := func(x, y []float64) func(float64) float64 { return fitNeighbours(x, y, k, near) }
			if a := accuracyOf(x, y, 10, fit); a > best.accuracy {
				best = sizeyModel{fit(x, y), a}
			}
		}
	}
	return best
}

func fitNeighbours(x, y []float64, k int, near bool) func(float64) float64 {
	points := make([]point, len(x))
	for i := range x {
		points[i] = point{x[i], y[i]}
	}
	slices.SortStableFunc(points, func(a, b point) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		}
		return 0
	})
	k = min(k, len(points))
	return func(x float64) float64 {
		high, _ := slices.BinarySearchFunc(points, x, func(p point, x float64) int {
			if p.x < x {
				return -1
			}
			return 1
		})
		low := high
		for high-low < k {
			if high == len(points) || low > 0 && x-points[low-1].x <= points[high].x-x {
				low--
			} else {
				high++
			}
		}
		sum, total := 0.0, 0.0
		for _, p := range points[low:high] {
			w := 1.0
			if near {
				w = 1 / max(math.Abs(p.x-x), 1e-12)
			}
			sum += w * p.y
			total += w
		}
		return sum / total
	}
}

// bestOffset returns the offset, relative to predictions, with which these would have wasted least.
func bestOffset(errors, predicted, peaks []float64) (best float64) {
	least := math.Inf(1)
	lowest := math.Inf(1)
	for _, v := range predicted {
		if v > 0 {
			lowest = min(lowest, v)
		}
	}
	for _, offset := range offsetsOf(errors) {
		waste := 0.0
		for i, v := range predicted {
			if !(v > 0) {
				v = lowest
			}
			v += v * offset
			if over := v - peaks[i]; over >= 0 {
				waste += over
				continue
			}
			p := math.Exp2(math.Ceil(math.Log2(math.Ceil(peaks[i] / v))))
			waste += p/2*v + p*v - peaks[i]
		}
		if waste < least {
			least, best = waste, offset
		}
	}
	return best
}

// offsetsOf returns, of relative errors, which are above 0 where too little was predicted: the standard deviation of
// their amounts without outliers, the median of those above 0, the median of their amounts, and the standard deviation
// of those above 0.
func offsetsOf(errors []float64) (all [4]float64) {
	all = [4]float64{sizeyDefault, sizeyDefault, sizeyDefault, sizeyDefault}
	var amounts, under []float64
	for _, e := range errors {
		amounts = append(amounts, math.Abs(e))
		if e > 0 {
			under = append(under, e)
		}
	}
	slices.Sort(amounts)
	slices.Sort(under)
	if len(errors) > 1 {
		low, high := percentile(amounts, 0.1), percentile(amounts, 0.9)
		var usual moments
		for _, a := range amounts {
			if a >= low-1.5*(high-low) && a <= high+1.5*(high-low) {
				usual.add(a)
			}
		}
		all[0] = usual.deviation()
	}
	if len(under) > 0 {
		var m moments
		for _, u := range under {
			m.add(u)
		}
		all[1], all[3] = percentile(under, 0.5), m.deviation()
	}
	if amounts = slices.DeleteFunc(amounts, func(a float64) bool { return a == 0 }); len(amounts) > 0 {
		all[2] = percentile(amounts, 0.5)
	}
	return all
}

// kendall returns Kendall's tau-b of x and y.
func kendall(x, y []float64) float64 {
	alike, tiedX, tiedY, pairs := 0.0, 0.0, 0.0, 0.0
	for i := range x {
		for j := range i {
			a, b := x[i]-x[j], y[i]-y[j]
			pairs++
			switch {
			case a == 0 || b == 0:
				if a == 0 {
					tiedX++
				}
				if b == 0 {
					tiedY++
				}
			case a*b > 0:
				alike++
			default:
				alike--
			}
		}
	}
	if pairs == tiedX || pairs == tiedY {
		return 0
	}
	return alike / math.Sqrt((pairs-tiedX)*(pairs-tiedY))
}
