// Package timeline provides points in time, and resources as a function of time: a Timeline is a step function from
// Time to resource.Vector, such as the free resources of a node as its tasks end, and an Area is memory, or another
// resource, times time. Overlap compares a demand over time with what is available.
//
// All values are integers: a sum does not depend on the order of its terms, and an area is exact.
package timeline

import (
	"cmp"
	"slices"
	"sort"

	"github.com/bellows-rm/bellows/core/resource"
)

// Step is a breakpoint of a Timeline: the Timeline has Value from At until the next step.
type Step struct {
	At    Time
	Value resource.Vector
}

// Timeline is a step function from Time to resource.Vector, with components of any sign. The zero Timeline is the
// zero Vector at all times.
type Timeline struct {
	before resource.Vector // the value before the first step
	steps  []Step          // ascend strictly in time
}

// Sum makes t the function that starts with before and changes by the Value of each change at the change's time. The
// order of changes does not matter; changes at Never do not happen. It takes O(n log n), reuses the memory of t, and
// does not modify changes.
func (t *Timeline) Sum(before resource.Vector, changes []Step) {
	t.before = before
	t.steps = append(t.steps[:0], changes...)
	slices.SortFunc(t.steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	value, n := before, 0
	for _, s := range t.steps {
		if s.At == Never {
			break
		}
		value = value.Add(s.Value)
		if n > 0 && t.steps[n-1].At == s.At {
			n--
		}
		t.steps[n] = Step{s.At, value}
		n++
	}
	t.steps = t.steps[:n]
}

// At returns the value at x.
func (t *Timeline) At(x Time) resource.Vector {
	if i := t.after(x); i > 0 {
		return t.steps[i-1].Value
	}
	return t.before
}

// after returns the number of steps at or before x.
func (t *Timeline) after(x Time) int {
	return sort.Search(len(t.steps), func(i int) bool { return t.steps[i].At > x })
}

// FirstStep returns the time of the first step, Never if there is none.
func (t *Timeline) FirstStep() Time {
	if len(t.steps) == 0 {
		return Never
	}
	return t.steps[0].At
}

// NextStep returns the time of the first step after x, Never if there is none. The value may be the same before and
// after it.
func (t *Timeline) NextStep(x Time) Time {
	if i := t.after(x); i < len(t.steps) {
		return t.steps[i].At
	}
	return Never
}

// First returns the earliest x >= from at which willDo accepts the value, such as resource.Vector.FitsIn of a need. ok
// is false if there is no such time before Never. It takes O(steps).
func (t *Timeline) First(from Time, willDo func(resource.Vector) bool) (x Time, ok bool) {
	if from == Never {
		return Never, false
	}
	if willDo(t.At(from)) {
		return from, true
	}
	for _, s := range t.steps[t.after(from):] {
		if willDo(s.Value) {
			return s.At, true
		}
	}
	return Never, false
}
