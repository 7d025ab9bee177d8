package profile

import "math"

// linear is a linear function of the columns of a row: W·x + B.
type linear struct {
	W []float64
	B float64
}

func (l linear) at(x []float64) float64 {
	sum := l.B
	for k, w := range l.W {
		sum += w * x[k]
	}
	return sum
}

// svr is linear support vector regression with an epsilon-insensitive loss (V. Vapnik, 1995; Prophet, section II.B):
// the line that minimises |W|²/2 + C·sum of weight·max(0, |W·x + B - y| - Epsilon). The zero svr is not valid.
type svr struct {
	C       float64 // above 0: what a unit of error costs
	Epsilon float64 // at least 0: errors up to it cost nothing
	// Tolerance is the largest violation of the conditions of optimality at which the fit ends, in units of y; above 0.
	Tolerance float64
	// Space of fit, which is reused.
	beta, bound, sum, kernel []float64
}

// mostSteps bounds the steps of a fit per row. A fit of 25 rows takes tens of steps per row. The bound ends a fit whose
// tolerance is below the rounding errors of its columns.
const mostSteps = 4000

// fit returns the line through rows x with targets y, and the minimum that it reached. weight multiplies C per row, nil
// is 1 for each. Rows of weight 0 do not count. All values must be finite. It neither keeps nor changes its arguments.
// The same arguments give the same line.
//
// It is sequential minimal optimisation on the dual (C.-C. Chang, C.-J. Lin, LIBSVM, 2011, section 4). The two
// multipliers of a row are one number beta here, their difference, so that the dual has one variable per row: minimise
// |sum of beta·x|²/2 - sum of beta·y + Epsilon·sum of |beta|, where the betas add up to 0 and none exceeds C·weight.
// Each step moves an equal amount from one beta to another. B is as in LIBSVM: the mean over rows on the edge of the
// insensitive tube, or the middle of the allowed interval if there is no such row.
func (s *svr) fit(x [][]float64, y, weight []float64) (l linear, minimum float64) {
	if len(x) == 0 {
		return linear{}, 0
	}
	s.prepare(x, weight)
	for range mostSteps * len(x) {
		i, j, push := s.choose(y)
		if push <= 0 {
			break
		}
		s.move(i, j, push)
	}
	return s.line(x, y)
}

// prepare sets all betas to 0, and computes their bounds and the products of all pairs of rows.
func (s *svr) prepare(x [][]float64, weight []float64) {
	n := len(x)
	if cap(s.beta) < n {
		s.beta, s.bound, s.sum, s.kernel = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n*n)
	}
	s.beta, s.bound, s.sum, s.kernel = s.beta[:n], s.bound[:n], s.sum[:n], s.kernel[:n*n]
	clear(s.beta)
	clear(s.sum)
	for i := range x {
		s.bound[i] = s.C
		if weight != nil {
			s.bound[i] *= weight[i]
		}
		for j := range i + 1 {
			product := dot(x[i], x[j])
			s.kernel[i*n+j], s.kernel[j*n+i] = product, product
		}
	}
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += a[k] * b[k]
	}
	return sum
}

// up and down return what the dual changes per unit by which beta of row i becomes larger or smaller; g is the row's
// predicted value without B, less its target.
func (s *svr) up(i int, g float64) float64 {
	if s.beta[i] >= 0 {
		return g + s.Epsilon
	}
	return g - s.Epsilon
}

func (s *svr) down(i int, g float64) float64 {
	if s.beta[i] > 0 {
		return -g - s.Epsilon
	}
	return -g + s.Epsilon
}

// choose returns the row i whose beta is best made larger and the row j whose beta is then best made smaller, to second
// order. push is what the dual loses per unit of the step; 0 means that no step pushes by
// more than the tolerance.
func (s *svr) choose(y []float64) (i, j int, push float64) {
	i, j = -1, -1
	least := math.Inf(1)
	for k, b := range s.beta {
		if b < s.bound[k] {
			if u := s.up(k, s.sum[k]-y[k]); u < least {
				i, least = k, u
			}
		}
	}
	if i < 0 {
		return 0, 0, 0
	}
	best, widest := 0.0, 0.0
	for k, b := range s.beta {
		if b <= -s.bound[k] {
			continue
		}
		p := -least - s.down(k, s.sum[k]-y[k])
		widest = max(widest, p)
		if p <= 0 {
			continue
		}
		if gain := p * p / s.bend(i, k); gain > best {
			j, push, best = k, p, gain
		}
	}
	if j < 0 || widest <= s.Tolerance {
		return 0, 0, 0
	}
	return i, j, push
}

// bend is the second derivative of the dual along a step from j to i. Equal rows have none; the smallest number in its
// place makes such a step as long as it can be.
func (s *svr) bend(i, j int) float64 {
	n := len(s.beta)
	return max(s.kernel[i*n+i]+s.kernel[j*n+j]-2*s.kernel[i*n+j], 1e-12)
}

// move makes the beta of i larger and that of j smaller, to the minimum of the dual or to where a beta reaches 0 or its
// bound.
func (s *svr) move(i, j int, push float64) {
	roomUp := s.bound[i] - s.beta[i]
	if s.beta[i] < 0 {
		roomUp = -s.beta[i]
	}
	roomDown := s.bound[j] + s.beta[j]
	if s.beta[j] > 0 {
		roomDown = s.beta[j]
	}
	step := min(push/s.bend(i, j), roomUp, roomDown)
	wasUp, wasDown := s.beta[i], s.beta[j]
	s.beta[i], s.beta[j] = wasUp+step, wasDown-step
	if step == roomUp { // to the bound itself, without a rounding error
		s.beta[i] = 0
		if wasUp >= 0 {
			s.beta[i] = s.bound[i]
		}
	}
	if step == roomDown {
		s.beta[j] = 0
		if wasDown <= 0 {
			s.beta[j] = -s.bound[j]
		}
	}
	n := len(s.beta)
	for k := range s.sum {
		s.sum[k] += step * (s.kernel[i*n+k] - s.kernel[j*n+k])
	}
}

// line reads W, B and the minimum off the betas.
func (s *svr) line(x [][]float64, y []float64) (linear, float64) {
	l := linear{W: make([]float64, len(x[0]))}
	for i, b := range s.beta {
		for k := range l.W {
			l.W[k] += b * x[i][k]
		}
	}
	edge, edges := 0.0, 0
	least, largest := math.Inf(-1), math.Inf(1) // of -B
	for i, b := range s.beta {
		g, bound := dot(l.W, x[i])-y[i], s.bound[i]
		switch {
		case b != 0 && -bound < b && b < bound:
			edge += s.up(i, g)
			edges++
		case bound == 0:
		default:
			if b < bound {
				largest = min(largest, s.up(i, g))
			}
			if b > -bound {
				least = max(least, -s.down(i, g))
			}
		}
	}
	switch {
	case edges > 0:
		l.B = -edge / float64(edges)
	case !math.IsInf(least, 0) && !math.IsInf(largest, 0):
		l.B = -(least + largest) / 2
	}
	minimum := dot(l.W, l.W) / 2
	for i := range x {
		minimum += s.bound[i] * max(0, math.Abs(l.at(x[i])-y[i])-s.Epsilon)
	}
	return l, minimum
}
