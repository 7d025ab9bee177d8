package policy

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// diskLeft returns the part of the node's disk budget for under-sized tasks that is left when some of it is promised.
func (y *underSizing) diskLeft(n *book.NodeState, promised resource.Amount) (left resource.Amount, limited bool) {
	if n.Capacity[resource.Disk] == 0 {
		return 0, false
	}
	return resource.Amount(y.diskShare*float64(n.Capacity[resource.Disk])) - promised, true
}

// bestFor returns the best sizes of a stage where no node has more than the given memory. It keeps them until that
// changes.
func (y *underSizing) bestFor(stage *cluster.Stage, most resource.Amount) *bestSizes {
	b, ok := y.best[stage]
	if !ok || y.most != most {
		if y.best == nil || y.most != most || len(y.best) > 1<<14 { // stages of ended jobs
			y.best, y.most = map[*cluster.Stage]*bestSizes{}, most
		}
		b = newBestSizes(stage, y.granularity, most)
		y.best[stage] = b
	}
	return b
}

// bestSizes answers "the minimum amount of memory that yields the lowest possible execution time" (section 3.3) for any
// free memory: sizes ascend and durations fall strictly.
type bestSizes struct {
	sizes     []resource.Amount
	durations []time.Duration
}

// mostSizes is how many sizes are considered for one stage. A stage with more multiples of the granularity is sampled
// at a multiple of the granularity.
const mostSizes = 100_000

// newBestSizes considers the stage's minimum memory, rounded up to the granularity, and all multiples of the
// granularity between that and the ideal, up to the memory of the largest node.
func newBestSizes(stage *cluster.Stage, granularity, largest resource.Amount) *bestSizes {
	b := &bestSizes{}
	ideal := stage.Ideal[resource.Memory]
	most := min(ideal-1, largest)
	m := stage.MinMemory / granularity * granularity
	if m < stage.MinMemory {
		if granularity > most-m {
			return b
		}
		m += granularity
	}
	granularity *= 1 + max(0, most-m)/granularity/mostSizes
	for ; m <= most; m += granularity {
		d := stage.Elasticity.Duration(stage.Duration, ideal, m)
		if last := len(b.durations) - 1; last < 0 || d < b.durations[last] {
			b.sizes, b.durations = append(b.sizes, m), append(b.durations, d)
		}
		if granularity > most-m {
			break // the next would be too large, or overflow
		}
	}
	return b
}

// within returns the best size of at most free.
func (b *bestSizes) within(free resource.Amount) (resource.Amount, time.Duration, bool) {
	i, found := slices.BinarySearch(b.sizes, free)
	if !found {
		i--
	}
	if i < 0 {
		return 0, 0, false
	}
	return b.sizes[i], b.durations[i], true
}

// wholeSteps is memory rounded up to a multiple of granularity.
func wholeSteps(memory, granularity resource.Amount) resource.Amount {
	return (memory + granularity - 1) / granularity * granularity
}
