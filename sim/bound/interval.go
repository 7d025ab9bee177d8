package bound

import (
	"cmp"
	"math"
	"slices"
)

// DefaultIterations is the usual number of steps of the interval bound.
const DefaultIterations = 80

// relaxation is the state of the computation of the interval bound.
type relaxation struct {
	rows    []int     // of the problem
	knots   []float64 // where intervals begin; the last one is where limits end
	stages  []piece
	chains  []claim
	price   []prices // per interval
	active  []int    // rows with a price that is not 0
	scratch []span
}

// prices are the price of a second of the whole cluster in an interval, in seconds of run time, per row: at its start
// and at its end, with a straight line between them.
type prices struct{ start, end []float64 }

// piece is a stage in the linear program.
type piece struct {
	work   []float64 // per row
	ready  float64
	rate   float64 // largest share of its work that can be done per second
	weight float64 // of its mean time in the ends of jobs
	mean   float64 // at the present prices
	level  float64 // cost up to which times are used
	first  int     // interval
}

// claim is a chain in the linear program: its end is at least each of its constraints.
type claim struct {
	release     float64
	work        []float64 // per row
	stages      []int
	constraints []constraint
	weights     []float64 // of the constraints, above 0, adding up to 1
}

// constraint says that a job ends no earlier than constant plus the sum of part × mean over its stages.
type constraint struct {
	constant float64
	stages   []int
	parts    []float64
}

// Numbers of intervals; docs/decisions/0008-lower-bounds.md compares their gain and cost.
const (
	intervals     = 150
	intervalsMany = 60 // for more than manyChains
	manyChains    = 1000
)

// interval returns the bound on the sum of run times of all chains. makespan is a bound in seconds.
func (p *problem) interval(iterations int, makespan float64) float64 {
	n := intervals
	if len(p.chains) > manyChains {
		n = intervalsMany
	}
	return p.relax(makespan, n).ascend(iterations)
}

// relax sets up the linear program, with n intervals.
func (p *problem) relax(makespan float64, n int) *relaxation {
	x := &relaxation{rows: p.tightest(), scratch: make([]span, n)}
	end := p.first + max(1e-6, 1.05*makespan)
	for l := range n + 1 {
		x.knots = append(x.knots, p.first+(end-p.first)*float64(l)/float64(n))
	}
	for range n {
		x.price = append(x.price, prices{make([]float64, len(x.rows)), make([]float64, len(x.rows))})
	}
	for i := range p.chains {
		x.add(&p.chains[i])
	}
	return x
}

// tightest returns, per resource, the plain row and the row with the most work.
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
	cl := claim{release: c.release, work: make([]float64, len(x.rows)),
		constraints: []constraint{{constant: c.release + c.alone}}}
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
		for r, k := range x.rows {
			half = max(half, s.even[k]/2)
			cl.work[r] += s.even[k]
		}
		cl.constraints = append(cl.constraints, constraint{half + s.tail, []int{len(x.stages) - 1}, []float64{1}})
	}
	if len(cl.stages) > 1 {
		for r := range x.rows {
			if cl.work[r] <= 0 {
				continue
			}
			whole := constraint{constant: cl.work[r] / 2, stages: cl.stages}
			for _, i := range cl.stages {
				whole.parts = append(whole.parts, x.stages[i].work[r]/cl.work[r])
			}
			cl.constraints = append(cl.constraints, whole)
		}
	}
	cl.weights = make([]float64, len(cl.constraints))
	x.chains = append(x.chains, cl)
}

// piece returns a stage whose tasks cannot start before ready.
func (x *relaxation) piece(ready float64, s *stage) piece {
	// Work counts in proportion to run times, with the same factor for all tasks.
	var total float64
	for _, d := range s.times {
		total += d
	}
	t := piece{ready: ready, rate: float64(len(s.times)) / total}
	for _, k := range x.rows {
		t.work = append(t.work, s.even[k])
		if s.even[k] > 0 {
			t.rate = min(t.rate, 1/s.even[k])
		}
	}
	for t.first < len(x.price) && x.knots[t.first+1] <= ready {
		t.first++
	}
	return t
}

// evaluate returns the relaxed optimum at the present prices and weights, and stores in used the capacity used at each
// price.
func (x *relaxation) evaluate(used []prices) (value float64) {
	x.active = x.active[:0]
	for r := range x.rows {
		charged := false
		for l := range x.price {
			p, length := &x.price[l], x.knots[l+1]-x.knots[l]
			value -= (p.start[r] + p.end[r]) / 2 * length
			charged = charged || p.start[r] > 0 || p.end[r] > 0
			used[l].start[r], used[l].end[r] = 0, 0
		}
		if charged {
			x.active = append(x.active, r)
		}
	}
	for i := range x.stages {
		x.stages[i].weight = 0
	}
	for i := range x.chains {
		c := &x.chains[i]
		value -= c.release
		for n := range c.constraints {
			k, w := &c.constraints[n], c.weights[n]
			value += w * k.constant
			for m, s := range k.stages {
				x.stages[s].weight += w * k.parts[m]
			}
		}
	}
	for i := range x.stages {
		value += x.fill(&x.stages[i], used)
	}
	return value
}

// span is an interval from the view of a stage: the cost rises or falls on a straight line between low and high.
type span struct{ from, length, low, high, start, end float64 }

// fill does the work of a stage where it is cheapest and returns its cost, or slightly less.
func (x *relaxation) fill(s *piece, used []prices) (cost float64) {
	spans := x.spans(s)
	done := s.search(spans, max(s.ready, x.knots[len(x.knots)-1]))
	if done.share <= 0 {
		s.mean = s.ready
		return s.level
	}
	x.use(s, spans, s.rate/done.share, used)
	return s.level - s.rate*done.saved
}

// spans computes the cost of each interval for a stage, from the time when the stage is ready.
func (x *relaxation) spans(s *piece) []span {
	spans := x.scratch[:0]
	for l := s.first; l < len(x.price); l++ {
		p := &x.price[l]
		c := span{from: x.knots[l], length: x.knots[l+1] - x.knots[l], start: s.weight * x.knots[l],
			end: s.weight * x.knots[l+1]}
		for _, r := range x.active {
			c.start += p.start[r] * s.work[r]
			c.end += p.end[r] * s.work[r]
		}
		if late := s.ready - c.from; late > 0 {
			c.start += (c.end - c.start) * late / c.length
			c.from, c.length = s.ready, c.length-late
		}
		c.low, c.high = min(c.start, c.end), max(c.start, c.end)
		spans = append(spans, c)
	}
	return spans
}

// filled is the result of a level of cost.
type filled struct {
	share float64 // of the work, done in times that cost at most the level
	slope float64 // of share over level
	saved float64 // integral of level - cost over these times
}

// at returns the result of a level; from end on, a time costs the weight per second.
func (s *piece) at(level float64, spans []span, end float64) (f filled) {
	for i := range spans {
		c := &spans[i]
		switch above := level - c.low; {
		case above <= 0:
		case level >= c.high:
			f.share += c.length
			f.saved += c.length * (level - (c.low+c.high)/2)
		default:
			per := c.length / (c.high - c.low)
			f.share += per * above
			f.slope += per
			f.saved += per * above * above / 2
		}
	}
	if above := level - s.weight*end; above > 0 {
		f.share += above / s.weight
		f.slope += 1 / s.weight
		f.saved += above * above / s.weight / 2
	}
	f.share *= s.rate
	f.slope *= s.rate
	return f
}

// search finds the level at which all work is done, by Newton's method between bounds. By duality, any level gives a
// bound; this level gives the best one.
func (s *piece) search(spans []span, end float64) (f filled) {
	low, high := s.weight*s.ready, s.weight*(end+1/s.rate)
	if s.level <= low || s.level >= high {
		s.level = high
		for i := range spans {
			s.level = min(s.level, spans[i].high)
		}
	}
	for range 12 {
		f = s.at(s.level, spans, end)
		missing := 1 - f.share
		if math.Abs(missing) < 1e-6 {
			break
		}
		if missing > 0 {
			low = s.level
		} else {
			high = s.level
		}
		next := s.level + missing/f.slope
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		s.level = next
	}
	return s.at(s.level, spans, end)
}

// use books the capacity that a stage uses at its level, and computes the stage's mean time.
func (x *relaxation) use(s *piece, spans []span, rate float64, used []prices) {
	s.mean = 0
	for i := range spans {
		c := &spans[i]
		if s.level <= c.low {
			continue
		}
		from, length := c.from, c.length
		if s.level < c.high {
			length *= (s.level - c.low) / (c.high - c.low)
			if c.start > c.end {
				from += c.length - length
			}
		}
		share, middle := rate*length, from+length/2
		s.mean += share * middle
		l := s.first + i
		later := share * (middle - x.knots[l]) / (x.knots[l+1] - x.knots[l])
		for r, a := range s.work {
			used[l].start[r] += a * (share - later)
			used[l].end[r] += a * later
		}
	}
	end := max(s.ready, x.knots[len(x.knots)-1])
	if length := s.level/s.weight - end; length > 0 {
		s.mean += rate * length * (end + length/2)
	}
}

// project moves w to the nearest point of the simplex: components at least 0, with sum 1.
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
