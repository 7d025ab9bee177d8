package profile

import (
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// When phases are the same phases.
const (
	// sameShare is by how much the share of a phase in its run may differ from that of the typical phase.
	sameShare = 0.25
	// sameDemand is by how much its demand may differ, as a share of the peak.
	sameDemand = 0.5
)

// typical is the phases of runs that have equally many: medians.
type typical struct {
	share  []float64 // of the run
	demand []resource.Vector
	peak   resource.Vector
}

func typicalOf(runs []*numbered) (t typical) {
	middle := func(value func(*numbered) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, value(r))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	for i := range runs[0].Phases {
		t.share = append(t.share, middle(func(r *numbered) float64 {
			return r.Phases[i].Duration.Seconds() / sum(r.Phases).Seconds()
		}))
		var demand resource.Vector
		for k := range demand {
			demand[k] = resource.Amount(middle(func(r *numbered) float64 { return float64(r.Phases[i].Demand[k]) }))
		}
		t.demand = append(t.demand, demand)
		t.peak = t.peak.Max(demand)
	}
	return t
}

// aligned returns r with its phases joined to the phases of t; ok is false if they are other phases. Of all ways
// to join neighbours, it takes the one with the least differences of shares and demands.
func (t *typical) aligned(r *numbered) (out *numbered, ok bool) {
	n, most := len(r.Phases), len(t.share)
	if n <= most || most == 0 {
		return nil, false
	}
	total := sum(r.Phases).Seconds()
	// best[i][j] is the least cost of the first j phases of r as the first i of t, where the last one is block[from][j].
	best, from := make([][]float64, most+1), make([][]int, most+1)
	for i := range best {
		best[i], from[i] = slices.Repeat([]float64{math.Inf(1)}, n+1), make([]int, n+1)
	}
	best[0][0] = 0
	block := make([][]cluster.Phase, n)
	for begin := range block {
		block[begin] = make([]cluster.Phase, n+1)
		for end := begin + 1; end <= n; end++ {
			block[begin][end] = joined(slices.Clone(r.Phases[begin:end]), 1)[0]
		}
	}
	for i := 1; i <= most; i++ {
		for j := i; j <= n; j++ {
			for begin := i - 1; begin < j; begin++ {
				if c := best[i-1][begin] + t.differs(i-1, &block[begin][j], total, r.Unknown); c < best[i][j] {
					best[i][j], from[i][j] = c, begin
				}
			}
		}
	}
	phases := make([]cluster.Phase, most)
	for i, end := most, n; i > 0; i-- {
		phases[i-1] = block[from[i][end]][end]
		end = from[i][end]
	}
	for i := range phases {
		if !t.same(i, &phases[i], total, r.Unknown) {
			return nil, false
		}
	}
	copied := *r
	copied.Phases = phases
	return &copied, true
}

// differs returns how much p differs from phase i of t in a run of total seconds.
func (t *typical) differs(i int, p *cluster.Phase, total float64, unknown resource.Kinds) float64 {
	share := p.Duration.Seconds() / total
	cost := (share - t.share[i]) * (share - t.share[i])
	for k := range resource.NumKinds {
		if t.peak[k] > 0 && !unknown.Has(k) {
			d := float64(p.Demand[k]-t.demand[i][k]) / float64(t.peak[k])
			cost += share * d * d
		}
	}
	return cost
}

// same reports whether p is phase i of t.
func (t *typical) same(i int, p *cluster.Phase, total float64, unknown resource.Kinds) bool {
	if math.Abs(p.Duration.Seconds()/total-t.share[i]) > sameShare {
		return false
	}
	for k := range resource.NumKinds {
		most := max(float64(t.peak[k]), trifles[k])
		if !unknown.Has(k) && math.Abs(float64(p.Demand[k]-t.demand[i][k])) > sameDemand*most {
			return false
		}
	}
	return true
}
