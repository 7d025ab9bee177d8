package bound

import (
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// optimum finds the best schedule of a tiny workload by branch and bound. It starts tasks one after the other, in the
// order of their start times, each with every useful size on every node, as early as possible from the start of the
// previous task: this yields every schedule in which no single task can start earlier. With up to three jobs, an
// earlier end never makes a schedule worse, even if jobs wait for other jobs. The search cuts off branches with bounds
// written here, not with those of the package, which are checked against the result.
type optimum struct {
	w        *workload.Workload
	nodes    []cluster.Node
	tasks    []tinyTask // each job after the jobs it waits for
	makespan bool       // the objective: the least makespan, or the least sum of run times
	best     time.Duration

	jobEnd   []time.Duration
	stageEnd [][]time.Duration
}

// tinyTask is a task in the search.
type tinyTask struct {
	job, stage int
	useful     []size // by falling memory
	shortest   time.Duration
	least      resource.Vector // least size × time, nanoseconds
	twin       bool            // equal to the previous task in all but its index

	placed     bool
	start, end time.Duration
	grant      resource.Vector
	node       int
}

// size is a memory that a task may get, and its true run time with that memory.
type size struct {
	memory resource.Amount
	run    time.Duration
}

// newOptimum requires nodes with equal capacities.
func newOptimum(w *workload.Workload, nodes []cluster.Node, elastic bool) *optimum {
	x := &optimum{w: w, nodes: nodes, jobEnd: make([]time.Duration, len(w.Jobs)),
		stageEnd: make([][]time.Duration, len(w.Jobs))}
	for j := range w.Jobs {
		x.stageEnd[j] = make([]time.Duration, len(w.Jobs[j].Stages))
		for s := range w.Jobs[j].Stages {
			for i := range w.Jobs[j].Stages[s].Tasks {
				t := newTinyTask(&w.Jobs[j], s, i, elastic)
				t.job = j
				t.twin = i > 0 && slices.Equal(t.useful, x.tasks[len(x.tasks)-1].useful)
				x.tasks = append(x.tasks, t)
			}
		}
	}
	return x
}

func newTinyTask(j *workload.Job, stage, index int, elastic bool) tinyTask {
	s := &j.Stages[stage]
	t := tinyTask{stage: stage, shortest: math.MaxInt64}
	most := s.Ideal[resource.Memory]
	from := most
	if elastic && s.Elastic() {
		from = s.MinMemory
	}
	t.least[resource.Memory] = math.MaxInt64
	for m := from; m <= most; m++ {
		d := trueDuration(j, stage, int32(index), m)
		if d >= t.shortest {
			continue // as slow as with less memory
		}
		t.shortest = d
		t.useful = append(t.useful, size{m, d})
		t.least[resource.Memory] = min(t.least[resource.Memory], m*resource.Amount(d))
	}
	t.least[resource.CPU] = s.Ideal[resource.CPU] * resource.Amount(t.shortest)
	slices.Reverse(t.useful)
	return t
}

// solve returns the least makespan, or the least sum of run times.
func (x *optimum) solve(makespan bool) time.Duration {
	x.makespan, x.best = makespan, math.MaxInt64
	x.search(0, -1, len(x.tasks))
	return x.best
}

// search places the remaining tasks, none before now nor, at now, before the task after last.
func (x *optimum) search(now time.Duration, last, left int) {
	value := x.atLeast(now)
	if value >= x.best {
		return
	}
	if left == 0 {
		x.best = value
		return
	}
	for i := range x.tasks {
		t := &x.tasks[i]
		if t.placed || (t.twin && !x.tasks[i-1].placed) {
			continue
		}
		from, ready := x.ready(t)
		if !ready {
			continue
		}
		for _, u := range t.useful {
			t.grant = x.w.Jobs[t.job].Stages[t.stage].Ideal.With(resource.Memory, u.memory)
			for t.node = range x.nodes {
				t.start = x.earliest(t, max(from, now))
				if t.start == now && i < last {
					continue // the other order has been or will be tried
				}
				t.end, t.placed = t.start+u.run, true
				x.search(t.start, i, left-1)
				t.placed = false
				if !x.occupied(t.node) {
					break // nodes without tasks are equivalent
				}
			}
		}
	}
}

func (x *optimum) occupied(node int) bool {
	return slices.ContainsFunc(x.tasks, func(t tinyTask) bool { return t.placed && t.node == node })
}

// ready returns when a task may start; ok is false if a task that it waits for is not placed yet.
func (x *optimum) ready(t *tinyTask) (from time.Duration, ok bool) {
	j := &x.w.Jobs[t.job]
	if from, ok = x.submitted(t.job); !ok {
		return 0, false
	}
	for i := range x.tasks {
		o := &x.tasks[i]
		if o.job != t.job || !slices.Contains(j.Stages[t.stage].Parents, o.stage) {
			continue
		}
		if !o.placed {
			return 0, false
		}
		from = max(from, o.end)
	}
	return from, true
}

func (x *optimum) submitted(job int) (at time.Duration, ok bool) {
	j := &x.w.Jobs[job]
	if j.After < 0 {
		return time.Duration(j.Submitted), true
	}
	for i := range x.tasks {
		if o := &x.tasks[i]; o.job == j.After {
			if !o.placed {
				return 0, false
			}
			at = max(at, o.end)
		}
	}
	return at, true
}

// earliest returns the first time from which the grant of t is free on its node. No placed task starts later than from,
// so that resources that are free once stay free.
func (x *optimum) earliest(t *tinyTask, from time.Duration) time.Duration {
	for {
		used, next := t.grant, time.Duration(math.MaxInt64)
		for i := range x.tasks {
			if o := &x.tasks[i]; o.placed && o.node == t.node && o.end > from {
				used, next = used.Add(o.grant), min(next, o.end)
			}
		}
		if used.FitsIn(x.nodes[t.node].Capacity) {
			return from
		}
		from = next
	}
}

// atLeast returns a lower bound of the makespan or of the sum of run times if all remaining tasks start at now or
// later; it is exact if no tasks remain.
func (x *optimum) atLeast(now time.Duration) time.Duration {
	var sum, last time.Duration
	first := time.Duration(math.MaxInt64)
	work := make([]resource.Vector, len(x.tasks))
	k := 0
	for j := range x.w.Jobs {
		job := &x.w.Jobs[j]
		submitted := time.Duration(job.Submitted)
		if job.After >= 0 {
			submitted = x.jobEnd[job.After]
		}
		_, certain := x.submitted(j)
		x.jobEnd[j] = 0
		var alone time.Duration
		for s := range job.Stages {
			from, path := submitted, time.Duration(0)
			for _, p := range job.Stages[s].Parents {
				// Stages have at most one parent, which has none.
				from = max(from, x.stageEnd[j][p])
				for i := range x.tasks {
					if o := &x.tasks[i]; o.job == j && o.stage == p {
						path = max(path, o.shortest)
					}
				}
			}
			x.stageEnd[j][s] = from
			for range job.Stages[s].Tasks {
				t := &x.tasks[k]
				end := t.end
				work[k] = t.least
				if t.placed {
					for r, a := range t.grant {
						work[k][r] = a * resource.Amount(max(0, t.end-now))
					}
				} else {
					end = max(from, now) + t.shortest
				}
				k++
				x.stageEnd[j][s] = max(x.stageEnd[j][s], end)
				alone = max(alone, path+t.shortest)
			}
			x.jobEnd[j] = max(x.jobEnd[j], x.stageEnd[j][s])
		}
		first, last = min(first, submitted), max(last, x.jobEnd[j])
		if certain {
			alone = x.jobEnd[j] - submitted
		}
		sum += alone
	}
	if !x.makespan {
		return sum
	}
	return max(last, now+x.drained(work)) - first
}

// drained returns how long the whole cluster takes for the given work.
func (x *optimum) drained(work []resource.Vector) (long time.Duration) {
	for _, r := range []resource.Kind{resource.CPU, resource.Memory} {
		var all, capacity resource.Amount
		for _, a := range work {
			all += a[r]
		}
		for i := range x.nodes {
			capacity += x.nodes[i].Capacity[r]
		}
		long = max(long, time.Duration((all+capacity-1)/capacity))
	}
	return long
}
