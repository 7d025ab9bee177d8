package bound

import (
	"cmp"
	"math"
	"slices"
)

// DefaultIterations is how many steps the interval bound takes.
const DefaultIterations = 150

// relaxation is the interval bound in the making.
type relaxation struct {
	rows   []int     // of the problem
	starts []float64 // of intervals; the last one has no end and no limits
	stages []piece
	chains []claim
	price  [][]float64 // per interval, per row: seconds of run time per second of the whole cluster
}

// piece is a stage in the linear program.
type piece struct {
	work   []float64 // per row
	left   []float64 // per interval, the earliest time at which its work can be done in it
	most   []float64 // per interval, the largest share of its work that can be done in it
	weight float64   // of its mean time in the ends of jobs
	mean   float64   // at the present prices
	first  int       // interval
}

// claim is a chain in the linear program: its end is at least each of its constraints.
type claim struct {
	release     float64
	stages      []int
	constraints []constraint
	weights     []float64 // of the constraints, at least 0, adding up to 1
}

// constraint says that a job ends no earlier than constant plus the sum of part × mean over its stages.
type constraint struct {
	constant float64
	stages   []int
	parts    []float64
}

// interval returns the bound on the sum of run times of all chains. makespan is a bound in seconds.
func (p *problem) interval(iterations int, makespan float64) float64 {
	n := 150
	if len(p.chains) > 1000 {
		n = 60
	}
	return p.relax(makespan, n).ascend(iterations)
}

// ascend improves prices and weights and returns the best bound seen.
func (x *relaxation) ascend(iterations int) float64 {
	best, stuck, step := math.Inf(-1), 0, 0.1
	var bestPrice, bestWeights [][]float64
	for range iterations {
		value, used := x.evaluate()
		if value > best {
			if value-best < 1e-4*math.Abs(value) {
				stuck++
			} else {
				stuck = 0
			}
			best, bestPrice, bestWeights = value, cloneAll(x.price), x.weights()
		} else {
			stuck++
		}
		if stuck >= 4 {
			// Smaller steps, from the best so far.
			stuck, step = 0, step/1.6
			for l := range x.price {
				copy(x.price[l], bestPrice[l])
			}
			for i := range x.chains {
				copy(x.chains[i].weights, bestWeights[i])
			}
			_, used = x.evaluate()
		}
		x.climb(used, step)
	}
	return best
}

func cloneAll(a [][]float64) [][]float64 {
	b := make([][]float64, len(a))
	for i := range a {
		b[i] = slices.Clone(a[i])
	}
	return b
}

func (x *relaxation) weights() [][]float64 {
	all := make([][]float64, len(x.chains))
	for i := range x.chains {
		all[i] = slices.Clone(x.chains[i].weights)
	}
	return all
}

// relax sets the linear program up, with n intervals and a last one without end.
func (p *problem) relax(makespan float64, n int) *relaxation {
	x := &relaxation{rows: p.tightest()}
	end := p.first + max(1e-6, 1.3*makespan)
	for l := range n + 1 {
		x.starts = append(x.starts, p.first+(end-p.first)*float64(l)/float64(n))
		x.price = append(x.price, make([]float64, len(x.rows)))
	}
	for i := range p.chains {
		x.add(&p.chains[i])
	}
	return x
}

// tightest returns, per resource, the plain row and the one with the most work.
func (p *problem) tightest() (rows []int) {
	total := make([]float64, len(p.rows))
	for i := range p.chains {
		for k, a := range p.chains[i].work {
			total[k] += a
		}
	}
	for from := 0; from < len(p.rows); {
		best, to := from, from
		for to < len(p.rows) && p.rows[to].kind == p.rows[from].kind {
			if total[to] > total[best] {
				best = to
			}
			to++
		}
		rows = append(rows, from)
		if best != from {
			rows = append(rows, best)
		}
		from = to
	}
	return rows
}

func (x *relaxation) add(c *chain) {
	cl := claim{release: c.release, constraints: []constraint{{constant: c.release + c.alone}}}
	for i := range c.stages {
		s := &c.stages[i]
		if s.longest <= 0 {
			continue
		}
		cl.stages = append(cl.stages, len(x.stages))
		x.stages = append(x.stages, x.piece(c.release+s.head, s))
		half, total := 0.0, 0.0
		for _, d := range s.times {
			half, total = half+d*d/2, total+d
		}
		half /= total
		for _, k := range x.rows {
			half = max(half, s.even[k]/2)
		}
		cl.constraints = append(cl.constraints, constraint{half + s.tail, []int{len(x.stages) - 1}, []float64{1}})
	}
	if len(cl.stages) > 1 {
		for r := range x.rows {
			var work float64
			for _, i := range cl.stages {
				work += x.stages[i].work[r]
			}
			if work <= 0 {
				continue
			}
			whole := constraint{constant: work / 2, stages: cl.stages}
			for _, i := range cl.stages {
				whole.parts = append(whole.parts, x.stages[i].work[r]/work)
			}
			cl.constraints = append(cl.constraints, whole)
		}
	}
	cl.weights = make([]float64, len(cl.constraints))
	for i := range cl.weights {
		cl.weights[i] = 1 / float64(len(cl.weights))
	}
	x.chains = append(x.chains, cl)
}

// piece returns a stage whose tasks cannot start before ready.
func (x *relaxation) piece(ready float64, s *stage) piece {
	t := piece{first: -1}
	// Work counts in proportion to run times, with the same factor for all tasks.
	var total float64
	for _, d := range s.times {
		total += d
	}
	for _, k := range x.rows {
		t.work = append(t.work, s.even[k])
	}
	for l, from := range x.starts {
		length := math.Inf(1)
		if l+1 < len(x.starts) {
			length = x.starts[l+1] - max(from, ready)
		}
		left, most := max(from, ready), 0.0
		if length > 0 {
			if t.first < 0 {
				t.first = l
			}
			for _, d := range s.times {
				most += min(d, length)
			}
		}
		t.left, t.most = append(t.left, left), append(t.most, min(1, most/total))
	}
	return t
}

// evaluate returns the relaxed optimum at the present prices and weights, and what is then used per interval and row.
func (x *relaxation) evaluate() (value float64, used [][]float64) {
	for i := range x.stages {
		x.stages[i].weight = 0
	}
	for i := range x.chains {
		c := &x.chains[i]
		value -= c.release
		for n, k := range c.constraints {
			value += c.weights[n] * k.constant
			for m, s := range k.stages {
				x.stages[s].weight += c.weights[n] * k.parts[m]
			}
		}
	}
	used = make([][]float64, len(x.starts))
	for l := range used {
		used[l] = make([]float64, len(x.rows))
		if l+1 < len(x.starts) {
			for r := range x.rows {
				value -= x.price[l][r] * (x.starts[l+1] - x.starts[l])
			}
		}
	}
	costs := make([]offer, len(x.starts))
	for i := range x.stages {
		value += x.fill(&x.stages[i], costs, used)
	}
	return value, used
}

// offer is an interval at its cost for a stage.
type offer struct {
	interval int
	cost     float64
}

// fill does the work of a stage where it is cheapest and returns what that costs.
func (x *relaxation) fill(s *piece, offers []offer, used [][]float64) (cost float64) {
	offers = offers[:0]
	for l := s.first; l < len(x.starts); l++ {
		c := s.weight * s.left[l]
		for r, a := range s.work {
			c += x.price[l][r] * a
		}
		offers = append(offers, offer{l, c})
	}
	slices.SortFunc(offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.interval, b.interval))
	})
	left := 1.0
	s.mean = 0
	for _, o := range offers {
		y := min(left, s.most[o.interval])
		cost += y * o.cost
		s.mean += y * s.left[o.interval]
		for r, a := range s.work {
			used[o.interval][r] += y * a
		}
		if left -= y; left <= 0 {
			break
		}
	}
	return cost
}

// climb moves prices and weights along the subgradient. The price of a second of the whole cluster is of the order of the
// number of jobs that wait.
func (x *relaxation) climb(used [][]float64, step float64) {
	n := float64(len(x.chains))
	for l := 0; l+1 < len(x.starts); l++ {
		length := x.starts[l+1] - x.starts[l]
		for r := range x.rows {
			over := min(3, (used[l][r]-length)/length)
			x.price[l][r] = max(0, x.price[l][r]+step*n*over)
		}
	}
	for i := range x.chains {
		c := &x.chains[i]
		ends := make([]float64, len(c.constraints))
		least, most := math.Inf(1), math.Inf(-1)
		for m, k := range c.constraints {
			ends[m] = k.constant
			for q, s := range k.stages {
				ends[m] += k.parts[q] * x.stages[s].mean
			}
			least, most = min(least, ends[m]), max(most, ends[m])
		}
		if most <= least {
			continue
		}
		for m := range ends {
			c.weights[m] += step * (ends[m] - least) / (most - least)
		}
		project(c.weights)
	}
}

// project moves w to the nearest point of the simplex: at least 0, adding up to 1.
func project(w []float64) {
	sorted := slices.Clone(w)
	slices.SortFunc(sorted, func(a, b float64) int { return cmp.Compare(b, a) })
	sum, shift := 0.0, 0.0
	for i, v := range sorted {
		sum += v
		if s := (sum - 1) / float64(i+1); v > s {
			shift = s
		}
	}
	for i := range w {
		w[i] = max(0, w[i]-shift)
	}
}
