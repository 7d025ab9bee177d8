package bound

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
)

// program is a linear program min c·x, A x <= b, E x = f, x >= 0, built row by row.
type program struct {
	cost       []float64
	limits     [][]float64
	limit      []float64
	equalities [][]float64
	equal      []float64
}

func (g *program) row() []float64 { return make([]float64, len(g.cost)) }

// solve adds slack variables and solves the program with the simplex method.
func (g *program) solve() (float64, error) {
	n, m := len(g.cost), len(g.limits)
	a := mat.NewDense(m+len(g.equalities), n+m, nil)
	b := make([]float64, m+len(g.equalities))
	for i, r := range g.limits {
		for j, v := range r {
			a.Set(i, j, v)
		}
		a.Set(i, n+i, 1)
		b[i] = g.limit[i]
	}
	for i, r := range g.equalities {
		for j, v := range r {
			a.Set(m+i, j, v)
		}
		b[m+i] = g.equal[i]
	}
	value, _, err := lp.Simplex(append(append([]float64{}, g.cost...), make([]float64, m)...), a, b, 1e-9, nil)
	return value, err
}

// exact returns the optimum of the linear program that x relaxes, with the restriction that the rate of each stage is
// constant over each of the given parts of an interval: slightly more than the optimum without the restriction.
func (x *relaxation) exact(parts int) (float64, error) {
	cells := (len(x.price) + 2) * parts // per stage; the last ones are after all intervals
	end := func(c int) int { return len(x.stages)*cells + c }
	g := program{cost: make([]float64, len(x.stages)*cells+len(x.chains))}
	from, to := x.cells(parts)
	middle := func(s, i int) float64 { return (from[s][i] + to[s][i]) / 2 }
	var released float64
	for c := range x.chains {
		g.cost[end(c)] = 1
		released += x.chains[c].release
		for _, k := range x.chains[c].constraints {
			r := g.row()
			r[end(c)] = -1
			for q, s := range k.stages {
				for i := range cells {
					r[s*cells+i] += k.parts[q] * middle(s, i)
				}
			}
			g.limits, g.limit = append(g.limits, r), append(g.limit, -k.constant)
		}
	}
	for s := range x.stages {
		whole := g.row()
		for i := range cells {
			whole[s*cells+i] = 1
			r := g.row()
			r[s*cells+i] = 1
			g.limits, g.limit = append(g.limits, r), append(g.limit, x.stages[s].rate*(to[s][i]-from[s][i]))
		}
		g.equalities, g.equal = append(g.equalities, whole), append(g.equal, 1)
	}
	for l := range x.price {
		length := x.knots[l+1] - x.knots[l]
		for k := range x.rows {
			early, late := g.row(), g.row()
			for s := range x.stages {
				for i := l * parts; i < (l+1)*parts; i++ {
					later := (middle(s, i) - x.knots[l]) / length
					early[s*cells+i] = x.stages[s].work[k] * (1 - later)
					late[s*cells+i] = x.stages[s].work[k] * later
				}
			}
			g.limits, g.limit = append(g.limits, early, late), append(g.limit, length/2, length/2)
		}
	}
	value, err := g.solve()
	return value - released, err
}

// cells returns, per stage, the begins and the ends of the periods into which exact divides its time.
func (x *relaxation) cells(parts int) (from, to [][]float64) {
	horizon := x.knots[len(x.knots)-1]
	for s := range x.stages {
		p := &x.stages[s]
		var begin, end []float64
		for l := range x.price {
			for i := range parts {
				at := func(i int) float64 { return x.knots[l] + (x.knots[l+1]-x.knots[l])*float64(i)/float64(parts) }
				begin, end = append(begin, max(p.ready, at(i))), append(end, max(p.ready, at(i+1)))
			}
		}
		for i := range 2 * parts {
			at := func(i int) float64 { return max(p.ready, horizon) + float64(i)/float64(2*parts)/p.rate }
			begin, end = append(begin, at(i)), append(end, at(i+1))
		}
		from, to = append(from, begin), append(to, end)
	}
	return from, to
}

// The interval bound is never above the optimum of its linear program, and is close to it.
func TestIntervalBoundAgainstSimplex(t *testing.T) {
	solved, least, sum := 0, math.Inf(1), 0.0
	for seed := range uint64(25) {
		w := tinyWorkload(rand.New(rand.NewPCG(seed, 5)), 100*resource.MB, 4)
		p := newProblem(w, sim.Uniform(1, resource.Of(4*resource.Core, 100*resource.MB)), true, Options{})
		makespan := p.lastByArea(0) - p.first
		for k := range p.rows {
			makespan = max(makespan, p.lastByArea(k)-p.first)
		}
		x := p.relax(makespan, 4)
		want, err := x.exact(4)
		if err != nil {
			t.Logf("seed %d: simplex: %v", seed, err)
			continue
		}
		got := x.ascend(DefaultIterations)
		if got > want*(1+1e-6)+1e-6 {
			t.Fatalf("seed %d: %v, the linear program has %v", seed, got, want)
		}
		solved++
		least, sum = min(least, got/want), sum+got/want
	}
	t.Logf("%d solved; bound over optimum of the program: mean %.4f, worst %.4f", solved, sum/float64(solved), least)
	if solved < 20 || sum/float64(solved) < 0.98 {
		t.Errorf("%d of 25 solved, want 20; on average %.4f of the optimum, want 0.98", solved, sum/float64(solved))
	}
}

// A point on the simplex does not move; any other point is projected onto it, in the same order.
func TestProject(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	for range 500 {
		w := make([]float64, 1+r.IntN(6))
		for i := range w {
			w[i] = 4*r.Float64() - 1
		}
		before := append([]float64{}, w...)
		project(w)
		again := append([]float64{}, w...)
		project(again)
		var sum float64
		for i := range w {
			sum += w[i]
			if w[i] < 0 || math.Abs(w[i]-again[i]) > 1e-12 || (i > 0 && (before[i]-before[i-1])*(w[i]-w[i-1]) < 0) {
				t.Fatalf("%v becomes %v, then %v", before, w, again)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("%v becomes %v, which adds up to %v", before, w, sum)
		}
	}
}
