package sim

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/bellows-rm/bellows/core/resource"
)

// PagingPoint is a point of a paging curve.
type PagingPoint struct {
	Resident float64 // grant over working set, 0 to 1
	Slowdown float64 // run time over the run time with the whole working set in memory, at least 1
}

// Paging is the slowdown of a program whose working set exceeds its grant, with the rest on a swap device: points with
// Resident ascending, connected by straight lines. Below the first point, the first point's slowdown applies; a working
// set that is entirely in memory costs nothing.
type Paging []PagingPoint

// The presets follow the text of the papers on Fig. 2b of YARN-ME and Fig. 13 of Pufferfish; the points between are
// assumed, as docs/truth.md says of each point. They are data: measurements can replace them.
var (
	// SSDPaging: 10 times the run time below 0.3 (Pufferfish), and cheaper than spilling at 0.7 or more (YARN-ME).
	SSDPaging = Paging{{0.1, 20}, {0.3, 10}, {0.5, 3}, {0.7, 1.5}, {0.9, 1.1}, {1, 1}}
	// HDDPaging: at 0.7 the run time of WordCount with spilling, 1.9 times; a solid-state disk "significantly
	// outperforms" it.
	HDDPaging = Paging{{0.1, 50}, {0.3, 20}, {0.5, 5}, {0.7, 1.9}, {0.9, 1.3}, {1, 1}}
	// MeasuredPaging: a program that merges sorted data on a real machine that swapped to a file (studies/measured.md).
	MeasuredPaging = Paging{{0.1, 7.169620253164556}, {0.2, 6.451898734177216}, {0.3, 5.860759493670885},
		{0.4, 6.322784810126582}, {0.5, 5.649367088607595}, {0.6, 5.184810126582279}, {0.7, 4.669620253164557},
		{0.8, 3.0797468354430375}, {0.9, 2.051898734177215}, {0.95, 1.3784810126582276}, {1, 1}}
)

// Slowdown returns the run time over the run time with the whole working set in memory. Both amounts are in bytes.
func (c Paging) Slowdown(grant, workingSet resource.Amount) float64 {
	if grant >= workingSet || len(c) == 0 {
		return 1
	}
	resident := float64(grant) / float64(workingSet)
	i := sort.Search(len(c), func(i int) bool { return c[i].Resident >= resident })
	switch i {
	case 0:
		return c[0].Slowdown
	case len(c): // towards the whole working set in memory, which costs nothing
		return between(c[i-1], PagingPoint{1, 1}, resident)
	}
	return between(c[i-1], c[i], resident)
}

func between(a, b PagingPoint, resident float64) float64 {
	if b.Resident <= a.Resident {
		return b.Slowdown
	}
	return a.Slowdown + (resident-a.Resident)/(b.Resident-a.Resident)*(b.Slowdown-a.Slowdown)
}

func (c Paging) check() error {
	for i, p := range c {
		if !(p.Resident >= 0 && p.Resident <= 1) || i > 0 && p.Resident <= c[i-1].Resident {
			return fmt.Errorf("paging point %d resident share %v: must be from 0 to 1, ascending", i+1, p.Resident)
		}
		if !(p.Slowdown >= 1) || math.IsInf(p.Slowdown, 0) {
			return fmt.Errorf("paging point %d slowdown %v: must be a number of at least 1", i+1, p.Slowdown)
		}
	}
	if slices.ContainsFunc(c, func(p PagingPoint) bool { return p.Resident == 1 && p.Slowdown != 1 }) {
		return fmt.Errorf("paging with all of the working set in memory: must cost nothing, slowdown 1")
	}
	return nil
}
