package timeline

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// FirstFit returns the earliest x >= from such that t holds at least need, in every component, at all of
// [x, x+length). ok is false if there is none. A length of zero or less asks for the moment x alone, and a length that
// reaches Never for all time from x on. There is nothing at or after Never. It takes O(steps).
func (t *Timeline) FirstFit(need resource.Vector, length time.Duration, from Time) (x Time, ok bool) {
	if from == Never {
		return Never, false
	}
	length = max(length, 1)
	steps := t.steps()
	i := t.after(from)
	start, fits := from, need.FitsIn(valueBefore(steps, i))
	for ; i < len(steps); i++ {
		s := &steps[i]
		if fits && s.At >= start.Add(length) {
			return start, true
		}
		if !need.FitsIn(s.Value) {
			fits = false
		} else if !fits {
			start, fits = s.At, true
		}
	}
	if !fits {
		return Never, false
	}
	return start, true
}

// Min returns, for each component, its smallest value in s. An empty span asks for the moment s.From alone.
func (t *Timeline) Min(s Span) resource.Vector {
	steps := t.steps()
	i := t.after(s.From)
	v := valueBefore(steps, i)
	for ; i < len(steps) && steps[i].At < s.To; i++ {
		for k, a := range &steps[i].Value {
			v[k] = min(v[k], a)
		}
	}
	return v
}

// Max returns, for each component, its largest value in s. An empty span asks for the moment s.From alone.
func (t *Timeline) Max(s Span) resource.Vector {
	steps := t.steps()
	i := t.after(s.From)
	v := valueBefore(steps, i)
	for ; i < len(steps) && steps[i].At < s.To; i++ {
		for k, a := range &steps[i].Value {
			v[k] = max(v[k], a)
		}
	}
	return v
}
