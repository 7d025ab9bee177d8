// Package bound computes lower bounds on the makespan and mean run time of every schedule of a workload, whatever the
// policy. It sees the truth.
//
// Launch delays, heartbeats, coordinators and the cost of contention are left out, so the best possible schedule lies
// above the bounds. A task that may be under-sized counts with the shortest run time and, separately for each row, the
// least size × time that any allowed memory gives: one memory need not give both, but no schedule takes less than the
// least of each.
//
// A container is assumed to keep its grant all its life, and to be granted from its least to its ideal memory, unless
// Options.AnySize or Options.ByPhase says otherwise. A FLEX container is granted its minimum, and its limit moves:
// its memory does not count, and it runs as with its maximum.
//
// A row is a way to count a resource (see row): its plain area, or with the sizes of tasks rounded by a dual feasible
// function, which sees that tasks larger than half a node cannot share a node.
//
// The makespan is at least the last end of jobs that each run alone (the critical path of a job, or its own area). Per
// row and time of submission, it is also at least that time plus all work submitted from then on. The mean run time is
// at least that of jobs that each run alone. Per row, it is also at least the mean on a machine which is given entirely
// to the job with the shortest remaining processing time, which is optimal there (Schrage, A proof of the optimality of
// the shortest remaining processing time discipline, 1968). The interval bound is a third bound on it.
//
// # The interval bound
//
// y[s](t) is the share of the work of stage s that is done per second at time t: at most that of all its tasks at once,
// and no more than the whole cluster can do; the work done per second takes at most one second in each row. If M[s] is
// the mean time at which the work of s is done, the integral of t × y[s](t), then its job ends no earlier than
//
//	M[s] + half a task's run time (or half the stage's work in a row) + the critical path after s,
//	the work-weighted mean of M over its stages + half of the job's work in a row, and
//	its release + its run time alone.
//
// The least sum of ends under these constraints is a linear program (compare Hall, Schulz, Shmoys, Wein, Scheduling to
// minimize average completion time, 1997; mean busy times: Goemans, 1997). Lagrangian relaxation of its rows gives a
// bound for any price of capacity at each time, and any weights of the constraints of a job: the relaxed optimum. The
// relaxed problem separates into one problem per stage, to do the stage's work at the cheapest times. Prices are
// straight lines in each of some intervals. Nothing is lost by leaving open where in an interval work is done: the
// price decides that.
//
// Prices and weights begin with the optimum of each row alone, which is known (see priceAlone), and are improved by
// subgradient steps; their number is fixed, so that the same input gives the same bound.
//
// Shortest remaining processing time remains as a bound of its own. On one row alone it is optimal. There the optimum
// of the program above is the rule to do the job with the least total work first (the objective is a sum over
// thresholds of work, and for each threshold it is best not to idle). That bound is lower where jobs with much work,
// but little remaining work, are overtaken: work of a preempted job counts at its middle, not at its end.
package bound

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/heap"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Options say which bounds are computed in addition to the cheap ones.
type Options struct {
	// Iterations is the number of steps of the interval bound; 0 leaves it out. DefaultIterations is a good choice.
	Iterations int
	// AnySize says that the policy gives containers sizes that no job requested. Then memory does not count.
	AnySize bool
	// ByPhase says that the policy may grant a task in each phase what it demands there, or less. Then a row counts what
	// tasks truly use over their phases, which no machine can exceed, instead of their ideal for life; memory does not
	// count, and neither does the interval bound, which needs even use over a task's life.
	ByPhase bool
}

// Value is one bound.
type Value struct {
	Name     string // what it counts
	Duration time.Duration
}

// Bounds are lower bounds for every schedule of a workload. The zero value is that of a workload without jobs.
type Bounds struct {
	// Makespan is the time from the first submission to the end of the last job: the largest of Makespans, named in
	// MakespanBy.
	Makespan   time.Duration
	MakespanBy string
	// AverageJobRuntime is the mean time from submission to end: the largest of Averages, named in AverageBy.
	AverageJobRuntime time.Duration
	AverageBy         string
	// Makespans and Averages are all bounds, in a fixed order; of the rows of one resource they contain the plain row and
	// the best other row.
	Makespans, Averages []Value
}

// Names of bounds that do not belong to a resource.
const (
	CriticalPath = "critical path"
	Interval     = "interval"
)

// Of returns bounds for w on nodes. elastic says whether the policy may start tasks with less than their ideal memory.
// A resource that some node lacks does not count. The package comment says what is counted.
func Of(w *workload.Workload, nodes []cluster.Node, elastic bool, o Options) Bounds {
	if len(w.Jobs) == 0 || len(nodes) == 0 {
		return Bounds{}
	}
	p := newProblem(w, nodes, elastic, o)
	var b Bounds
	last, alone := p.critical()
	b.addMakespan(CriticalPath, last-p.first)
	b.addAverage(CriticalPath, alone/float64(len(w.Jobs)))
	for from := 0; from < len(p.rows); {
		to := from + 1
		for to < len(p.rows) && p.rows[to].kind == p.rows[from].kind {
			to++
		}
		p.addRows(&b, from, to)
		from = to
	}
	if o.Iterations > 0 && !o.ByPhase {
		b.addAverage(Interval, (p.interval(o.Iterations, b.Makespan.Seconds())+p.aside)/float64(len(w.Jobs)))
	}
	return b
}

// addRows adds the bounds of rows from to to-1, which belong to one resource: of the plain resource, and of the best
// other row.
func (p *problem) addRows(b *Bounds, from, to int) {
	var makespan, average [2]float64
	var makespanBy, averageBy [2]string
	for k := from; k < to; k++ {
		which := min(k-from, 1)
		if m := p.lastByArea(k) - p.first; makespanBy[which] == "" || m > makespan[which] {
			makespan[which], makespanBy[which] = m, p.rows[k].String()
		}
		if a := p.shortestFirst(k) + p.aside; averageBy[which] == "" || a > average[which] {
			average[which], averageBy[which] = a, p.rows[k].String()
		}
	}
	for i := range makespan {
		if makespanBy[i] != "" {
			b.addMakespan(makespanBy[i], makespan[i])
			b.addAverage(averageBy[i], average[i]/float64(p.jobs))
		}
	}
}

func (b *Bounds) addMakespan(name string, seconds float64) {
	v := Value{name, roundDown(seconds)}
	b.Makespans = append(b.Makespans, v)
	if v.Duration > b.Makespan {
		b.Makespan, b.MakespanBy = v.Duration, name
	}
}

func (b *Bounds) addAverage(name string, seconds float64) {
	v := Value{name, roundDown(seconds)}
	b.Averages = append(b.Averages, v)
	if v.Duration > b.AverageJobRuntime {
		b.AverageJobRuntime, b.AverageBy = v.Duration, name
	}
}

// roundDown turns seconds into a Duration that is slightly shorter, so that rounding errors do not break a bound.
func roundDown(seconds float64) time.Duration {
	return max(0, time.Duration(timeline.Seconds(max(0, seconds*(1-1e-11)-1e-8))))
}

// problem is a workload on a cluster, as the bounds model it.
type problem struct {
	rows   []row
	jobs   int
	first  float64 // the earliest submission
	chains []chain // every job is in one of them, or aside
	// aside is the sum of the least run times of the jobs outside of chains: jobs that wait for a job which another job
	// in a chain waits for too, and their followers. The schedule decides when they are submitted.
	aside     float64
	byRelease []chain                     // the chains, first release first
	left      heap.Heap[float64, float64] // room for shortestFirst
	// latestFirst are all jobs with their earliest submission, the last first, for the makespan.
	latestFirst []chain
}

func newProblem(w *workload.Workload, nodes []cluster.Node, elastic bool, o Options) *problem {
	p := &problem{jobs: len(w.Jobs), first: math.Inf(1)}
	single := make([]chain, len(w.Jobs))
	var all []stage
	for i := range w.Jobs {
		for s := range w.Jobs[i].Stages {
			single[i].stages = append(single[i].stages, stageOf(&w.Jobs[i], s, elastic, o))
		}
		all = append(all, single[i].stages...)
	}
	p.rows = rowsOf(nodes, all)
	if o.ByPhase {
		p.rows = slices.DeleteFunc(p.rows, func(r row) bool { return r.shape != area || r.kind == resource.Memory })
	}
	for i := range single {
		for s := range single[i].stages {
			single[i].stages[s].measure(p.rows)
		}
		single[i].settle(len(p.rows))
	}
	for i := range single {
		single[i].release = release(w, single, i)
		p.first = min(p.first, single[i].release)
	}
	p.link(w, single)
	p.byRelease, p.left = slices.Clone(p.chains), make(heap.Heap[float64, float64], 0, len(p.chains))
	slices.SortFunc(p.byRelease, func(a, b chain) int { return cmp.Compare(a.release, b.release) })
	slices.SortFunc(single, func(a, b chain) int { return cmp.Compare(b.release, a.release) })
	p.latestFirst = single
	return p
}

// link makes chains of jobs that wait for each other. If several jobs wait for one, the chain continues with the first
// of them.
func (p *problem) link(w *workload.Workload, single []chain) {
	next := make([]int, len(single))
	for i := range next {
		next[i] = -1
	}
	for i := range single {
		if a := w.Jobs[i].After; a >= 0 && next[a] < 0 {
			next[a] = i
		}
	}
	for i := range single {
		a := w.Jobs[i].After
		if a >= 0 {
			if next[a] != i {
				for j := i; j >= 0; j = next[j] {
					p.aside += single[j].alone
				}
			}
			continue
		}
		c := single[i]
		if next[i] >= 0 {
			c.stages = nil
			for j := i; j >= 0; j = next[j] {
				c.follow(single[j].stages)
			}
			c.settle(len(p.rows))
		}
		p.chains = append(p.chains, c)
	}
}

// follow appends the stages of the next job: stages without parents wait for all stages so far.
func (c *chain) follow(stages []stage) {
	before := len(c.stages)
	for _, s := range stages {
		parents := make([]int, 0, len(s.parents))
		for _, q := range s.parents {
			parents = append(parents, q+before)
		}
		if len(parents) == 0 {
			for q := range before {
				parents = append(parents, q)
			}
		}
		s.parents = parents
		c.stages = append(c.stages, s)
	}
}

// settle computes the fields that follow from the stages.
func (c *chain) settle(rows int) {
	c.alone, c.work = 0, make([]float64, rows)
	done := make([]bool, len(c.stages))
	var order []int
	var visit func(i int)
	visit = func(i int) {
		if done[i] {
			return
		}
		done[i] = true
		s := &c.stages[i]
		s.head, s.tail = 0, 0
		for _, q := range s.parents {
			visit(q)
			s.head = max(s.head, c.stages[q].head+c.stages[q].longest)
		}
		order = append(order, i)
	}
	for i := range c.stages {
		visit(i)
		c.alone = max(c.alone, c.stages[i].head+c.stages[i].longest)
		for k, a := range c.stages[i].work {
			c.work[k] += a
		}
	}
	for _, i := range slices.Backward(order) {
		s := &c.stages[i]
		for _, q := range s.parents {
			c.stages[q].tail = max(c.stages[q].tail, s.tail+s.longest)
		}
	}
	for _, a := range c.work {
		c.alone = max(c.alone, a)
	}
}

// release returns the earliest time at which a job can be submitted, in seconds.
func release(w *workload.Workload, single []chain, i int) float64 {
	at := 0.0
	for w.Jobs[i].After >= 0 {
		i = w.Jobs[i].After
		at += single[i].alone
	}
	return at + w.Jobs[i].Submitted.Seconds()
}

// critical returns the last end if every job has the cluster to itself, and the sum of these run times, in seconds.
func (p *problem) critical() (last, sum float64) {
	for i := range p.latestFirst {
		last = max(last, p.latestFirst[i].release+p.latestFirst[i].alone)
	}
	for i := range p.chains {
		sum += p.chains[i].alone
	}
	return last, sum + p.aside
}

// lastByArea returns the largest of: a time of submission plus the work submitted from then on.
func (p *problem) lastByArea(k int) float64 {
	var last, work float64
	for i := range p.latestFirst {
		work += p.latestFirst[i].work[k]
		last = max(last, p.latestFirst[i].release+work)
	}
	return last
}

// shortestFirst returns the sum of run times if row k of the cluster were given entirely to the chain with the least
// remaining work.
func (p *problem) shortestFirst(k int) float64 {
	chains := p.byRelease
	left := p.left // jobs that are not done: remaining work in seconds, and time of submission
	sum, now := 0.0, 0.0
	for i := 0; i < len(chains) || len(left) > 0; {
		if len(left) == 0 {
			now = max(now, chains[i].release)
		}
		for i < len(chains) && chains[i].release <= now {
			left.Push(chains[i].work[k], uint64(i), chains[i].release)
			i++
		}
		until := math.Inf(1)
		if i < len(chains) {
			until = chains[i].release
		}
		if end := now + left[0].Key; end <= until {
			now = end
			sum += now - left.Pop().Value
		} else {
			left[0].Key -= until - now
			now = until
		}
	}
	return sum
}
