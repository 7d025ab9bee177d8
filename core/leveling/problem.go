// Package leveling smooths the demand on a node by moving work of tasks that can wait: resource leveling, as in ECS
// (Y. Xu and others, "Improving Utilization and Parallelism of Hadoop Cluster by Elastic Containers").
//
//	tasks of a node --Short--> which stay as they are --Detector--> whether to level --Solve--> what stands still when
//
// Everything is a pure function of its arguments: the same problem and the same budget give the same schedule, on every
// processor.
package leveling

import (
	"errors"
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
)

// Problem is the 0-1 program of equation 14: when which set of tasks runs, over a window of intervals of equal
// length, so that the least of one resource is over-allocated. Intervals count from 0; the paper's count from 1.
//
// The program minimises
//
//	sum over intervals of (η F + (1-η) O), plus α S and β L of each set
//
// where F is what of the capacity is idle and O what is demanded in excess of it. A set demands the same in total
// whenever it runs, so that the sum of F - O is the same for all schedules, and the sum above is η times that plus O
// + α S + β L. Hence η decides nothing and is not here; Cost.Objective has it.
type Problem struct {
	// Capacity is C, what the node has in each interval, at least 0.
	Capacity resource.Amount
	// Fixed is what is demanded in each interval by what does not move, such as critical and short tasks; each at least
	// 0. Its length is the number of intervals, 1 to MostIntervals.
	Fixed []resource.Amount
	Sets  []Set
	// Suspension and Delay are α, the cost of a suspension, and β, the cost of an interval of delay, at least 0: as
	// amounts of the resource over one interval. The paper's 0.3 and 0.05 are of the node's capacity, or of a core (see
	// decision 43).
	Suspension, Delay resource.Amount
}

// Set is tasks that move together: one task, or all of a kind.
type Set struct {
	// Demand is what the set demands in each interval in which it runs, by the work it has done: progress. Its length is
	// the duration D, at least 1. Equal values are the other reading of R_jt, a demand per set.
	Demand []resource.Amount
	// Float is TF, the intervals by which the set may end late; D + TF is at most the number of intervals.
	Float int
	// Shuffle is how many intervals of work the set does first, without a pause (equation 12); 0 to D.
	Shuffle int
	// Ready is the first interval in which work after Shuffle may be done; 0 to the number of intervals.
	Ready int
	// After are the indices of sets that must have ended before work after Shuffle is done (equations 11 and 13): the
	// maps of a reduce. Each is less than the set's own index.
	After []int
	// Suspended says that the set does not run now: it was not started, or is suspended. That it goes on waiting at first
	// is no suspension then. In equation 7 the first start of a set that waits at first is one.
	Suspended bool
}

// What a Problem may have at most.
const (
	MostIntervals = 240
	MostSets      = 1000
	// MostDemand bounds the sum of capacity, of all that is demanded, and of a suspension and a delay per interval and
	// set.
	MostDemand resource.Amount = 1 << 48
)

// ErrImpossible is returned by Solve if no schedule satisfies the constraints: some set has too little float for the
// sets that it must wait for.
var ErrImpossible = errors.New("no schedule: a set has too little float for the sets that it waits for")

// check returns what is wrong with the fields of p.
func (p *Problem) check() error {
	if n := len(p.Fixed); n < 1 || n > MostIntervals {
		return fmt.Errorf("%d intervals: must be 1 to %d", n, MostIntervals)
	}
	if len(p.Sets) > MostSets {
		return fmt.Errorf("%d sets: must be at most %d", len(p.Sets), MostSets)
	}
	sum := resource.Amount(0)
	add := func(what string, a resource.Amount, times int) error {
		if a < 0 || a > (MostDemand-sum)/resource.Amount(times) {
			return fmt.Errorf("%s %d: must be at least 0, and all amounts at most %d together", what, a, MostDemand)
		}
		sum += a * resource.Amount(times)
		return nil
	}
	err := errors.Join(
		add("capacity", p.Capacity, len(p.Fixed)),
		add("suspension", p.Suspension, len(p.Fixed)*(len(p.Sets)+1)),
		add("delay", p.Delay, len(p.Fixed)*(len(p.Sets)+1)))
	for _, a := range p.Fixed {
		err = errors.Join(err, add("fixed", a, 1))
	}
	for j := range p.Sets {
		if wrong := p.Sets[j].check(j, len(p.Fixed)); wrong != nil {
			return fmt.Errorf("set %d: %w", j, wrong)
		}
		for _, a := range p.Sets[j].Demand {
			err = errors.Join(err, add("demand", a, 1))
		}
	}
	return err
}

// check returns what is wrong with set j of a problem.
func (s *Set) check(j, intervals int) error {
	d := len(s.Demand)
	switch {
	case d < 1 || d > intervals:
		return fmt.Errorf("demand of %d intervals: must be 1 to %d", d, intervals)
	case s.Float < 0 || s.Float > intervals-d:
		return fmt.Errorf("float %d: must be 0 to %d", s.Float, intervals-d)
	case s.Shuffle < 0 || s.Shuffle > d:
		return fmt.Errorf("shuffle %d: must be 0 to %d", s.Shuffle, d)
	case s.Ready < 0 || s.Ready > intervals:
		return fmt.Errorf("ready %d: must be 0 to %d", s.Ready, intervals)
	}
	for _, m := range s.After {
		if m < 0 || m >= j {
			return fmt.Errorf("after %d: must be 0 to %d", m, j-1)
		}
	}
	return nil
}
