package profile

import (
	"math"
	"slices"
)

// huber is a linear regression with Huber's loss (P. J. Huber, 1964), which is quadratic for small errors and linear
// for large ones, so that a few slow runs do not move the line far. It is fitted by iteratively reweighted least
// squares: the first rounds minimise absolute errors, whose median then is the scale of what is a small error; the
// last rounds minimise Huber's loss with that scale. The zero huber is ready for use.
type huber struct {
	// Space of fit, which is reused.
	weight, off, sorted []float64
	squares, solution   []float64
	mean                []float64
}

const (
	// huberBend is where Huber's loss becomes linear, in scales: it keeps 95 % of the efficiency of least squares where
	// errors are normal.
	huberBend = 1.345
	// normalMedian is the median of the absolute values of a standard normal distribution.
	normalMedian = 0.6745
	// absoluteRounds and huberRounds bound the rounds of a fit.
	absoluteRounds, huberRounds = 12, 30
	// leastPivot is the share of a column's variance below which the column is a combination of the columns before it.
	leastPivot = 1e-8
)

// fit returns the line through rows x with targets y. weight is that of each row's loss, not negative. unit is the
// unit of each row's error, above 0: 1 for errors as they are, the target for relative errors. All values must be
// finite. It neither keeps nor changes its arguments. ok is false where the rows do not determine a line: there are
// fewer rows than columns and one more, or a column is constant or a combination of other columns.
func (h *huber) fit(x [][]float64, y, weight, unit []float64) (l linear, ok bool) {
	if len(x) == 0 || len(x) < len(x[0])+1 {
		return linear{}, false
	}
	h.prepare(len(x), len(x[0]))
	l = linear{W: make([]float64, len(x[0]))}
	for i := range x {
		h.weight[i] = weight[i] / (unit[i] * unit[i])
	}
	if !h.solve(&l, x, y) {
		return linear{}, false
	}
	for range absoluteRounds {
		small := 1e-3*h.errors(&l, x, y, unit) + math.SmallestNonzeroFloat64
		for i := range x {
			h.weight[i] = weight[i] / (unit[i] * unit[i]) * min(1, small/h.off[i])
		}
		if !h.solve(&l, x, y) {
			return l, true // an exact fit of nearly all rows
		}
	}
	scale := h.errors(&l, x, y, unit) / normalMedian
	for range huberRounds {
		before := l.B
		for i := range x {
			h.weight[i] = weight[i] / (unit[i] * unit[i]) * min(1, huberBend*scale/h.off[i])
		}
		if scale == 0 || !h.solve(&l, x, y) {
			break
		}
		h.errors(&l, x, y, unit)
		if math.Abs(l.B-before) <= 1e-9*math.Abs(before) {
			break
		}
	}
	return l, true
}

func (h *huber) prepare(rows, columns int) {
	if cap(h.weight) < rows {
		h.weight, h.off, h.sorted = make([]float64, rows), make([]float64, rows), make([]float64, rows)
	}
	h.weight, h.off, h.sorted = h.weight[:rows], h.off[:rows], h.sorted[:rows]
	if cap(h.mean) < columns+1 {
		h.mean, h.solution, h.squares = make([]float64, columns+1), make([]float64, columns), make([]float64, columns*columns)
	}
	h.mean, h.solution, h.squares = h.mean[:columns+1], h.solution[:columns], h.squares[:columns*columns]
}

// errors computes the absolute error of each row in its unit, and returns their median without the smallest ones, of
// which the line passes through one per coefficient.
func (h *huber) errors(l *linear, x [][]float64, y, unit []float64) (median float64) {
	for i := range x {
		h.off[i] = math.Abs(y[i]-l.at(x[i])) / unit[i]
	}
	copy(h.sorted, h.off)
	slices.Sort(h.sorted)
	rest := h.sorted[min(len(l.W)+1, len(x)-1):]
	return rest[len(rest)/2]
}

// solve replaces l by the line of least squares with the current weights. ok is false, and l is unchanged, where the
// rows do not determine it. Columns are centred, and scaled to variance 1, so that their units do not matter.
func (h *huber) solve(l *linear, x [][]float64, y []float64) (ok bool) {
	p := len(l.W)
	total := 0.0
	clear(h.mean)
	for i, row := range x {
		total += h.weight[i]
		for k, v := range row {
			h.mean[k] += h.weight[i] * v
		}
		h.mean[p] += h.weight[i] * y[i]
	}
	if !(total > 0) || math.IsInf(total, 0) {
		return false
	}
	for k := range h.mean {
		h.mean[k] /= total
	}
	clear(h.squares)
	clear(h.solution)
	for i, row := range x {
		for a := range p {
			weighted := h.weight[i] / total * (row[a] - h.mean[a])
			for b := range a + 1 {
				h.squares[a*p+b] += weighted * (row[b] - h.mean[b])
			}
			h.solution[a] += weighted * (y[i] - h.mean[p])
		}
	}
	if !cholesky(h.squares, h.solution, h.mean) {
		return false
	}
	l.B = h.mean[p]
	for k, w := range h.solution {
		l.W[k] = w
		l.B -= w * h.mean[k]
	}
	return true
}

// cholesky replaces b by the solution of a·b, where a is symmetric, given by its lower half, and is overwritten. mean
// has the means of the columns. ok is false if a column has no variance around its mean, or none that the columns
// before it leave.
func cholesky(a, b, mean []float64) (ok bool) {
	p := len(b)
	for i := range p {
		variance := a[i*p+i]
		if !(variance > 1e-18*mean[i]*mean[i]) {
			return false
		}
		for j := range i + 1 {
			sum := a[i*p+j]
			for k := range j {
				sum -= a[i*p+k] * a[j*p+k]
			}
			if j < i {
				a[i*p+j] = sum / a[j*p+j]
				continue
			}
			if !(sum > leastPivot*variance) {
				return false
			}
			a[i*p+i] = math.Sqrt(sum)
		}
	}
	for i := range p {
		for k := range i {
			b[i] -= a[i*p+k] * b[k]
		}
		b[i] /= a[i*p+i]
	}
	for i := p - 1; i >= 0; i-- {
		for k := i + 1; k < p; k++ {
			b[i] -= a[k*p+i] * b[k]
		}
		b[i] /= a[i*p+i]
	}
	return true
}
