package timeline

import (
	"slices"

	"github.com/bellows-rm/bellows/resource"
)

// Sum returns a + b, the sum at every time. It shares nothing with either. It takes O(steps of both).
func Sum(a, b *Timeline) *Timeline {
	t := &Timeline{buf: make([]Step, 0, a.Len()+b.Len())}
	t.CopyFrom(a)
	t.AddTimeline(b)
	return t
}

// AddTimeline adds o to t at every time. It takes O(steps of both); for a few spans Add is cheaper. o may be t.
func (t *Timeline) AddTimeline(o *Timeline) { t.merge(o, false) }

// SubTimeline subtracts o from t at every time. It undoes AddTimeline. o may be t.
func (t *Timeline) SubTimeline(o *Timeline) { t.merge(o, true) }

func (t *Timeline) merge(o *Timeline, subtract bool) {
	if t == o {
		t.mergeSelf(subtract)
		return
	}
	// Move the own steps to the end of a buffer that has room for all, then write the result from the front. Each step
	// written follows one read, so writing never overtakes reading.
	theirs := o.steps()
	n, m := t.Len(), len(theirs)
	t.buf = slices.Grow(t.buf, max(0, n+m-len(t.buf)))
	own := t.buf[m : m+n]
	copy(own, t.steps())

	var v, w resource.Vector
	out := t.buf[:0]
	for len(own) > 0 || len(theirs) > 0 {
		var at Time
		takeOwn := len(theirs) == 0 || (len(own) > 0 && own[0].At <= theirs[0].At)
		takeTheirs := len(own) == 0 || (len(theirs) > 0 && theirs[0].At <= own[0].At)
		if takeOwn {
			at, v, own = own[0].At, own[0].Value, own[1:]
		}
		if takeTheirs {
			at, w, theirs = theirs[0].At, theirs[0].Value, theirs[1:]
			if subtract {
				w = resource.Vector{}.Sub(w)
			}
		}
		out = emit(out, Step{at, v.Add(w)})
	}
	t.buf, t.dropped = out, 0
}

func (t *Timeline) mergeSelf(subtract bool) {
	out := t.buf[:0]
	if !subtract {
		for _, s := range t.steps() {
			out = emit(out, Step{s.At, s.Value.Add(s.Value)})
		}
	}
	t.buf, t.dropped = out, 0
}
