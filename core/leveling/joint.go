package leveling

import (
	"math"
	"math/bits"
	"slices"
)

const (
	// mostTogether is how many sets a joint bound looks at together, mostJoint how many cells of its table.
	mostTogether, mostJoint = 4, 700_000
	// mostSums is the largest number of different sums of other sets' demands that a joint bound distinguishes.
	mostSums = 256
	// jointRounds bounds the rounds of prices of a joint bound. After jointPatience rounds without a better bound, steps
	// become jointShorter times as long.
	jointRounds, jointPatience, jointShorter = 10, 1, 0.7
)

// joint is a bound that looks at what a few sets over-allocate together, not only at a price of their demand. All
// other sets have the price, and demand in each interval what is best for the bound: one of the sums that they can
// demand, or anything in between where there are too many.
//
// Prices alone let half of a set run. The more of the demand the few sets have, the less of it can run by halves.
type joint struct {
	sets   []int
	stride []int // of each set's idle intervals in the table
	cells  int   // of an interval of the table, per kind of what stands still
	// gain is by how much the bound is above that of prices alone: in each interval, by idle intervals, by the bits of
	// the sets that stand still.
	gain   []int64
	others []demands // of all other sets, by interval
	now    ways
	once   int // cells that look works out
	looked int // cells that were worked out since done
}

// newJoint returns a bound for the first of sets that fit in its table, at the prices that the tables of g were
// computed with; nil if fewer than two sets fit.
func (g *program) newJoint(sets []int) *joint {
	b := &joint{cells: 1}
	for _, j := range sets {
		cells := b.cells * (g.sets[j].float + 1)
		if len(b.sets) == mostTogether || (len(g.excess)+1)*cells<<(len(b.sets)+1) > mostJoint {
			continue
		}
		b.sets, b.stride, b.cells = append(b.sets, j), append(b.stride, b.cells), cells
	}
	if len(b.sets) < 2 {
		return nil
	}
	b.gain = make([]int64, (len(g.excess)+1)*b.cells<<len(b.sets))
	b.others = make([]demands, len(g.excess))
	for t := range b.others {
		b.others[t] = g.others(t, b.sets)
	}
	b.look(g)
	b.once = b.looked
	return b
}

// done returns how many cells were worked out since the last call.
func (b *joint) done() (cells int) {
	cells, b.looked = b.looked, 0
	return cells
}

// look writes the bound itself, at the prices of g, where the gain is to be.
func (b *joint) look(g *program) {
	clear(b.gain[len(g.excess)*b.cells<<len(b.sets):])
	for t := len(g.excess) - 1; t >= 0; t-- {
		b.each(g, t, func(cell int, idle []int) { b.fill(g, t, cell, idle) })
	}
}

// finish turns the bound itself into the gain. tail is the tail of the search.
func (b *joint) finish(g *program, tail []int64) {
	for t := range len(g.excess) + 1 {
		b.each(g, t, func(cell int, idle []int) { b.compare(g, t, cell, idle, tail[t]) })
	}
}

// ascend moves the prices of g to where the bound at the start is higher, and looks there. It goes on for up to a
// number of cells. As in program.ascend, the bound is concave in prices: the price goes up in an interval in which
// the other sets demand more when each decides for itself than is best for the sets of the bound.
func (b *joint) ascend(g *program, cells int) {
	best, prices, price := int64(-forbidden), slices.Clone(g.prices), make([]float64, len(g.prices))
	for t, p := range g.prices {
		price[t] = float64(p) / one
	}
	more, length, waited := make([]int64, len(g.prices)), 1.0, 0
	b.look(g)
	for range jointRounds {
		bound := b.atStart(g, more)
		if bound > best {
			best = bound
			copy(prices, g.prices)
			g.bound = max(g.bound, ceil(bound))
		} else if waited++; waited > jointPatience {
			length, waited = length*jointShorter, 0
		}
		norm := 0.0
		for _, x := range more {
			norm += float64(x * x)
		}
		if norm == 0 || g.bound >= g.value || b.looked+2*b.once > cells {
			break
		}
		step := length * (float64(g.value) - float64(bound)/one) / norm
		for t, x := range more {
			price[t] = min(1, max(0, price[t]+float64(step*float64(x))))
			g.prices[t] = int64(math.Round(price[t] * one))
		}
		g.priced(g.prices)
		b.look(g)
	}
	copy(g.prices, prices)
	g.priced(g.prices)
	b.look(g)
}

// atStart returns the bound at the start. more becomes what the other sets demand more in each interval, when each
// decides for itself at the prices, than what is best for the sets of the bound.
func (b *joint) atStart(g *program, more []int64) (bound int64) {
	idle, still, cell := make([]int, len(b.sets)), 0, 0
	for i, j := range b.sets {
		if g.sets[j].still {
			still |= 1 << i
		}
	}
	bound = b.gain[still]
	for t := range more {
		waits, other := b.best(g, t, cell, idle, still)
		more[t] = -other
		for i, j := range b.sets {
			switch w := &g.sets[j]; {
			case t-idle[i] >= len(w.demand):
			case waits>>i&1 == 1:
				idle[i]++
			case t-idle[i]+1 == len(w.demand):
				idle[i] = 0
			}
		}
		still, cell = waits, b.now.next[waits]
	}
	for j := range g.sets {
		if !slices.Contains(b.sets, j) {
			bound += g.tables[j][g.sets[j].start()]
			g.sets[j].addTo(more, g.schedule[j])
		}
	}
	return bound
}

// best returns which of the sets wait in interval t in what follows best on a cell, and what the others demand.
func (b *joint) best(g *program, t, cell int, idle []int, still int) (waits int, other int64) {
	kinds, w, least := 1<<len(b.sets), b.ways(g, t, cell, idle), int64(math.MaxInt64)
	for k := range kinds {
		if w.cost[k] >= forbidden {
			continue
		}
		over, x := b.others[t].least(w.load[k], g.prices[t])
		cost := w.cost[k] + over + b.gain[((t+1)*b.cells+w.next[k])*kinds+k] +
			g.sets[b.sets[0]].suspend*int64(bits.OnesCount(uint(k&^still)))
		if cost < least {
			least, waits, other = cost, k, x
		}
	}
	return waits, other
}

// each calls do for all idle intervals that the sets can have after t intervals. A set that has ended counts as if it
// had never stood still.
func (b *joint) each(g *program, t int, do func(cell int, idle []int)) {
	idle, cell := make([]int, len(b.sets)), 0
	for {
		do(cell, idle)
		b.looked++
		i := 0
		for ; i < len(b.sets); i++ {
			w := &g.sets[b.sets[i]]
			from := idle[i]
			if idle[i]++; idle[i] <= t-len(w.demand) {
				idle[i] = t - len(w.demand) + 1 // those in between have ended, too
			}
			if idle[i] <= min(t, w.float) {
				cell += (idle[i] - from) * b.stride[i]
				break
			}
			cell -= from * b.stride[i]
			idle[i] = 0
		}
		if i == len(b.sets) {
			return
		}
	}
}

// compare turns the bound itself into the gain.
func (b *joint) compare(g *program, t, cell int, idle []int, tail int64) {
	var alone [1 << mostTogether]int64
	alone[0] = tail
	for i, j := range b.sets {
		goes, stands, w := int64(0), int64(0), &g.sets[j]
		if t-idle[i] < len(w.demand) {
			goes, stands = g.tables[j][w.at(t, idle[i], 0)], g.tables[j][w.at(t, idle[i], 1)]
		}
		for still := range 1 << i {
			alone[still|1<<i] = alone[still] + stands
			alone[still] += goes
		}
	}
	gain := b.gain[(t*b.cells+cell)<<len(b.sets):][:1<<len(b.sets)]
	for still, x := range gain {
		gain[still] = max(0, x-alone[still])
	}
}

// ways are what the sets of a joint bound may do in an interval, by which of them wait: what they demand beyond the
// capacity, what it costs without suspensions, and the cell that follows.
type ways struct {
	load, cost [1 << mostTogether]int64
	next       [1 << mostTogether]int
}

// ways returns what the sets may do in interval t.
func (b *joint) ways(g *program, t, cell int, idle []int) *ways {
	w := &b.now
	w.load[0], w.cost[0], w.next[0] = g.excess[t], 0, cell
	for i, j := range b.sets {
		s, done := &g.sets[j], t-idle[i]
		if done >= len(s.demand) {
			for waits := range 1 << i {
				w.cost[waits|1<<i] = forbidden
			}
			continue
		}
		run, wait := s.moves(t, done, s.ready, s.float)
		over := 0
		if done+1 == len(s.demand) {
			over = -idle[i] * b.stride[i]
		}
		for waits := range 1 << i {
			k := waits | 1<<i
			w.load[k], w.cost[k], w.next[k] = w.load[waits], forbidden, w.next[waits]+b.stride[i]
			if wait {
				w.cost[k] = w.cost[waits] + s.delay
			}
			w.load[waits], w.next[waits] = w.load[waits]+s.demand[done], w.next[waits]+over
			if !run {
				w.cost[waits] = forbidden
			}
		}
	}
	return w
}

// fill writes the cells of some idle intervals in interval t, with the bound itself.
func (b *joint) fill(g *program, t, cell int, idle []int) {
	kinds, w := 1<<len(idle), b.ways(g, t, cell, idle)
	at := b.gain[(t*b.cells+cell)*kinds:][:kinds]
	for waits := range at {
		if at[waits] = forbidden; w.cost[waits] < forbidden {
			least, _ := b.others[t].least(w.load[waits], g.prices[t])
			at[waits] = min(forbidden, w.cost[waits]+least+b.gain[((t+1)*b.cells+w.next[waits])*kinds+waits])
		}
	}
	// A set that stands still already is not suspended once more.
	suspend := g.sets[b.sets[0]].suspend
	for bit := 1; bit < kinds; bit <<= 1 {
		for k := range at {
			if k&bit == 0 {
				goes, waits := at[k], at[k|bit]
				at[k], at[k|bit] = min(goes, waits+suspend), min(goes, waits)
			}
		}
	}
}

// demands are what sets can demand together in an interval: one of sums, in ascending order, or anything from 0 to
// most if there are too many sums.
type demands struct {
	sums []int64
	most int64
}

// least returns the least that an interval costs if some sets demand load beyond the capacity, and others one of d at
// a price that is paid elsewhere; and which one.
func (d *demands) least(load, price int64) (cost, other int64) {
	if d.sums == nil {
		other = min(max(0, -load), d.most)
		return max(0, load+other)*one - price*other, other
	}
	// The best is the sum next to what would fill the capacity, on either side.
	cost = forbidden
	i, to := 0, len(d.sums)
	for i < to {
		if mid := (i + to) / 2; d.sums[mid] < -load {
			i = mid + 1
		} else {
			to = mid
		}
	}
	if i < len(d.sums) {
		cost, other = (load+d.sums[i])*one-price*d.sums[i], d.sums[i]
	}
	if i > 0 && -price*d.sums[i-1] < cost {
		cost, other = -price*d.sums[i-1], d.sums[i-1]
	}
	return cost, other
}

// others returns what all sets but some can demand together in interval t.
func (g *program) others(t int, but []int) (d demands) {
	d.sums = []int64{0}
	for j := range g.sets {
		w := &g.sets[j]
		if slices.Contains(but, j) {
			continue
		}
		can := []int64{0}
		for done := max(0, t-w.float); done <= t && done < len(w.demand); done++ {
			if run, _ := w.moves(t, done, w.ready, w.float); run {
				can = append(can, w.demand[done])
			}
		}
		slices.Sort(can)
		can = slices.Compact(can)
		d.most += can[len(can)-1]
		if d.sums == nil || len(d.sums)*len(can) > 16*mostSums {
			d.sums = nil
			continue
		}
		var sums []int64
		for _, a := range can {
			for _, s := range d.sums {
				sums = append(sums, s+a)
			}
		}
		slices.Sort(sums)
		if d.sums = slices.Compact(sums); len(d.sums) > mostSums {
			d.sums = nil
		}
	}
	return d
}

// gainAt returns the gain in a state after t intervals.
func (b *joint) gainAt(fields []field, at key, t int) int64 {
	cell, still := 0, 0
	for i, j := range b.sets {
		f := &fields[j]
		bits := at[f.word] >> f.shift
		if idle := bits >> 1 & f.mask; idle != f.ended { // a set that has ended is where it would be had it never stood still
			cell += int(idle) * b.stride[i]
			still |= int(bits&1) << i
		}
	}
	return b.gain[(t*b.cells+cell)<<len(b.sets)|still]
}
