package profile

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// The names of rows, from simple to flexible: how a number is predicted. Recent runs weigh more in each.
const (
	// AsMeasured is the only run, with its durations scaled by the input.
	AsMeasured = "as measured"
	// ByMedian is the median of all runs, with their durations scaled by the input.
	ByMedian = "median"
	// BySVR is a support vector regression on the features (Prophet, section II.B).
	BySVR = "svr"
	// BySVRLog is the same on logarithms of the features and of the number.
	BySVRLog = "svr-log"
	// ByHuberLog is a regression with Huber's loss on logarithms.
	ByHuberLog = "huber-log"
	// ByHuberErnest is a regression with Huber's loss of relative errors on the terms of Ernest (S. Venkataraman and
	// others, NSDI 2016): input/cores, input, the logarithm of cores, cores and 1. It does not look at memory.
	ByHuberErnest = "huber-ernest"
	// ByFuzzy is a PhaseModel (ECS, section III.C) on the durations of the run and of its phases, from FewestPhaseSamples
	// runs on. Older runs, of which History keeps the durations alone, count, too.
	ByFuzzy = "fuzzy"
)

// fewestRuns is the number of runs from which on regressions are tried.
const fewestRuns = 5

// basis says which features are columns of regressions: the features that all runs have and that differ in two runs
// at least, so that they differ whichever run is left out.
type basis [features]bool

func basisOf(runs []*numbered, input bool) (b basis) {
	for i, kind := range featureKinds {
		if i == inputFeature && !input {
			continue
		}
		count, most, known := map[resource.Amount]int{}, 0, true
		for _, r := range runs {
			a := *kind.of(&r.Features)
			known = known && a > 0
			count[a]++
			most = max(most, count[a])
		}
		b[i] = known && len(runs)-most >= 2
	}
	return b
}

// row is a kind of regression.
type row struct {
	name string
	// columns returns the columns for features f.
	columns func(b basis, f *Features) []float64
	log     bool // whether the number's logarithm is predicted
	fit     func(l *learner, x [][]float64, y, weight, unit []float64) (linear, bool)
}

// rows are in the order in which they are tried, the fastest to fit first.
var rows = [...]row{
	{ByHuberLog, logColumns, true, (*learner).huberLine},
	{ByHuberErnest, ernestColumns, false, (*learner).huberLine},
	{BySVRLog, logColumns, true, (*learner).supportVectors},
	{BySVR, plainColumns, false, (*learner).supportVectors},
}

func plainColumns(b basis, f *Features) (x []float64) {
	for i, kind := range featureKinds {
		if b[i] {
			x = append(x, float64(*kind.of(f)))
		}
	}
	return x
}

func logColumns(b basis, f *Features) []float64 {
	x := plainColumns(b, f)
	for i := range x {
		x[i] = math.Log(x[i])
	}
	return x
}

// ernestColumns are the terms of Ernest that differ from run to run.
func ernestColumns(b basis, f *Features) []float64 {
	s, c := float64(f.Input)/float64(resource.GiB), float64(f.Cores)/float64(resource.Core)
	switch {
	case b[inputFeature] && b[coresFeature]:
		return []float64{s / c, s, math.Log(c), c}
	case b[inputFeature]:
		return []float64{s}
	case b[coresFeature]:
		return []float64{1 / c, math.Log(c), c}
	}
	return nil
}

// model predicts a target.
type model struct {
	name   string
	missed float64     // mean relative error at runs left out
	fuzzy  *PhaseModel // predicts, if it is not nil
	row    *row        // nil without fuzzy: the median
	basis  basis
	line   linear
	// least and most are the features of the runs.
	least, most Features
}

// reaches reports whether the row may predict for f: every column is at most as far outside of what was measured as the
// measured range is wide, as a ratio. Inputs of 1 to 10 GB reach to 100 GB, inputs of 9 to 10 GB to 11 GB.
func (m *model) reaches(f *Features) bool {
	for i, kind := range featureKinds {
		least, most, asked := float64(*kind.of(&m.least)), float64(*kind.of(&m.most)), float64(*kind.of(f))
		if m.basis[i] && (asked*most < least*least || asked*least > most*most) {
			return false
		}
	}
	return true
}

// at returns the prediction for features f. For the median, run skip is left out.
func (m *model) at(t *target, f Features, skip int) float64 {
	if m.fuzzy != nil {
		return m.fuzzy.secondsOf(t.phase, &f)
	}
	if m.row == nil {
		return t.median(f.Input, skip)
	}
	if !m.reaches(&f) {
		return math.NaN()
	}
	return m.row.value(m.line, m.row.columns(m.basis, &f))
}

// learner fits models to targets. It keeps the space that fits need.
type learner struct {
	svr       svr
	huber     huber
	mean, sd  []float64
	scaled    [][]float64
	one       []float64
	heldX     [][]float64
	heldY     []float64
	heldUnit  []float64
	heldWeigh []float64
}

// choose sets t.models: the median, and every row that can be fitted whichever run is left out and has a smaller
// error at runs left out than the median and the rows tried before it.
func (l *learner) choose(t *target, b basis, allowed func(row string) bool) {
	best := model{name: ByMedian}
	if len(t.runs) == 1 {
		best.name = AsMeasured
	} else {
		best.missed, _ = missed(t, math.Inf(1), func(i int) (float64, bool) { return t.median(t.runs[i].Input, i), true })
	}
	t.models = []model{best}
	if len(t.runs) < fewestRuns || same(t.values) {
		return
	}
	for i := range rows {
		if !allowed(rows[i].name) {
			continue
		}
		if m, ok := l.try(&rows[i], t, b, t.models[0].missed); ok {
			t.models = slices.Insert(t.models, 0, m)
		}
	}
}

func same(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

// missed returns the weighted mean of the relative errors of predictions for each run without it. ok is false if it
// is not below limit, or if one prediction fails; the rest is not computed then.
func missed(t *target, limit float64, predict func(run int) (value float64, ok bool)) (mean float64, ok bool) {
	sum, total := 0.0, 0.0
	for _, w := range t.weight {
		total += w
	}
	for i, v := range t.values {
		value, can := predict(i)
		sum += t.weight[i] / total * (math.Abs(value-v) / max(v, t.floor, math.SmallestNonzeroFloat64))
		if !can || !(sum < limit) {
			return min(sum, math.MaxFloat64), false
		}
	}
	return sum, true
}

// try fits a row to t. ok is false if its error is not below limit, or where the runs do not suffice: fewer than two
// more different features than columns, a value of 0 of which a logarithm would be needed, or collinear columns
// whichever run is left out.
func (l *learner) try(r *row, t *target, b basis, limit float64) (m model, ok bool) {
	m, x, y, unit, ok := l.fitted(r, t, b)
	if !ok {
		return model{}, false
	}
	m.missed, ok = missed(t, limit, func(i int) (value float64, ok bool) {
		held, ok := l.without(i, r, x, y, t.weight, unit)
		if !ok {
			return 0, false
		}
		return r.value(held, x[i]), true
	})
	return m, ok
}

// fitted returns r fitted to all runs of t, without its error, and the points; ok is false if the runs do not suffice.
func (l *learner) fitted(r *row, t *target, b basis) (m model, x [][]float64, y, unit []float64, ok bool) {
	if x, y, unit, ok = r.points(t, b); !ok {
		return m, nil, nil, nil, false
	}
	m = model{name: r.name, row: r, basis: b}
	m.line, ok = r.fit(l, x, y, t.weight, unit)
	m.least, m.most = rangeOf(t.runs)
	return m, x, y, unit, ok
}

// points returns what r is fitted to; ok is false if the runs do not suffice.
func (r *row) points(t *target, b basis) (x [][]float64, y, unit []float64, ok bool) {
	x, y, unit = make([][]float64, len(t.runs)), make([]float64, len(t.runs)), make([]float64, len(t.runs))
	for i, run := range t.runs {
		x[i], y[i], unit[i] = r.columns(b, &run.Features), t.values[i], max(t.values[i], t.floor)
		if r.log {
			y[i], unit[i] = math.Log(t.values[i]), 1
		}
		if math.IsInf(y[i], 0) || !(unit[i] > 0) {
			return nil, nil, nil, false
		}
	}
	return x, y, unit, len(x[0]) > 0 && different(x) >= len(x[0])+2
}

// value returns the prediction for columns x.
func (r *row) value(line linear, x []float64) float64 {
	if r.log {
		return math.Exp(line.at(x))
	}
	return line.at(x)
}

// rangeOf returns the least and the most of each feature of runs that have it.
func rangeOf(runs []*numbered) (least, most Features) {
	for _, r := range runs {
		for _, kind := range featureKinds {
			a, low, high := *kind.of(&r.Features), kind.of(&least), kind.of(&most)
			if a > 0 && (*low == 0 || a < *low) {
				*low = a
			}
			*high = max(*high, a)
		}
	}
	return least, most
}

// without fits a row to all runs but one.
func (l *learner) without(run int, r *row, x [][]float64, y, weight, unit []float64) (linear, bool) {
	l.heldX = append(append(l.heldX[:0], x[:run]...), x[run+1:]...)
	l.heldY = append(append(l.heldY[:0], y[:run]...), y[run+1:]...)
	l.heldWeigh = append(append(l.heldWeigh[:0], weight[:run]...), weight[run+1:]...)
	l.heldUnit = append(append(l.heldUnit[:0], unit[:run]...), unit[run+1:]...)
	return r.fit(l, l.heldX, l.heldY, l.heldWeigh, l.heldUnit)
}

// different returns how many different rows x has.
func different(x [][]float64) (n int) {
	for i := range x {
		if !slices.ContainsFunc(x[:i], func(y []float64) bool { return slices.Equal(x[i], y) }) {
			n++
		}
	}
	return n
}

func (l *learner) huberLine(x [][]float64, y, weight, unit []float64) (linear, bool) {
	return l.huber.fit(x, y, weight, unit)
}

// The settings of support vector regressions: the defaults of scikit-learn. Columns and targets are scaled to mean
// 0 and variance 1 before, so that they hold for all programs.
const (
	svrCost      = 1
	svrTube      = 0.1
	svrTolerance = 1e-3
)

// supportVectors fits a support vector regression and returns it in the units of x and y. unit does not matter.
func (l *learner) supportVectors(x [][]float64, y, weight, unit []float64) (linear, bool) {
	p := len(x[0])
	l.scale(x, y)
	for k := range p + 1 {
		if !(l.sd[k] > 0) {
			return linear{}, false
		}
	}
	l.svr.C, l.svr.Epsilon, l.svr.Tolerance = svrCost, svrTube, svrTolerance
	line, _ := l.svr.fit(l.scaled[:len(x)], l.one[:len(x)], weight)
	line.B = line.B*l.sd[p] + l.mean[p]
	for k := range p {
		line.W[k] *= l.sd[p] / l.sd[k]
		line.B -= line.W[k] * l.mean[k]
	}
	return line, true
}

// scale sets l.scaled and l.one to x and y with mean 0 and variance 1, and keeps means and deviations; a column that is
// constant has a deviation of 0.
func (l *learner) scale(x [][]float64, y []float64) {
	p, n := len(x[0]), float64(len(x))
	l.mean, l.sd = append(l.mean[:0], make([]float64, p+1)...), append(l.sd[:0], make([]float64, p+1)...)
	for i := range x {
		for k, v := range x[i] {
			l.mean[k] += v / n
		}
		l.mean[p] += y[i] / n
	}
	for i := range x {
		for k, v := range x[i] {
			l.sd[k] += (v - l.mean[k]) * (v - l.mean[k]) / n
		}
		l.sd[p] += (y[i] - l.mean[p]) * (y[i] - l.mean[p]) / n
	}
	for k := range l.sd {
		l.sd[k] = math.Sqrt(l.sd[k])
		if l.sd[k] <= 1e-9*math.Abs(l.mean[k]) {
			l.sd[k] = 0
		}
	}
	for len(l.scaled) < len(x) {
		l.scaled = append(l.scaled, nil)
	}
	l.one = l.one[:0]
	for i := range x {
		l.scaled[i] = l.scaled[i][:0]
		for k, v := range x[i] {
			l.scaled[i] = append(l.scaled[i], (v-l.mean[k])/l.sd[k])
		}
		l.one = append(l.one, (y[i]-l.mean[p])/l.sd[p])
	}
}
