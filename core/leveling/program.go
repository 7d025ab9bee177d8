package leveling

import (
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
)

// program is a Problem in units, the largest that all of its amounts are multiples of: every value is a whole number
// of units, so that a bound above v - 1 is a bound of v.
type program struct {
	unit     resource.Amount
	excess   []int64 // what is fixed beyond the capacity in each interval: any sign
	sets     []window
	runs     [][]bool  // the best schedule so far
	value    int64     // of the best schedule
	bound    int64     // no schedule is below
	prices   []int64   // of demand in each interval, 0 to one: the prices of the best bound
	tables   [][]int64 // of each set: see window.fill
	load     []int64   // what a schedule that is worked on demands in each interval
	schedule [][]bool  // the one that is worked on
}

// newProgram returns ErrImpossible if no schedule satisfies the constraints.
func newProgram(p *Problem) (*program, error) {
	g := &program{unit: max(1, p.divisor()), value: forbidden, prices: make([]int64, len(p.Fixed)),
		load: make([]int64, len(p.Fixed))}
	for _, a := range p.Fixed {
		g.excess = append(g.excess, int64((a-p.Capacity)/g.unit))
	}
	for j := range p.Sets {
		s := &p.Sets[j]
		w := window{float: s.Float, shuffle: s.Shuffle, ready: s.Ready, still: s.Suspended, after: s.After,
			suspend: int64(p.Suspension/g.unit) * one, delay: int64(p.Delay/g.unit) * one}
		for _, a := range s.Demand {
			w.demand = append(w.demand, int64(a/g.unit))
		}
		g.sets = append(g.sets, w)
	}
	if !g.narrow() {
		return nil, ErrImpossible
	}
	for j := range g.sets {
		g.tables = append(g.tables, make([]int64, g.sets[j].cells()))
		g.runs = append(g.runs, make([]bool, len(p.Fixed)))
		g.schedule = append(g.schedule, make([]bool, len(p.Fixed)))
	}
	return g, nil
}

// divisor returns the greatest common divisor of all amounts, 0 if all are 0.
func (p *Problem) divisor() resource.Amount {
	d := resource.Amount(0)
	add := func(all ...resource.Amount) {
		for _, a := range all {
			for a != 0 {
				d, a = a, d%a
			}
		}
	}
	add(p.Capacity, p.Suspension, p.Delay)
	add(p.Fixed...)
	for j := range p.Sets {
		add(p.Sets[j].Demand...)
	}
	return d
}

// narrow restricts each window to what the other windows allow in some schedule, and reports whether there is one: if
// so, starting everything as early as possible is one.
func (g *program) narrow() (possible bool) {
	ends := make([]int, len(g.sets))
	for j := range g.sets {
		w := &g.sets[j]
		ends[j] = len(w.demand)
		if w.shuffle == len(w.demand) {
			w.ready, w.after = 0, nil
			continue
		}
		for _, m := range w.after {
			w.ready = max(w.ready, ends[m])
			if !slices.Contains(g.sets[m].before, j) {
				g.sets[m].before = append(g.sets[m].before, j)
			}
		}
		ends[j] += max(0, w.ready-w.shuffle)
	}
	for m := len(g.sets) - 1; m >= 0; m-- {
		w := &g.sets[m]
		for _, j := range w.before {
			w.float = min(w.float, g.sets[j].float+g.sets[j].shuffle-len(w.demand))
		}
		if ends[m] > w.latest() {
			return false
		}
	}
	return true
}

// over returns what is over-allocated with demand load beyond what is fixed.
func (g *program) over(load []int64) (sum int64) {
	for t, e := range g.excess {
		sum += max(0, e+load[t])
	}
	return sum
}

// keep makes a schedule the best one if its value, in units, is lower.
func (g *program) keep(runs [][]bool, value int64) {
	if value >= g.value {
		return
	}
	g.value = value
	for j := range runs {
		copy(g.runs[j], runs[j])
	}
}

// shiftCost returns α S + β L of a set's schedule, in units.
func (w *window) shiftCost(runs []bool, end int) int64 {
	sum, still := int64(end-len(w.demand))*w.delay, w.still
	for _, run := range runs[:end] {
		if !run && !still {
			sum += w.suspend
		}
		still = !run
	}
	return sum / one
}
