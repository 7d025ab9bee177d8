package profiler

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
)

// mostSearched is the largest number of runs in the search for the smallest size that works.
const mostSearched = 12

// near is the factor between two sizes up to which no size between them is worth a run.
const near = 1.05

// middle returns the geometric mean of two sizes, in whole MiB. ok is false if they are near each other.
func middle(low, high resource.Amount) (resource.Amount, bool) {
	m := resource.Amount(math.Sqrt(float64(low)*float64(high))+float64(resource.MiB)/2) / resource.MiB * resource.MiB
	return m, float64(high) > near*float64(low) && low < m && m < high
}

// flat is the uncertainty, as a logarithm, of run times between two sizes with equal run times: there may be teeth.
const flat = 0.1

// bend returns the size at which one more run teaches most: the middle of the two neighbours between which the run time
// is least certain. The uncertainty grows with the change of the run time and with the distance of the sizes, both as
// factors. without reports sizes that were tried in vain. ok is false if all neighbours are near each other. samples
// are in ascending order.
func bend(samples []profile.Sample, without func(resource.Amount) bool) (at resource.Amount, ok bool) {
	most := 0.0
	for i := 1; i < len(samples); i++ {
		a, b := samples[i-1], samples[i]
		m, room := middle(a.Memory, b.Memory)
		change := math.Abs(math.Log(float64(a.Duration) / float64(b.Duration)))
		uncertain := (change + flat) * math.Log(float64(b.Memory)/float64(a.Memory))
		if room && uncertain > most && !without(m) {
			at, ok, most = m, true, uncertain
		}
	}
	return at, ok
}

// gaps returns at most n sizes in the middle of the widest gaps between sizes, in ascending order.
func gaps(sizes []resource.Amount, n int) []resource.Amount {
	type gap struct {
		middle resource.Amount
		width  float64
	}
	var all []gap
	for i := 1; i < len(sizes); i++ {
		if m, ok := middle(sizes[i-1], sizes[i]); ok {
			all = append(all, gap{m, float64(sizes[i]) / float64(sizes[i-1])})
		}
	}
	slices.SortStableFunc(all, func(a, b gap) int {
		switch {
		case a.width > b.width:
			return -1
		case a.width < b.width:
			return 1
		}
		return 0
	})
	var found []resource.Amount
	for _, g := range all[:min(n, len(all))] {
		found = append(found, g.middle)
	}
	slices.Sort(found)
	return found
}
