package bound

import (
	"cmp"
	"math"
	"slices"
)

// point is the prices and weights at one step of an ascent.
type point struct {
	price   []prices
	weights [][]float64
}

func (x *relaxation) noPrices() []prices {
	all := make([]prices, len(x.price))
	for l := range all {
		all[l] = prices{make([]float64, len(x.rows)), make([]float64, len(x.rows))}
	}
	return all
}

func (x *relaxation) newPoint() *point {
	p := &point{price: x.noPrices()}
	for i := range x.chains {
		p.weights = append(p.weights, make([]float64, len(x.chains[i].weights)))
	}
	return p
}

// save copies the present point to p, and restore p to the present point.
func (x *relaxation) save(p *point) {
	for l := range x.price {
		copy(p.price[l].start, x.price[l].start)
		copy(p.price[l].end, x.price[l].end)
	}
	for i := range x.chains {
		copy(p.weights[i], x.chains[i].weights)
	}
}

func (x *relaxation) restore(p *point) {
	for l := range x.price {
		copy(x.price[l].start, p.price[l].start)
		copy(x.price[l].end, p.price[l].end)
	}
	for i := range x.chains {
		copy(x.chains[i].weights, p.weights[i])
	}
}

// ascend improves prices and weights and returns the best bound seen. Steps are as long as would reach a target
// slightly above the best bound (Polyak); the target is lowered when it is missed.
func (x *relaxation) ascend(iterations int) float64 {
	used, best := x.noPrices(), x.newPoint()
	value := x.begin(used, best)
	x.restore(best)
	x.evaluate(used)
	highest, ahead, stuck := value, 0.1, 0
	for range iterations {
		x.climb(used, highest+ahead*math.Abs(highest)-value)
		value = x.evaluate(used)
		if value > highest {
			highest, stuck = value, 0
			x.save(best)
		} else {
			stuck++
		}
		if stuck >= 4 {
			stuck, ahead = 0, ahead/2
			x.restore(best)
			value = x.evaluate(used)
		}
	}
	return highest
}

// begin tries starting points, leaves the best one in best and returns its value: the prices of each row alone. Without
// prices the only way up is to change prices and weights at once, which single steps do not find.
func (x *relaxation) begin(used []prices, best *point) float64 {
	highest := math.Inf(-1)
	consider := func() {
		if v := x.evaluate(used); v > highest {
			highest = v
			x.save(best)
		}
	}
	for r := range x.rows {
		x.priceAlone(r)
		for i := range x.chains {
			c := &x.chains[i]
			clear(c.weights)
			c.weights[c.whole(r)] = 1
			c.spread()
		}
		consider()
		x.toLargest()
		consider()
	}
	return highest
}

// toLargest moves half of a job's weight to the constraint with the largest value.
func (x *relaxation) toLargest() {
	for i := range x.chains {
		c := &x.chains[i]
		ends := x.ends(c)
		at := 0
		for m := range ends {
			if ends[m] > ends[at] {
				at = m
			}
		}
		for m := range c.weights {
			c.weights[m] /= 2
		}
		c.weights[at] += 0.5
	}
}

// whole returns the index of the constraint that counts all work of a chain in a row; without such work, that of the
// run time alone.
func (c *claim) whole(r int) int {
	if c.work[r] <= 0 || len(c.stages) == 0 {
		return 0
	}
	if len(c.stages) == 1 {
		return 1
	}
	at := 1 + len(c.stages)
	for q := range r {
		if c.work[q] > 0 {
			at++
		}
	}
	return at
}

// mostLevels is the largest number of sets of jobs that make up prices.
const mostLevels = 64

// priceAlone sets the prices that would be optimal if there were only row r, and jobs could be done at any rate: the
// prices of the rule to do the job with the least total work first. Jobs with at most a given work keep the cluster
// busy without a gap for some time; the price of a second in that busy period is the rest of the period, summed up over
// all works, times the gain per unit of work.
func (x *relaxation) priceAlone(r int) {
	for l := range x.price {
		clear(x.price[l].start)
		clear(x.price[l].end)
	}
	byWork := make([]*claim, 0, len(x.chains))
	for i := range x.chains {
		if x.chains[i].work[r] > 0 {
			byWork = append(byWork, &x.chains[i])
		}
	}
	byRelease := slices.Clone(byWork)
	slices.SortStableFunc(byWork, func(a, b *claim) int { return cmp.Compare(a.work[r], b.work[r]) })
	slices.SortStableFunc(byRelease, func(a, b *claim) int { return cmp.Compare(a.release, b.release) })
	levels := min(mostLevels, len(byWork))
	for k := range levels {
		most := byWork[(k+1)*len(byWork)/levels-1].work[r]
		gain := 1 / most
		if k+1 < levels {
			gain -= 1 / byWork[(k+2)*len(byWork)/levels-1].work[r]
		}
		x.priceBusy(r, byRelease, most, gain)
	}
}

// priceBusy adds gain × the rest of each busy period of the jobs with at most the given work.
func (x *relaxation) priceBusy(r int, byRelease []*claim, most, gain float64) {
	from, to := math.Inf(-1), math.Inf(-1)
	l := 0 // the intervals before l have been priced
	flush := func() {
		for l < len(x.price) && x.knots[l+1] <= from {
			l++
		}
		for m := l; m < len(x.price) && x.knots[m] < to; m++ {
			if x.knots[m] >= from {
				x.price[m].start[r] += gain * (to - x.knots[m])
			}
			if x.knots[m+1] <= to {
				x.price[m].end[r] += gain * (to - x.knots[m+1])
			}
		}
	}
	for _, c := range byRelease {
		if c.work[r] > most {
			continue
		}
		if c.release > to {
			flush()
			from, to = c.release, c.release
		}
		to += c.work[r]
	}
	flush()
}

// ends returns the value of each constraint of a chain at the present means.
func (x *relaxation) ends(c *claim) []float64 {
	ends := make([]float64, len(c.constraints))
	for m := range c.constraints {
		k := &c.constraints[m]
		ends[m] = k.constant
		for q, s := range k.stages {
			ends[m] += k.parts[q] * x.stages[s].mean
		}
	}
	return ends
}

// climb moves prices and weights along the subgradient, as far as should raise the value by the given amount. The price
// of a second of the whole cluster is of the order of the number of waiting jobs.
func (x *relaxation) climb(used []prices, rise float64) {
	n := float64(len(x.chains))
	var slope float64
	for l := range x.price {
		half := (x.knots[l+1] - x.knots[l]) / 2
		for r := range x.rows {
			p, u := &x.price[l], &used[l]
			u.start[r], u.end[r] = u.start[r]-half, u.end[r]-half
			if p.start[r] > 0 || u.start[r] > 0 {
				slope += u.start[r] * u.start[r] * n / half
			}
			if p.end[r] > 0 || u.end[r] > 0 {
				slope += u.end[r] * u.end[r] * n / half
			}
		}
	}
	all := make([][]float64, len(x.chains))
	for i := range x.chains {
		all[i] = x.ends(&x.chains[i])
		slope += uphill(x.chains[i].weights, all[i])
	}
	if slope <= 0 {
		return
	}
	step := min(1, rise/slope)
	for l := range x.price {
		half := (x.knots[l+1] - x.knots[l]) / 2
		p, u := &x.price[l], &used[l]
		for r := range x.rows {
			p.start[r] = max(0, p.start[r]+step*n*u.start[r]/half)
			p.end[r] = max(0, p.end[r]+step*n*u.end[r]/half)
		}
	}
	for i := range x.chains {
		c := &x.chains[i]
		for m := range c.weights {
			c.weights[m] += step * all[i][m]
		}
		project(c.weights)
		c.spread()
	}
}

// spread gives every constraint a small weight: all work is worth doing early.
func (c *claim) spread() {
	const little = 1e-4
	for m := range c.weights {
		c.weights[m] = (1-little)*c.weights[m] + little/float64(len(c.weights))
	}
}

// uphill turns ends into the direction in which weights are moved, and returns the rise of the value per unit along it.
func uphill(weights, ends []float64) (slope float64) {
	least, most := slices.Min(ends), slices.Max(ends)
	if most <= least {
		clear(ends)
		return 0
	}
	var mean float64
	for m := range ends {
		mean += weights[m] * ends[m]
	}
	for m := range ends {
		d := (ends[m] - mean) / (most - least)
		slope += d * (ends[m] - mean)
		ends[m] = d
	}
	return slope
}
