package timeline

import (
	"sort"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// Span is a part of a demand: Demand holds for Length, from the end of the span before it.
type Span struct {
	Length time.Duration
	Demand resource.Vector
	// Weight multiplies the areas of the span, at least 0.
	Weight int64
}

// Gap is how far a demand of one resource and what is available of it lie apart, as weighted areas.
type Gap struct {
	Idle Area // where the demand is at most what is available: the resource is fragmented
	Over Area // where the demand exceeds what is available: the resource is over-allocated
}

// Supply is what is available of some resources as a function of time, made for comparisons with many demands. A
// negative amount is nothing: it is another's over-allocation. The zero Supply must be set before it is used.
type Supply struct {
	times  []Time                     // ascend, from Earliest on
	levels [resource.NumKinds][]level // one for each of times
}

// level is what is available of a resource from one of the times of a Supply until the next.
type level struct {
	has   resource.Amount // at least 0
	until Area            // what was available before
}

// Set makes s the function that starts with before and changes by the Value of each of changes, which ascend in time.
// Only the given kinds are set, and comparisons are possible of these only. It takes O(changes) and reuses the memory
// of s.
func (s *Supply) Set(before resource.Vector, changes []Step, kinds []resource.Kind) {
	s.times = append(s.times[:0], Earliest)
	for i := range changes {
		s.times = append(s.times, changes[i].At)
	}
	for _, k := range kinds {
		sum, now := before[k], level{has: max(0, before[k])}
		levels := append(s.levels[k][:0], now)
		for i := range changes {
			now.until.addProduct(uint64(now.has), uint64(s.times[i+1])-uint64(s.times[i]))
			sum += changes[i].Value[k]
			now.has = max(0, sum)
			levels = append(levels, now)
		}
		s.levels[k] = levels
	}
}

// at returns the index of the last of s.times at or before x.
func (s *Supply) at(x Time) int {
	return sort.Search(len(s.times), func(i int) bool { return s.times[i] > x }) - 1
}

// until returns what is available of k before x, where i is at(x).
func (s *Supply) until(x Time, i int, k resource.Kind) Area {
	l := &s.levels[k][i]
	a := l.until
	a.addProduct(uint64(l.has), uint64(x)-uint64(s.times[i]))
	return a
}

// Overlap adds to gaps, one for each of kinds, the areas between the demand of spans, which begins at from, and what s
// says is available then, less what a number of others take that demand the same at the same time.
//
// These are Prophet's F and O before the division by the number of stages (Xu et al., section III.A, equations 1-7).
// For a stage of the demand and a stage of what is available, equations 3 to 7 distinguish how they overlap: not at
// all, the second within the first, ending after it, beginning before it, or around it. Where several of the
// conditions hold, because two times are equal, the formulas agree: each is the height times the length of the
// intersection. Overlap walks both functions once, in O(changes + spans) and without allocation.
func (s *Supply) Overlap(from Time, spans []Span, others int, kinds []resource.Kind, gaps []Gap) {
	first := s.at(from)
	for g, k := range kinds {
		gaps[g].overlap(s.times[first+1:], s.levels[k][first:], from, spans, others, k)
	}
}

// overlap is Overlap for one kind. levels begins with the one at from, and ends is when each of levels ends.
func (g *Gap) overlap(ends []Time, levels []level, from Time, spans []Span, others int, k resource.Kind) {
	for i := range spans {
		s := &spans[i]
		demand := s.Demand[k]
		taken := demand * resource.Amount(others)
		var idle, over Area
		for end := from.Add(s.Length); from < end; {
			spare, until := max(0, levels[0].has-taken)-demand, end
			if len(ends) > 0 && ends[0] <= until {
				until, ends, levels = ends[0], ends[1:], levels[1:]
			}
			// No branch: whether something is left or lacking changes too often for the processor to guess.
			length, lacks := uint64(until)-uint64(from), spare>>63
			idle.addProduct(uint64(spare&^lacks), length)
			over.addProduct(uint64(-spare&lacks), length)
			from = until
		}
		g.Idle = g.Idle.Add(idle.times(uint64(s.Weight)))
		g.Over = g.Over.Add(over.times(uint64(s.Weight)))
	}
}

// Net adds to gaps at most what Overlap adds without others: within each span, what is left at one time makes up for
// what lacks at another. It takes less time than Overlap because it looks at amounts only where spans end.
func (s *Supply) Net(from Time, spans []Span, kinds []resource.Kind, gaps []Gap) {
	at := s.at(from)
	var before [resource.NumKinds]Area
	for _, k := range kinds {
		before[k] = s.until(from, at, k)
	}
	for i := range spans {
		span := &spans[i]
		end, weight := from.Add(span.Length), uint64(span.Weight)
		for at+1 < len(s.times) && s.times[at+1] <= end {
			at++
		}
		for g, k := range kinds {
			after := s.until(end, at, k)
			var demand Area
			demand.addProduct(uint64(span.Demand[k]), uint64(end)-uint64(from))
			if left := after.Sub(before[k]).Sub(demand); left.hi >= 0 {
				gaps[g].Idle = gaps[g].Idle.Add(left.times(weight))
			} else {
				gaps[g].Over = gaps[g].Over.Add(Area{}.Sub(left).times(weight))
			}
			before[k] = after
		}
		from = end
	}
}
