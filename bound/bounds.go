// Package bound says what no schedule of a workload can be better than.
package bound

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/trace"
)

// Bounds are what no schedule can be better than, whatever the policy. Launch delays, coordinators and the fact that tasks
// do not span nodes are left out, so that the best possible lies above.
type Bounds struct {
	// Makespan is the time from the first submission to the end of the last job.
	Makespan time.Duration
	// AverageJobRuntime is the mean time from submission to end.
	AverageJobRuntime time.Duration
}

// LowerBounds returns bounds for w on a cluster with the given capacity, the sum over its nodes; a resource with capacity 0
// does not count. Elastic says whether the policy may under-size tasks. A task that may be under-sized counts with the
// shortest run time and, separately, the least memory × time that any allowed memory gives: one memory need not give both,
// but each bound uses only one of them.
//
// Makespan is the larger of two: the last time at which a job could end if it ran alone; and, for each resource and each
// time of submission, that time plus all work submitted from then on over the capacity. The mean runtime is the larger of:
// the mean of running alone; and the mean if the cluster were one machine that could be given wholly to the job with the
// shortest remaining processing time, which is optimal there (per resource; jobs that wait for another keep the former).
func LowerBounds(w *trace.Workload, capacity resource.Vector, elastic bool) Bounds {
	if len(w.Jobs) == 0 {
		return Bounds{}
	}
	loads := make([]load, len(w.Jobs))
	for i := range w.Jobs {
		loads[i] = loadOf(&w.Jobs[i], capacity, elastic)
	}
	var last, alone float64
	first := math.Inf(1)
	for i := range loads {
		loads[i].release = release(w, loads, i)
		first = min(first, loads[i].release)
		last = max(last, loads[i].release+loads[i].alone)
		alone += loads[i].alone
	}
	mean := alone
	for k := range capacity {
		if capacity[k] > 0 {
			last = max(last, lastByArea(loads, k))
			mean = max(mean, shortestFirst(w, loads, k))
		}
	}
	return Bounds{Makespan: roundDown(last*(1-1e-12) - first), AverageJobRuntime: roundDown(mean / float64(len(w.Jobs)))}
}

// roundDown turns seconds into a Duration, a little less than that so that errors of rounding do not break a bound.
func roundDown(seconds float64) time.Duration {
	return time.Duration(timeline.Seconds(seconds * (1 - 1e-12)))
}

// load is what one job asks of the cluster at least. Times are seconds.
type load struct {
	release float64                    // the earliest submission
	alone   float64                    // run time with the cluster to itself
	work    [resource.NumKinds]float64 // time it would occupy the whole of each resource
}

func loadOf(j *trace.Job, capacity resource.Vector, elastic bool) load {
	var l load
	ends := make([]float64, len(j.Stages)) // of each stage, on its critical path; below 0 is not known yet
	longest := make([]float64, len(j.Stages))
	for i := range j.Stages {
		ends[i] = -1
		s := &j.Stages[i]
		if s.Coordinator {
			continue
		}
		least := leastUse(j, i, elastic)
		each := durations(j, i)
		alike := float64(s.Tasks) / float64(len(each))
		for _, d := range each {
			longest[i] = max(longest[i], least.time(d))
			for k := range capacity {
				if capacity[k] <= 0 {
					continue
				}
				area := least.time(d) * float64(s.Ideal[k])
				if resource.Kind(k) == resource.Memory {
					area = least.area(d)
				}
				l.work[k] += alike * area / float64(capacity[k])
			}
		}
	}
	for i := range j.Stages {
		l.alone = max(l.alone, criticalEnd(j.Stages, longest, ends, i))
	}
	for k := range l.work {
		l.alone = max(l.alone, l.work[k])
	}
	return l
}

// durations returns the real run times, in seconds at ideal memory, of the tasks of a stage; a single one stands for all.
func durations(j *trace.Job, stage int) []float64 {
	d := j.Stages[stage].Duration
	if stage < len(j.Truth) {
		t := &j.Truth[stage]
		if len(t.Durations) > 0 {
			all := make([]float64, len(t.Durations))
			for i, d := range t.Durations {
				all[i] = d.Seconds()
			}
			return all
		}
		if t.Duration > 0 {
			d = t.Duration
		}
	}
	return []float64{d.Seconds()}
}

// criticalEnd returns how long after the start of the job a stage can end at the earliest.
func criticalEnd(stages []cluster.Stage, longest, ends []float64, i int) float64 {
	if ends[i] >= 0 {
		return ends[i]
	}
	begin := 0.0
	for _, p := range stages[i].Parents {
		begin = max(begin, criticalEnd(stages, longest, ends, p))
	}
	ends[i] = begin + longest[i]
	return ends[i]
}

// use is the least that a task can take, over all memory that it may be given.
type use struct {
	slowdown float64 // least run time over run time at ideal memory
	memory   float64 // least memory × slowdown, bytes
	most     float64 // most memory, bytes
}

// time returns the least run time of a task that takes d seconds at ideal memory. The simulator rounds slowed run times
// down to whole milliseconds.
func (u use) time(d float64) float64 {
	if u.slowdown == 1 {
		return d
	}
	return max(0, d*u.slowdown-1e-3)
}

// area returns the least memory × time, in byte seconds, of a task that takes d seconds at ideal memory.
func (u use) area(d float64) float64 {
	if u.slowdown == 1 && u.memory == u.most {
		return d * u.most
	}
	return max(0, d*u.memory-1e-3*u.most)
}

func leastUse(j *trace.Job, stage int, elastic bool) use {
	s := &j.Stages[stage]
	most := s.Ideal[resource.Memory]
	ideal, profile := most, &s.Elasticity
	if stage < len(j.Truth) {
		if t := &j.Truth[stage]; t.IdealMemory > 0 {
			ideal = t.IdealMemory
		}
		if t := &j.Truth[stage]; t.Elasticity != nil {
			profile = t.Elasticity
		}
	}
	least := most
	if elastic && s.Elastic() {
		least = s.MinMemory
	}
	u := use{slowdown: math.Inf(1), memory: math.Inf(1), most: float64(most)}
	try := func(memory resource.Amount, slowdown float64) {
		u.slowdown = min(u.slowdown, slowdown)
		u.memory = min(u.memory, slowdown*float64(memory))
	}
	sizes, complete := promising(profile, ideal, least, most)
	for _, m := range sizes {
		try(m, profile.Slowdown(ideal, m))
	}
	if !complete {
		try(least, 1) // saw-teeth only slow down
	}
	return u
}

// mostSizes is how many sizes are tried at most.
const mostSizes = 2000

// promising returns sizes from least to most among which are the one with the least slowdown and the one with the least
// memory × slowdown; complete is false if they would be too many. Between two neighbours the slowdown rises with memory or
// stays, or it is a straight line, on which memory × slowdown has no minimum inside either: falling lines make it concave.
func promising(e *cluster.Elasticity, ideal, least, most resource.Amount) (sizes []resource.Amount, complete bool) {
	sizes = []resource.Amount{least, most}
	add := func(m resource.Amount) {
		if m > least && m < most {
			sizes = append(sizes, m)
		}
	}
	add(min(ideal, most)) // unhindered from here on
	switch e.Kind {
	case cluster.SawTooth:
		// With k fills the least memory is a k+1st of the ideal.
		for k := resource.Amount(2); ; k++ {
			m := (ideal + k - 1) / k
			if m <= least {
				break
			}
			if k > mostSizes {
				return sizes, false
			}
			add(m)
		}
	case cluster.SawToothTable:
		sizes = append(sizes, percents(ideal, least, most)...)
	case cluster.Points:
		for _, p := range e.Points {
			add(p.Memory)
		}
		// A profile need not end at slowdown 1; it ends just below ideal memory.
		add(ideal - 1)
	}
	return sizes, true
}

// percents returns the least size of each whole percent of ideal: the slowdown is the same in all of one.
func percents(ideal, least, most resource.Amount) (sizes []resource.Amount) {
	for percent := 1.0; percent <= 100; percent++ {
		// Where floating point is too coarse to find a percent's first byte, the bytes around it are tried as well.
		m := resource.Amount(math.Ceil(percent * float64(ideal) / 100))
		for _, m := range []resource.Amount{m - 1, m, m + 1} {
			if m > least && m < most {
				sizes = append(sizes, m)
			}
		}
	}
	return sizes
}

// release returns when a job can be submitted at the earliest, in seconds. Jobs come after those that they wait for, or
// their release is found on the way.
func release(w *trace.Workload, loads []load, i int) float64 {
	at := 0.0
	for w.Jobs[i].After >= 0 {
		i = w.Jobs[i].After
		at += loads[i].alone
	}
	return at + w.Jobs[i].Submitted.Seconds()
}

// lastByArea returns the largest of: a time of submission plus the work submitted from then on.
func lastByArea(loads []load, k int) float64 {
	latestFirst := slices.Clone(loads)
	slices.SortFunc(latestFirst, func(a, b load) int { return cmp.Compare(b.release, a.release) })
	var last, work float64
	for _, l := range latestFirst {
		work += l.work[k]
		last = max(last, l.release+work)
	}
	return last
}

// shortestFirst returns the sum of run times if the cluster's resource k went wholly to the job with the least work left.
// Jobs that wait for another run alone, since when they are submitted depends on the schedule.
func shortestFirst(w *trace.Workload, loads []load, k int) float64 {
	var sum float64
	var jobs []load
	for i := range loads {
		if w.Jobs[i].After >= 0 {
			sum += loads[i].alone
		} else {
			jobs = append(jobs, loads[i])
		}
	}
	slices.SortFunc(jobs, func(a, b load) int { return cmp.Compare(a.release, b.release) })
	var left remaining
	now := 0.0
	for i := 0; i < len(jobs) || len(left) > 0; {
		if len(left) == 0 {
			now = max(now, jobs[i].release)
		}
		for i < len(jobs) && jobs[i].release <= now {
			heap.Push(&left, rest{jobs[i].work[k], jobs[i].release})
			i++
		}
		until := math.Inf(1)
		if i < len(jobs) {
			until = jobs[i].release
		}
		if end := now + left[0].work; end <= until {
			now = end
			sum += now - left[0].release
			heap.Pop(&left)
		} else {
			left[0].work -= until - now
			now = until
		}
	}
	return sum
}

// rest is a job that is not done: seconds of work left, and when it was submitted.
type rest struct{ work, release float64 }

// remaining is a heap with the least work left on top.
type remaining []rest

func (r remaining) Len() int           { return len(r) }
func (r remaining) Less(a, b int) bool { return r[a].work < r[b].work }
func (r remaining) Swap(a, b int)      { r[a], r[b] = r[b], r[a] }

// Push implements heap.Interface.
func (r *remaining) Push(x any) { *r = append(*r, x.(rest)) }

// Pop implements heap.Interface.
func (r *remaining) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}
