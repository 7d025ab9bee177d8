package timeline

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
)

// Span is a part of a demand: Demand holds for Length, from the end of the span before it.
type Span struct {
	Length time.Duration
	Demand resource.Vector
	// Taken is what others demand in addition at the same time, besides what a Timeline says.
	Taken resource.Vector
	// Weight multiplies the areas of the span, at least 0.
	Weight int64
}

// Gap is how far a demand of one resource and what is available of it lie apart, as weighted areas.
type Gap struct {
	Idle Area // where the demand is at most what is available: the resource is fragmented
	Over Area // where the demand exceeds what is available: the resource is over-allocated
}

// Overlap adds to gaps, one for each of kinds, the areas between the demand of spans, which begins at from, and what t
// says is available then. A negative amount is nothing: it is another's over-allocation.
//
// These are Prophet's F and O before the division by the number of stages (Xu et al., section III.A, equations 1-7). For a stage
// of the demand and a stage of what is available, equations 3 to 7 distinguish how they overlap: not at all, the second within the
// first, ending after it, beginning before it, or around it. Where several of the conditions hold, because two times are equal, the
// formulas agree: each is the height times the length of the intersection. Overlap walks both functions once, in O(steps + spans) and
// without allocation.
func (t *Timeline) Overlap(from Time, spans []Span, kinds []resource.Kind, gaps []Gap) {
	first := t.after(from)
	for g, k := range kinds {
		gaps[g].overlap(t, first, from, spans, k)
	}
}

// overlap is Overlap for one kind. first is the first step after from.
func (g *Gap) overlap(t *Timeline, first int, from Time, spans []Span, k resource.Kind) {
	has, steps := t.before[k], t.steps[first:]
	if first > 0 {
		has = t.steps[first-1].Value[k]
	}
	for i := range spans {
		s := &spans[i]
		demand, taken := s.Demand[k], s.Taken[k]
		var idle, over Area
		for end := from.Add(s.Length); from < end; {
			spare, until, next := max(0, has-taken)-demand, end, has
			if len(steps) > 0 && steps[0].At <= until {
				until, next = steps[0].At, steps[0].Value[k]
				steps = steps[1:]
			}
			// No branch: whether something is left or lacking changes too often for the processor to guess.
			length, lacks := uint64(until)-uint64(from), spare>>63
			idle.addProduct(uint64(spare&^lacks), length)
			over.addProduct(uint64(-spare&lacks), length)
			from, has = until, next
		}
		g.Idle = g.Idle.Add(idle.times(uint64(s.Weight)))
		g.Over = g.Over.Add(over.times(uint64(s.Weight)))
	}
}
