package bound

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// chain is a job with the jobs that wait for it, one after the other. Their run times add up to the end of the last job
// less the first submission, so a chain is treated as one job with the stages of all.
type chain struct {
	release float64 // of the first job, seconds
	stages  []stage
	alone   float64   // run time with the cluster to itself
	work    []float64 // per row, seconds of the whole cluster
}

// stage is the least demands of the tasks of a stage. Times are in seconds.
type stage struct {
	ideal   resource.Vector
	parents []int
	count   float64   // tasks per entry of times
	times   []float64 // least run time of each task; one entry stands for all tasks if they are alike
	longest float64
	head    float64   // least time from the release of the chain to the start of a task
	tail    float64   // least time from the end of the stage to the end of the chain
	work    []float64 // per row, seconds of the whole cluster
	// even is the work if each task, in proportion to its run time, did only as much as the task that does least.
	even  []float64
	sizes []choice
	real  []float64 // run time of each task at ideal memory
	// used is what each task uses of each resource over its phases at least, amount × seconds; nil unless
	// Options.ByPhase.
	used [][resource.NumKinds]float64
	// resizable is set for FLEX containers: their memory changes during their life, and does not count.
	resizable bool
}

// choice is an amount of memory that a task may be granted, and its slowdown.
type choice struct {
	memory   resource.Amount
	slowdown float64
}

// truths returns the truths of the tasks of a stage; a single one stands for all tasks.
func truths(j *workload.Job, i int) []workload.TaskTruth {
	if i >= len(j.Truth) || !j.Truth[i].Differs() {
		return []workload.TaskTruth{j.Task(i, 0)}
	}
	all, t := make([]workload.TaskTruth, j.Stages[i].Tasks), &j.Truth[i]
	for n := range all {
		all[n] = j.Task(i, n)
		warm := all[n].Duration
		for _, w := range []workload.Warmth{workload.First, workload.Fresh} { // the executor on which it is shortest
			all[n].Duration = min(all[n].Duration, t.DurationIn(w, n, warm))
		}
	}
	return all
}

// stageOf returns a stage without its work and its place in the chain.
func stageOf(j *workload.Job, i int, elastic bool, o Options) stage {
	s := &j.Stages[i]
	anySize := o.AnySize || o.ByPhase
	st := stage{ideal: s.Ideal, resizable: j.Class == cluster.Flex || anySize}
	if s.StartShare == 0 { // else its tasks may do a part of their work before
		st.parents = append(st.parents, s.Parents...)
	}
	if s.Coordinator {
		return st
	}
	all := truths(j, i)
	st.count = float64(s.Tasks) / float64(len(all))
	least := s.Ideal[resource.Memory]
	switch {
	case anySize:
		least = 1
	case elastic && s.Elastic():
		least = s.MinMemory
	}
	known := map[resource.Amount]float64{}
	for _, t := range all {
		slowdown, seen := known[t.IdealMemory]
		if !seen {
			var choices []choice
			choices, slowdown = choicesOf(t.Elasticity, t.IdealMemory, least, st.most(s, t.IdealMemory))
			known[t.IdealMemory] = slowdown
			st.sizes = append(st.sizes, choices...)
		}
		// A simulation rounds the length of each phase to whole nanoseconds.
		real := max(0, t.Duration.Seconds()-1e-9*float64(len(t.Phases)))
		d := leastTime(real, slowdown)
		st.real = append(st.real, real)
		st.times = append(st.times, d)
		st.longest = max(st.longest, d)
		if o.ByPhase {
			st.used = append(st.used, usedBy(&t, s.Ideal, slowdown))
		}
	}
	st.sizes = undominated(st.sizes)
	return st
}

// usedBy returns what a task uses of each resource over its phases, amount × seconds, if its slowdown is at least the
// given one. A slower task reads and writes the same bytes; a simulation rounds its rates to whole bytes per second.
func usedBy(t *workload.TaskTruth, ideal resource.Vector, slowdown float64) (used [resource.NumKinds]float64) {
	const rounding = 1e4 // bytes per second at full speed, of a task slowed down several thousand times
	phases := t.Phases
	total, _ := workload.SumPhases(phases)
	if total == 0 {
		whole := cluster.Phase{Duration: t.Duration, Demand: ideal}
		if len(phases) > 0 {
			whole.Demand = phases[0].Demand
		}
		phases, total = []cluster.Phase{whole}, t.Duration
	}
	if total == 0 {
		return used
	}
	stretch := float64(t.Duration) / float64(total)
	for _, p := range phases {
		length := max(0, p.Duration.Seconds()*stretch-1e-9)
		for k, a := range p.Demand {
			if resource.Kind(k).IsRate() {
				used[k] += length * max(0, float64(a)-rounding)
			} else {
				used[k] += max(0, length*min(1, slowdown)-1e-3) * float64(a)
			}
		}
	}
	return used
}

// most returns the largest memory that is of use to a task which runs unhindered with ideal.
func (st *stage) most(s *cluster.Stage, ideal resource.Amount) resource.Amount {
	given := s.Ideal[resource.Memory]
	switch {
	case !st.resizable:
		return given
	case s.MaxMemory > 0:
		return s.MaxMemory
	}
	return max(given, ideal)
}

// leastTime returns a run time at a slowdown. A slowed-down run takes whole milliseconds, rounded down.
func leastTime(d, slowdown float64) float64 {
	if slowdown == 1 {
		return d
	}
	return max(0, d*slowdown-1e-3)
}

// choicesOf returns amounts of memory that include one with the least size × slowdown, for every size function of a row
// without jumps, and the least slowdown.
func choicesOf(e *cluster.Elasticity, ideal, least, most resource.Amount) (choices []choice, slowdown float64) {
	sizes, complete := promising(e, ideal, least, most)
	slowdown = math.Inf(1)
	for _, m := range sizes {
		s := e.Slowdown(ideal, m)
		slowdown = min(slowdown, s)
		choices = append(choices, choice{m, s})
	}
	if e.Kind == cluster.Points && least < most {
		// A measured profile may fall in a straight line up to a jump of a size: any size may come with the least
		// slowdown.
		choices = append(choices, segments(e, ideal, least, most)...)
	}
	if !complete {
		choices = append(choices, choice{least, 1}) // saw-teeth only slow tasks down
		slowdown = min(slowdown, 1)
	}
	return choices, slowdown
}

// segments returns, for each of a hundred equal ranges of memory, the range's least memory with its least slowdown: a
// lower bound for every memory in the range.
func segments(e *cluster.Elasticity, ideal, least, most resource.Amount) (choices []choice) {
	const ranges = 100
	for i := resource.Amount(0); i < ranges; i++ {
		from, to := least+(most-least)/ranges*i, least+(most-least)/ranges*(i+1)
		if i == ranges-1 {
			to = most
		}
		s := min(e.Slowdown(ideal, from), e.Slowdown(ideal, to))
		for _, p := range e.Points {
			if p.Memory >= from && p.Memory <= to {
				s = min(s, p.Slowdown)
			}
		}
		if ideal > from && ideal <= to {
			s = min(s, e.Slowdown(ideal, ideal-1))
		}
		choices = append(choices, choice{from, s})
	}
	return choices
}

// undominated leaves out choices that have no less memory and no less time than another choice.
func undominated(all []choice) (best []choice) {
	slices.SortFunc(all, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.memory, b.memory), cmp.Compare(a.slowdown, b.slowdown))
	})
	for _, c := range all {
		if len(best) == 0 || c.slowdown < best[len(best)-1].slowdown {
			best = append(best, c)
		}
	}
	return best
}

// measure computes the work of a stage in every row.
func (st *stage) measure(rows []row) {
	st.work, st.even = make([]float64, len(rows)), make([]float64, len(rows))
	var total float64
	for _, d := range st.times {
		total += d
	}
	for k := range rows {
		r := &rows[k]
		if st.resizable && r.kind == resource.Memory {
			continue
		}
		least, loss := st.leastArea(r)
		rate := math.Inf(1)
		for i, d := range st.real {
			a := st.times[i] * least
			if r.kind == resource.Memory {
				a = max(0, d*least-loss)
			}
			if st.used != nil {
				a = st.used[i][r.kind] / float64(r.reference)
			}
			st.work[k] += st.count * a / r.total
			if st.times[i] > 0 {
				rate = min(rate, a/st.times[i])
			}
		}
		if total > 0 {
			st.even[k] = st.count * rate * total / r.total
		}
	}
}

// leastArea returns the least size × slowdown of a task in a row, and the largest loss of size × time by rounding of
// run times.
func (st *stage) leastArea(r *row) (least, loss float64) {
	most := r.size(min(st.ideal[r.kind], r.reference))
	if r.kind != resource.Memory {
		return most, 0
	}
	least = math.Inf(1)
	for _, c := range st.sizes {
		least = min(least, c.slowdown*r.size(min(c.memory, r.reference)))
	}
	if len(st.sizes) == 1 && st.sizes[0].slowdown == 1 {
		return least, 0
	}
	return least, 1e-3 * most
}

// mostSizes is the largest number of sizes tried.
const mostSizes = 2000

// promising returns sizes from least to most that include the one with the least slowdown and the one with the least
// memory × slowdown; complete is false if there would be too many. Between two neighbours the slowdown rises with
// memory or stays, or it is a straight line, on which memory × slowdown has no minimum inside either: falling lines
// make it concave.
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
		// With k fills the least memory is 1/(k+1) of the ideal.
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
		// A profile need not reach slowdown 1; it ends just below ideal memory.
		add(ideal - 1)
	}
	return sizes, true
}

// percents returns the least size of each whole percent of ideal: the slowdown is constant within a percent.
func percents(ideal, least, most resource.Amount) (sizes []resource.Amount) {
	for percent := 1.0; percent <= 100; percent++ {
		// Where floating point is too coarse to find a percent's first byte, the neighbouring bytes are tried as well.
		m := resource.Amount(math.Ceil(percent * float64(ideal) / 100))
		for _, m := range []resource.Amount{m - 1, m, m + 1} {
			if m > least && m < most {
				sizes = append(sizes, m)
			}
		}
	}
	return sizes
}
