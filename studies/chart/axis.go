package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scale is an axis: from a range of values to a range of pixels.
type scale struct {
	low, high float64 // values; low < high, both above zero if log
	log       bool
	from, to  float64 // pixels of low and high
}

// beyond is the largest number that is drawn: larger numbers are gaps, as if they were infinite; on a logarithmic axis
// numbers below 1/beyond are gaps, too. So differences and products of drawn numbers stay finite.
const beyond = 1e100

func finite(v float64) bool { return math.Abs(v) <= beyond }

// shows reports whether the axis has a position for v.
func (a scale) shows(v float64) bool { return finite(v) && (!a.log || v >= 1/beyond) }

// pixel returns the position of v, which the axis must show.
func (a scale) pixel(v float64) float64 {
	low, high := a.low, a.high
	if a.log {
		low, high, v = math.Log(low), math.Log(high), math.Log(v)
	}
	part := (v - low) / (high - low)
	// Far outside of the sheet, positions are equivalent.
	return a.from + max(-1e3, min(1e3, part))*(a.to-a.from)
}

// extent is the range of the values seen.
type extent struct {
	low, high float64
	any       bool
}

func (e *extent) add(v float64) {
	if !e.any {
		*e = extent{v, v, true}
		return
	}
	e.low, e.high = min(e.low, v), max(e.high, v)
}

// settle returns an axis for the values seen and the requested ends. A tight axis ends with the data, another axis with
// a round number; zero is shown if that does not hide the differences of the data.
func (e extent) settle(name string, log, tight, fromZero bool, low, high *float64) (scale, error) {
	for _, end := range []*float64{low, high} {
		if end != nil && !(scale{log: log}).shows(*end) {
			return scale{}, fmt.Errorf("range of %s: %v cannot be an end of the axis", name, *end)
		}
	}
	if low != nil && high != nil && !(*low < *high) {
		return scale{}, fmt.Errorf("range of %s: from %v to %v", name, *low, *high)
	}
	a := scale{low: e.low, high: e.high, log: log}
	if !e.any {
		a.low, a.high = 0, 1
		if log {
			a.low = 0.1
		}
	}
	near := 0.6 // as a share of the other end
	if tight {
		near = 0.25
	}
	if !log && a.low > 0 && (fromZero || a.low <= near*a.high) {
		a.low = 0
	}
	if !log && fromZero && a.high < 0 {
		a.high = 0
	}
	if low != nil {
		a.low = *low
	}
	if high != nil {
		a.high = *high
	}
	a.part(low != nil, high != nil)
	if !tight {
		a.round(low != nil, high != nil)
	}
	return a, nil
}

// part separates equal ends by moving ends that are not fixed.
func (a *scale) part(lowFixed, highFixed bool) {
	if a.high-a.low > max(1/beyond, 1e-12*max(math.Abs(a.low), math.Abs(a.high))) {
		return
	}
	if a.log {
		if !lowFixed {
			a.low = min(a.low, a.high) / 2
		}
		if !highFixed || a.low >= a.high {
			a.high = max(a.high, a.low) * 2
		}
		if a.low >= a.high {
			a.low = a.high / 2
		}
		return
	}
	by := max(math.Abs(a.low), math.Abs(a.high)) / 2
	if by < 1/beyond {
		by = 1
	}
	switch {
	case lowFixed:
		a.high = a.low + by
	case highFixed:
		a.low = a.high - by
	default:
		a.low, a.high = a.low-by, a.high+by
	}
}

// round moves the ends that are not fixed to marks.
func (a *scale) round(lowFixed, highFixed bool) {
	if a.log {
		a.roundLog(lowFixed, highFixed)
		return
	}
	step := niceStep(a.high-a.low, 8)
	if !lowFixed {
		a.low = math.Floor(a.low/step+1e-9) * step
	}
	if !highFixed {
		a.high = math.Ceil(a.high/step-1e-9) * step
	}
}

func (a *scale) roundLog(lowFixed, highFixed bool) {
	if !lowFixed {
		for _, m := range []float64{5, 2, 1} {
			if v := m * math.Pow(10, math.Floor(math.Log10(a.low))); v <= a.low {
				a.low = v
				break
			}
		}
	}
	if !highFixed {
		for _, m := range []float64{1, 2, 5, 10} {
			if v := m * math.Pow(10, math.Floor(math.Log10(a.high))); v >= a.high*(1-1e-12) {
				a.high = v
				break
			}
		}
	}
}

// niceStep returns 1, 2 or 5 times a power of ten that divides span into about n parts.
func niceStep(span, n float64) float64 {
	raw := span / n
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*power*1.0001 {
			return m * power
		}
	}
	return 10 * power
}

// mark is a position on an axis with its number.
type mark struct {
	at    float64
	label string
}

// marks returns the numbers of the axis, with about gap pixels between them.
func (a scale) marks(gap float64) []mark {
	n := max(2, math.Abs(a.to-a.from)/gap)
	if a.log {
		if m := a.decades(n); len(m) >= 2 {
			return m
		}
	}
	step := niceStep(a.high-a.low, n)
	var at []float64
	for k := math.Ceil(a.low/step - 1e-9); k <= math.Floor(a.high/step+1e-9) && len(at) < 100; k++ {
		at = append(at, k*step)
		if k+1 == k {
			break
		}
	}
	marks := make([]mark, len(at))
	for i, v := range at {
		marks[i] = mark{v, number(v, step)}
	}
	return marks
}

// decades marks powers of ten, and also 2 and 5 times these if there are few.
func (a scale) decades(n float64) []mark {
	first, last := math.Floor(math.Log10(a.low)), math.Ceil(math.Log10(a.high))
	times := []float64{1, 2, 5}
	if (last-first)*3 > n {
		times = []float64{1}
	}
	every := max(1, math.Ceil((last-first)/n))
	var marks []mark
	for d := first; d <= last; d += every {
		for _, m := range times {
			text := fmt.Sprintf("%ge%g", m, d)
			v, err := strconv.ParseFloat(text, 64)
			if err == nil && v >= a.low*(1-1e-9) && v <= a.high*(1+1e-9) {
				marks = append(marks, mark{v, number(v, v)})
			}
		}
	}
	return marks
}

// number prints v with the digits that steps of step need: 12,000, 0.25, 3.5M, 1e-7.
func number(v, step float64) string {
	if math.Abs(v) < step*1e-6 {
		v = 0
	}
	size := max(math.Abs(v), step)
	switch {
	case v == 0:
		return "0"
	case size >= 1e15 || size < 1e-5:
		return strings.ReplaceAll(strconv.FormatFloat(v, 'g', 4, 64), "e+", "e")
	case step >= 1e9 || size >= 1e10:
		return trimmed(v/1e9) + "G"
	case step >= 1e6 || size >= 1e7:
		return trimmed(v/1e6) + "M"
	}
	digits := 0
	for s := step; digits < 8 && math.Abs(s-math.Round(s)) > 1e-6*s; digits++ {
		s *= 10
	}
	return thousands(strconv.FormatFloat(v, 'f', digits, 64))
}

func trimmed(v float64) string { return thousands(strconv.FormatFloat(v, 'f', -1, 64)) }

// thousands inserts commas between groups of three digits in numbers from 10,000 on.
func thousands(s string) string {
	whole, rest, dot := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	if len(whole) > 4 {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if dot {
		whole += "." + rest
	}
	return strings.Replace(sign, "-", "−", 1) + whole
}
