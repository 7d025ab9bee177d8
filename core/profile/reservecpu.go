package profile

import (
	"cmp"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// How much CPU is reserved for a run whose request was not stated. A reservation is a weight: a run may use what others
// leave, and gets what is reserved when it wants it.
const (
	// LeastReservedCPU is the least that is reserved, millicores: a program that waits all the time wakes up now and then.
	LeastReservedCPU = 50
	// UsualCPU is what is reserved for a program of which nothing is known, and the most that is reserved for one of
	// which something is: whoever wants more of it says so.
	UsualCPU = resource.Core
	// fullyUsed is the share of what would be reserved without it, from which on a lower bound counts: a run that used
	// less was not short of a reservation.
	fullyUsed = 0.9
	// wanted is how many times its use such a run counts: it wanted more, and how much more is unknown.
	wanted = 2
)

// ReserveCPU returns how much CPU to reserve for a run of app, millicores, and the evidence: the ReservedQuantile of
// the mean use of past runs while they ran, and a margin as that of Reserve. If no run is known that got all the CPU
// that it would have used, that is UsualCPU. Runs of which the use is a lower bound (see Run.AtLeast) never lower a
// reservation. One that used about as much as would be reserved without it counts twice that: it wanted more.
func (h *History) ReserveCPU(app App) (cpu resource.Amount, r cluster.ReservedCPU) {
	t, bounds := target{kind: resource.CPU, floor: trifles[resource.CPU]}, target{}
	if p := h.apps[app]; p != nil {
		for i := range p.runs {
			run := &p.runs[i]
			if run.Unknown.Has(resource.CPU) {
				continue
			}
			used, into := run.meanCPU(), &t
			if run.AtLeast.Has(resource.CPU) {
				into = &bounds
				r.AtLeast++
			}
			r.Runs++
			r.Most = max(r.Most, asAmount(used, resource.CPU))
			into.runs, into.values = append(into.runs, run), append(into.values, used)
			into.weight = append(into.weight, p.weight(run))
		}
	}
	n, off := len(t.runs), 0.0
	if n == 0 {
		return UsualCPU, r
	}
	if n > 1 {
		off, _ = missed(&t, math.Inf(1), func(i int) (float64, bool) { return t.median(0, i), true })
	}
	most := covering(t.values, t.weight, h.quantile())
	for _, i := range bounds.largestFirst() {
		if used := bounds.values[i]; used >= fullyUsed*most { // What is added is above most, and so cannot lower it.
			t.values, t.weight = append(t.values, wanted*used), append(t.weight, bounds.weight[i])
			most = covering(t.values, t.weight, h.quantile())
		}
	}
	cpu = asAmount(math.Ceil(most*(1+marginOf(n, off))), resource.CPU)
	return min(max(cpu, LeastReservedCPU), UsualCPU), r
}

// largestFirst returns the indexes of the values, the largest first.
func (t *target) largestFirst() []int {
	order := make([]int, len(t.values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.values[b], t.values[a]) })
	return order
}

// meanCPU returns what the run used of CPU in the mean, millicores.
func (r *Run) meanCPU() float64 {
	if r.CPU > 0 {
		return float64(r.CPU)
	}
	used, seconds := 0.0, 0.0
	for i := range r.Phases {
		used += float64(r.Phases[i].Demand[resource.CPU]) * r.Phases[i].Duration.Seconds()
		seconds += r.Phases[i].Duration.Seconds()
	}
	if seconds == 0 {
		return float64(r.Peak[resource.CPU])
	}
	return used / seconds
}
