package leveling

import "math"

const (
	// mostRounds bounds the rounds of prices, patience is after how many rounds without a better bound steps become half
	// as long.
	mostRounds, patience = 200, 3
	// leastStep is the length of a step, as a share of the first, at which rounds end.
	leastStep = 1.0 / 256
	// mostCells bounds the cells that all rounds of prices fill: about 25 ms.
	mostCells = 5_000_000
)

// ascend finds prices with a high bound, and schedules on the way.
//
// Over-allocation in an interval, max(0, x), is at least price times x for any price from 0 to 1. With prices the
// sets no longer depend on each other, and the sum of the cheapest schedules of each is a lower bound (Lagrange):
// waiting for other sets is reduced to the windows. The bound is concave in prices; where demand exceeds the capacity
// the price goes up. The length of steps is Polyak's.
func (g *program) ascend() {
	cells := 1
	for j := range g.sets {
		cells += len(g.tables[j])
	}
	price, now := make([]float64, len(g.prices)), make([]int64, len(g.prices))
	g.bound = 0 // over-allocation and shift costs are not negative
	best, length, waited := int64(-forbidden), 1.0, 0
	rounds := min(mostRounds, mostCells/cells+2)
	if rounds == mostRounds {
		// Where many prices have the same bound, the prices in between are better for the search; fewer rounds cannot
		// afford the way.
		for t := range price {
			price[t] = 0.5
		}
	}
	for range rounds {
		for t := range now {
			now[t] = int64(math.Round(price[t] * one))
		}
		bound := g.priced(now)
		if bound > best {
			best, waited = bound, 0
			copy(g.prices, now)
			g.bound = max(g.bound, ceil(bound))
		} else if waited++; waited > patience {
			length, waited = length/2, 0
		}
		if g.bound >= g.value || length < leastStep {
			break
		}
		norm := 0.0
		for t, e := range g.excess {
			x := float64(e + g.load[t])
			norm += float64(x * x)
		}
		if norm == 0 {
			break
		}
		step := length * (float64(g.value) - float64(bound)/one) / norm
		for t, e := range g.excess {
			price[t] = min(1, max(0, price[t]+float64(step*float64(e+g.load[t]))))
		}
	}
}

// ceil returns units of a cost with prices, rounded up.
func ceil(cost int64) int64 { return -(-cost >> 10) }

// priced fills the tables at given prices, and returns the bound. load becomes the demand of the schedules of each
// set, which are kept if they are the best, and possible together.
func (g *program) priced(prices []int64) (bound int64) {
	clear(g.load)
	shifts, possible := int64(0), true
	for j := range g.sets {
		w, table := &g.sets[j], g.tables[j]
		run := func(t, done int) int64 { return prices[t] * w.demand[done] }
		w.fill(table, w.ready, w.float, run)
		bound += table[w.start()]
		end := w.trace(table, w.ready, w.float, run, g.schedule[j])
		shifts += w.shiftCost(g.schedule[j], end)
		w.addTo(g.load, g.schedule[j])
		possible = possible && len(w.after) == 0
	}
	for t, e := range g.excess {
		bound += prices[t] * e
	}
	if possible {
		g.keep(g.schedule, g.over(g.load)+shifts)
	}
	return bound
}

// addTo adds the demand of a set's schedule to load.
func (w *window) addTo(load []int64, runs []bool) {
	done := 0
	for t, run := range runs {
		if run {
			load[t] += w.demand[done]
			done++
		}
	}
}
