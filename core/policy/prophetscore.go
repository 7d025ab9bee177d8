package policy

import (
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// foresight scores where tasks may start, by what they are forecast to demand and what nodes will have (Prophet,
// equations 1 to 8).
type foresight struct {
	eta     float64         // weight of fragmentation; over-allocation weighs 1-eta
	kinds   []resource.Kind // that are scored
	unknown time.Duration   // how long a task without forecast and run time is taken to run
	ahead   ahead
}

// forget discards what can be computed again.
func (f *foresight) forget() { f.ahead = ahead{kinds: f.kinds} }

// foresee returns what a task with a forecast costs on n, of a job that was submitted at a time, if taken others like
// it start there, too.
func (f *foresight) foresee(now timeline.Time, s *book.Snapshot, n *book.NodeState, submitted timeline.Time,
	spans []timeline.Span, taken int) score {
	var space [resource.NumKinds]resource.Kind
	var gaps [resource.NumKinds]timeline.Gap
	kinds := f.known(n, space[:0])
	f.ahead.of(now, s, n).Overlap(s.LaunchTime(submitted, now), spans, taken, kinds, gaps[:])
	return f.weigh(gaps[:len(kinds)], len(spans))
}

// known appends the resources that are scored on n to kinds.
func (f *foresight) known(n *book.NodeState, kinds []resource.Kind) []resource.Kind {
	for _, k := range f.kinds {
		if !n.Unknown.Has(k) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// weigh returns the score from the gaps of the scored resources: the Euclidean norm of their overall scores (equation
// 8), and the sums of their areas.
func (f *foresight) weigh(gaps []timeline.Gap, stages int) (total score) {
	squares := 0.0
	for i := range gaps {
		idle, over := gaps[i].Idle.UnitSeconds()/float64(stages), gaps[i].Over.UnitSeconds()/float64(stages)
		overall := float64((1-f.eta)*over) + float64(f.eta*idle) // converted: a processor may fuse a product and a sum
		squares += float64(overall * overall)
		total.idle, total.over = total.idle+idle, total.over+over
	}
	total.norm = math.Sqrt(squares)
	return total
}
