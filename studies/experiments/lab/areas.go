package lab

import (
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
)

// Areas compares what is demanded of disks or networks with their capacity, as shares of capacity × makespan.
type Areas struct {
	Idle   float64 `json:"fa"`     // fragmentation area
	Over   float64 `json:"oa"`     // over-allocation area
	Beyond float64 `json:"beyond"` // share of the time with more demand than capacity
}

// Demand is the mean utilisation, as Fig. 9 and 10 have it: demand over capacity.
func (a *Areas) Demand() float64 { return 1 - a.Idle + a.Over }

// AreasOf compares the demand on a node with its capacity between two times, in seconds.
func AreasOf(n *sim.NodeSeries, k resource.Kind, from, until float64) (a Areas) {
	idle, over := n.Areas(k, timeline.Seconds(from), timeline.Seconds(until))
	whole := float64(n.Steps[0].Capacity[k]) * (until - from)
	return Areas{Idle: idle.UnitSeconds() / whole, Over: over.UnitSeconds() / whole}
}

// Beyond returns the share of the time until the end with more demand than capacity.
func Beyond(n *sim.NodeSeries, k resource.Kind, end timeline.Time) float64 {
	all := 0.0
	for i, s := range n.Steps {
		until := end
		if i+1 < len(n.Steps) {
			until = min(until, n.Steps[i+1].At)
		}
		if s.Demand[k] > s.Capacity[k] {
			all += until.Sub(s.At).Seconds()
		}
	}
	return all / timeline.Time(end).Sub(0).Seconds()
}
