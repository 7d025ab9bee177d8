// Package timeline holds resources as a function of time: a Timeline is a step function from Time to resource.Vector.
// It is the one picture of the future (and of the past) that every policy reasons with: the memory of a node that
// becomes free as its tasks end, the demand of a task from phase to phase, the sum of all demands beside the capacity,
// what was used in the course of a run.
//
// Everything is integers: a sum does not depend on the order of its terms, and an area is exact (see Area). Changing
// operations work in place. They allocate only when a Timeline grows beyond the steps it ever had at once; operations
// that read allocate nothing. A Timeline keeps n steps in one sorted slice, so finding a time takes O(log n), a change
// O(log n) plus moving the steps behind it in memory, and a change at the end, as when recording, amortised O(1).
//
// Amounts should stay within plus or minus 2^62 (4 EiB), so that neither a sum nor a difference of two of them overflows.
// Beyond that they wrap around.
package timeline

import (
	"slices"

	"github.com/bellows-rm/bellows/resource"
)

// Step is a breakpoint of a Timeline: from At on it has Value, until the next step.
type Step struct {
	At    Time
	Value resource.Vector
}

// Timeline is a step function from Time to resource.Vector, with components of any sign. The zero Timeline is the
// zero Vector at all times, and ready to use. Timelines are changed in place and handed around by pointer; a copy of
// the struct shares its steps, so use Clone. A Timeline may be read by several goroutines as long as none changes it.
//
// There is one form for each function:
//   - before the first step it is the zero Vector;
//   - steps ascend strictly in time, and the last has no end;
//   - no step has the value of the one before it, and the first is not zero;
//   - no step is at Never.
//
// So two Timelines are the same function if and only if they have the same steps, and print the same text.
type Timeline struct {
	// buf[dropped:] are the steps. What Trim removes stays in front until it is worth moving the rest down.
	// Invariant: dropped <= len(buf)/2 after every operation.
	buf     []Step
	dropped int
}

// Of returns the Timeline that is v in s and zero elsewhere.
func Of(s Span, v resource.Vector) *Timeline {
	t := new(Timeline)
	t.Add(s, v)
	return t
}

// At returns the value at x. At Never it is the value of the last step, which has no end.
func (t *Timeline) At(x Time) resource.Vector {
	return valueBefore(t.steps(), t.after(x))
}

// Len returns the number of steps.
func (t *Timeline) Len() int { return len(t.buf) - t.dropped }

// Step returns the i-th step, 0 <= i < Len.
func (t *Timeline) Step(i int) Step { return t.steps()[i] }

// IsZero reports whether t is the zero Vector at all times.
func (t *Timeline) IsZero() bool { return t.Len() == 0 }

// Equal reports whether t and o are the same function.
func (t *Timeline) Equal(o *Timeline) bool { return slices.Equal(t.steps(), o.steps()) }

// Clone returns a copy that shares nothing with t.
func (t *Timeline) Clone() *Timeline { return &Timeline{buf: slices.Clone(t.steps())} }

// CopyFrom makes t the same function as o. It shares nothing with o, and keeps the memory that t has.
func (t *Timeline) CopyFrom(o *Timeline) {
	if t == o {
		return
	}
	t.buf, t.dropped = append(t.buf[:0], o.steps()...), 0
}

// Reset makes t zero at all times and keeps its memory for the next steps.
func (t *Timeline) Reset() { t.buf, t.dropped = t.buf[:0], 0 }

func (t *Timeline) steps() []Step { return t.buf[t.dropped:] }

// after returns the number of steps at or before x, which is the index of the first step after x.
func (t *Timeline) after(x Time) int {
	s := t.steps()
	lo, hi := 0, len(s)
	if hi == 0 || s[hi-1].At <= x { // the end is where recorders work
		return hi
	}
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); s[mid].At <= x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// from returns the number of steps before x, which is the index of the first step at or after x.
func (t *Timeline) from(x Time) int {
	if x == Earliest {
		return 0
	}
	return t.after(x - 1)
}

// valueBefore returns the value in force just before step i.
func valueBefore(s []Step, i int) resource.Vector {
	if i == 0 {
		return resource.Vector{}
	}
	return s[i-1].Value
}
