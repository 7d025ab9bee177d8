package timeline

import (
	"iter"
	"strings"

	"github.com/bellows-rm/bellows/resource"
)

// Steps returns the steps in order of time. t must not change meanwhile.
func (t *Timeline) Steps() iter.Seq2[Time, resource.Vector] {
	return func(yield func(Time, resource.Vector) bool) {
		for _, s := range t.steps() {
			if !yield(s.At, s.Value) {
				return
			}
		}
	}
}

// Pieces returns the spans of constant value that make up s, in order of time, each as long as possible; spans where
// t is zero are among them. t must not change meanwhile.
func (t *Timeline) Pieces(s Span) iter.Seq2[Span, resource.Vector] {
	return func(yield func(Span, resource.Vector) bool) {
		if s.IsEmpty() {
			return
		}
		c := t.cursor(s)
		for yield(c.span, c.value) && c.span.To < s.To {
			c.next()
		}
	}
}

// String prints the spans where t is not zero: "[0s,10s) cpu=2 memory=4GiB; [10s,never) memory=1GiB". The zero Timeline
// is "0". Different Timelines have different texts.
func (t *Timeline) String() string {
	var b strings.Builder
	for s, v := range t.Pieces(Always) {
		if v.IsZero() {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.String() + " " + v.String())
	}
	if b.Len() == 0 {
		return "0"
	}
	return b.String()
}

// cursor walks the pieces of a Timeline within a span. Invariant: span is not empty, and value holds in all of it.
type cursor struct {
	span  Span
	value resource.Vector
	rest  []Step // steps at or after span.To
	end   Time
}

// cursor returns a cursor on the first piece within s, which must not be empty.
func (t *Timeline) cursor(s Span) cursor {
	steps := t.steps()
	i := t.after(s.From)
	c := cursor{value: valueBefore(steps, i), rest: steps[i:], end: s.To}
	c.span = Span{s.From, c.pieceEnd()}
	return c
}

// next moves on. It may be called as long as span.To is before the end.
func (c *cursor) next() {
	c.value = c.rest[0].Value
	c.rest = c.rest[1:]
	c.span = Span{c.span.To, c.pieceEnd()}
}

func (c *cursor) pieceEnd() Time {
	if len(c.rest) == 0 {
		return c.end
	}
	return min(c.end, c.rest[0].At)
}
