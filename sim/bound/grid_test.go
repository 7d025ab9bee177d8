package bound

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// grid tries all start times in whole seconds, with every size on every node. If all times are whole seconds, one of
// these schedules is optimal.
type grid struct {
	w             *workload.Workload
	nodes         []cluster.Node
	elastic       bool
	seconds       int
	used          [][]resource.Vector // per node and second
	end           [][]int             // per job and stage
	makespan, sum int
}

// gridWorkload draws up to three tasks that take whole seconds with every size.
func gridWorkload(r *rand.Rand) (w *workload.Workload, seconds int) {
	w = &workload.Workload{}
	for tasks := 3; len(w.Jobs) < 3 && tasks > 0; {
		j := workload.Job{After: -1}
		j.ID = cluster.JobID(len(w.Jobs) + 1)
		if len(w.Jobs) > 0 && r.IntN(4) == 0 {
			j.After = r.IntN(len(w.Jobs))
		} else {
			j.Submitted = timeline.Seconds(float64(r.IntN(4)))
		}
		for len(j.Stages) < 2 && tasks > 0 {
			n := 1 + r.IntN(min(2, tasks))
			tasks -= n
			ideal := 2 + r.IntN(4)
			d := 1 + r.IntN(3)
			s := cluster.Stage{Tasks: n, Duration: time.Duration(d) * time.Second, MinMemory: resource.Amount(1 + r.IntN(ideal)),
				Ideal: resource.Of(resource.Amount(1+r.IntN(3))*resource.Core, resource.Amount(ideal))}
			s.Elasticity.Kind = cluster.Points
			longest := d
			for m := 1; m < ideal; m++ {
				really := 1 + r.IntN(4)
				longest = max(longest, really)
				s.Elasticity.Points = append(s.Elasticity.Points, cluster.ElasticityPoint{Memory: resource.Amount(m),
					Slowdown: float64(really) / float64(d)})
			}
			seconds += n * longest
			if len(j.Stages) > 0 && r.IntN(2) == 0 {
				s.Parents = []int{0}
			}
			j.Stages = append(j.Stages, s)
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w, seconds + 3
}

// solve returns the least makespan and the least sum of run times.
func (g *grid) solve() (makespan, sum time.Duration) {
	g.makespan, g.sum = math.MaxInt, math.MaxInt
	for range g.nodes {
		g.used = append(g.used, make([]resource.Vector, g.seconds))
	}
	for j := range g.w.Jobs {
		g.end = append(g.end, make([]int, len(g.w.Jobs[j].Stages)))
	}
	g.place(0, 0, 0)
	return time.Duration(g.makespan) * time.Second, time.Duration(g.sum) * time.Second
}

func (g *grid) place(job, stage, index int) {
	if job == len(g.w.Jobs) {
		g.judge()
		return
	}
	j := &g.w.Jobs[job]
	if stage == len(j.Stages) {
		g.place(job+1, 0, 0)
		return
	}
	s := &j.Stages[stage]
	if index == s.Tasks {
		g.place(job, stage+1, 0)
		return
	}
	from := g.submitted(job)
	for _, p := range s.Parents {
		from = max(from, g.end[job][p])
	}
	least := s.Ideal[resource.Memory]
	if g.elastic {
		least = s.MinMemory
	}
	for m := least; m <= s.Ideal[resource.Memory]; m++ {
		need := s.Ideal.With(resource.Memory, m)
		long := int(s.Elasticity.Duration(s.Duration, s.Ideal[resource.Memory], m) / time.Second)
		for n := range g.nodes {
			for at := from; at+long <= g.seconds; at++ {
				if g.hold(n, at, long, need) {
					before := g.end[job][stage]
					g.end[job][stage] = max(before, at+long)
					g.place(job, stage, index+1)
					g.end[job][stage] = before
				}
				g.release(n, at, long, need)
			}
		}
	}
}

// hold adds a task to the used resources, and reports whether it fits.
func (g *grid) hold(node, at, long int, need resource.Vector) bool {
	fits := true
	for t := at; t < at+long; t++ {
		g.used[node][t] = g.used[node][t].Add(need)
		fits = fits && g.used[node][t].FitsIn(g.nodes[node].Capacity)
	}
	return fits
}

func (g *grid) release(node, at, long int, need resource.Vector) {
	for t := at; t < at+long; t++ {
		g.used[node][t] = g.used[node][t].Sub(need)
	}
}

func (g *grid) submitted(job int) int {
	if a := g.w.Jobs[job].After; a >= 0 {
		return slices.Max(g.end[a])
	}
	return int(g.w.Jobs[job].Submitted.Seconds())
}

func (g *grid) judge() {
	first, last, sum := math.MaxInt, 0, 0
	for j := range g.w.Jobs {
		at, end := g.submitted(j), slices.Max(g.end[j])
		first, last, sum = min(first, at), max(last, end), sum+end-at
	}
	g.makespan, g.sum = min(g.makespan, last-first), min(g.sum, sum)
}

// Branch and bound finds the same optimum as trying all start times, and no bound is above it.
func TestOptimumAgainstAllStartTimes(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	for seed := range uint64(runs) {
		w, seconds := gridWorkload(rand.New(rand.NewPCG(seed, 7)))
		for _, elastic := range []bool{false, true} {
			nodes := sim.Uniform(1+int(seed%2), resource.Of(4*resource.Core, 6))
			g := grid{w: w, nodes: nodes, elastic: elastic, seconds: seconds}
			makespan, sum := g.solve()
			x := newOptimum(w, nodes, elastic)
			if m, s := x.solve(true), x.solve(false); m != makespan || s != sum {
				t.Fatalf("seed %d, elastic %v: branch and bound finds %v and %v, trying all start times %v and %v\n%+v", seed,
					elastic, m, s, makespan, sum, w)
			}
			b := Of(w, nodes, elastic, Options{Iterations: DefaultIterations})
			if mean := sum / time.Duration(len(w.Jobs)); b.Makespan > makespan || b.AverageJobRuntime > mean {
				t.Fatalf("seed %d, elastic %v: bounds %+v, the best are %v and %v\n%+v", seed, elastic, b, makespan, mean, w)
			}
		}
	}
}
