package lab

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Usage is what a task demands over its life.
type Usage struct {
	Lasts      float64 // seconds
	Peak, Mean resource.Vector
	LowNetwork float64 // share of the time with less than a tenth of the network's peak
}

// UsageOf adds up phases.
func UsageOf(phases []cluster.Phase) (u Usage) {
	var sums [resource.NumKinds]float64
	for _, p := range phases {
		u.Peak = u.Peak.Max(p.Demand)
		u.Lasts += p.Duration.Seconds()
		for k, a := range p.Demand {
			sums[k] += float64(a) * p.Duration.Seconds()
		}
	}
	for k := range sums {
		u.Mean[k] = resource.Amount(sums[k] / u.Lasts)
	}
	for _, p := range phases {
		if p.Demand[resource.Network] < u.Peak[resource.Network]/10 {
			u.LowNetwork += p.Duration.Seconds() / u.Lasts
		}
	}
	return u
}

// StepsOf draws the demand of one resource over time, in MB/s.
func StepsOf(name string, phases []cluster.Phase, k resource.Kind) chart.Series {
	s := chart.Series{Name: name, Step: true}
	begins, rate := 0.0, 0.0
	for _, p := range phases {
		rate = float64(p.Demand[k]) / 1e6
		s.X, s.Y = append(s.X, begins), append(s.Y, rate)
		begins += p.Duration.Seconds()
	}
	s.X, s.Y = append(s.X, begins), append(s.Y, rate)
	return s
}

// Megabytes prints a rate such as 300 MB/s.
func Megabytes(rate resource.Amount) string { return Decimals(float64(rate)/1e6, 0) + " MB/s" }
