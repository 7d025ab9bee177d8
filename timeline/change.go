package timeline

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// Add adds v to the value at every time in s. An empty span changes nothing.
func (t *Timeline) Add(s Span, v resource.Vector) {
	if s.IsEmpty() || v.IsZero() {
		return
	}
	// Steps i to j-1 lie in s and all move by v, so neighbours among them still differ. Only the two ends of s can
	// gain or lose a step.
	i, j := t.from(s.From), t.from(s.To)
	old := t.steps()
	before, last := valueBefore(old, i), valueBefore(old, j)
	stepAtFrom := i < j && old[i].At == s.From
	stepAtTo := j < len(old) && old[j].At == s.To

	mid, tail := i, j // what stays: old[mid:j] and old[tail:]
	if stepAtFrom && old[i].Value.Add(v) == before {
		mid++
	}
	if stepAtTo && old[j].Value == last.Add(v) {
		tail++
	}
	opens, closes := !stepAtFrom, s.To != Never && !stepAtTo

	newMid := i
	if opens {
		newMid++
	}
	newTail := newMid + j - mid
	if closes {
		newTail++
	}
	t.rearrange(mid, j, newMid, tail, newTail)
	steps := t.steps()
	for k := newMid; k < newMid+j-mid; k++ {
		steps[k].Value = steps[k].Value.Add(v)
	}
	if opens {
		steps[i] = Step{s.From, before.Add(v)}
	}
	if closes {
		steps[newTail-1] = Step{s.To, last}
	}
}

// rearrange moves steps[mid:midEnd] to newMid and steps[tail:] to newTail, and sets the length to match. What is
// in the gaps is undefined.
func (t *Timeline) rearrange(mid, midEnd, newMid, tail, newTail int) {
	n := t.Len()
	newLen := newTail + n - tail
	if newLen > n {
		t.buf = slices.Grow(t.buf, newLen-n)[:t.dropped+newLen]
	}
	s := t.steps()
	if newMid < mid { // the part that leaves its place first must not land on the other
		copy(s[newMid:], s[mid:midEnd])
		copy(s[newTail:], s[tail:n])
	} else {
		copy(s[newTail:], s[tail:n])
		copy(s[newMid:], s[mid:midEnd])
	}
	t.buf = t.buf[:t.dropped+newLen]
	t.settle()
}

// Sub subtracts v from the value at every time in s. It undoes Add.
func (t *Timeline) Sub(s Span, v resource.Vector) { t.Add(s, resource.Vector{}.Sub(v)) }

// Set makes v the value at every time in s. An empty span changes nothing. Recording is Set(Span{now, Never}, v).
func (t *Timeline) Set(s Span, v resource.Vector) {
	if s.IsEmpty() {
		return
	}
	i, j := t.from(s.From), t.from(s.To)
	old := t.steps()
	before, last := valueBefore(old, i), valueBefore(old, j)
	tail, follow := j, last // follow is the value from s.To on
	if j < len(old) && old[j].At == s.To {
		tail, follow = j+1, old[j].Value
	}
	opens, closes := v != before, s.To != Never && v != follow

	newTail := i
	if opens {
		newTail++
	}
	if closes {
		newTail++
	}
	t.rearrange(i, i, i, tail, newTail)
	steps := t.steps()
	if opens {
		steps[i] = Step{s.From, v}
	}
	if closes {
		steps[newTail-1] = Step{s.To, follow}
	}
}

// Trim makes t zero before x and leaves it as it is from x on: it forgets the past. Trim(Never) leaves nothing.
func (t *Timeline) Trim(x Time) {
	if x == Never {
		t.Reset()
		return
	}
	s := t.steps()
	i := t.after(x)
	if i == 0 {
		return
	}
	if s[i-1].Value.IsZero() {
		t.dropped += i
	} else {
		s[i-1].At = x
		t.dropped += i - 1
	}
	t.settle()
}

// settle moves the steps to the front once at least half of buf is dropped ones, so that on average a step is moved once
// and the memory that Trim frees is used again.
func (t *Timeline) settle() {
	if t.dropped <= len(t.buf)/2 {
		return
	}
	n := copy(t.buf, t.steps())
	t.buf, t.dropped = t.buf[:n], 0
}

// Shift moves t by d, later if d is positive: what was at x is then at x+d. Steps that would be at Never or later are
// lost, and those that would be before Earliest are put there.
func (t *Timeline) Shift(d time.Duration) {
	steps := t.steps()
	out := t.buf[t.dropped:t.dropped]
	for i, s := range steps {
		s.At = s.At.Add(d)
		if s.At == Never {
			break
		}
		if i+1 < len(steps) && steps[i+1].At.Add(d) == s.At {
			continue // both saturated at Earliest: the later one holds from there on
		}
		out = emit(out, s)
	}
	t.buf = t.buf[:t.dropped+len(out)]
	t.settle()
}

// emit appends s unless it repeats the value before it.
func emit(out []Step, s Step) []Step {
	if s.Value == valueBefore(out, len(out)) {
		return out
	}
	return append(out, s)
}
