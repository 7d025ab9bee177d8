package leveling

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
)

// Cost is what a schedule comes to, summed over all intervals and sets.
type Cost struct {
	// Idle is F, Over is O (equations 4 and 5): amounts over one interval.
	Idle, Over resource.Amount
	// Suspensions is S (equation 7), Delay is L in intervals (equation 9).
	Suspensions, Delay int
}

// Value returns the part of equation 14 that depends on the schedule, O + α S + β L.
func (c Cost) Value(p *Problem) resource.Amount {
	return c.Over + resource.Amount(c.Suspensions)*p.Suspension + resource.Amount(c.Delay)*p.Delay
}

// Objective returns Z of equation 14 with the weight η of what is idle, 0 to 1; the paper has 0.4.
func (c Cost) Objective(p *Problem, eta float64) float64 {
	return float64(c.Value(p)) + float64(eta*float64(c.Idle-c.Over))
}

// Cost returns what a schedule comes to. runs says of each set and each interval whether the set runs. The error
// names the first constraint that the schedule violates.
func (p *Problem) Cost(runs [][]bool) (c Cost, err error) {
	if err := p.check(); err != nil {
		return Cost{}, err
	}
	if len(runs) != len(p.Sets) {
		return Cost{}, fmt.Errorf("a schedule of %d sets: must be of %d", len(runs), len(p.Sets))
	}
	load := append([]resource.Amount(nil), p.Fixed...)
	ends := make([]int, len(p.Sets))
	for j := range p.Sets {
		if ends[j], err = p.Sets[j].follow(runs[j], ends, load, &c); err != nil {
			return Cost{}, fmt.Errorf("set %d: %w", j, err)
		}
	}
	for _, a := range load {
		c.Idle += max(0, p.Capacity-a)
		c.Over += max(0, a-p.Capacity)
	}
	return c, nil
}

// follow adds the set's demand to load, and its suspensions and delay to c. It returns how many intervals pass until
// the set has ended. ends has that of the sets before it.
func (s *Set) follow(runs []bool, ends []int, load []resource.Amount, c *Cost) (end int, err error) {
	if len(runs) != len(load) {
		return 0, fmt.Errorf("a schedule of %d intervals: must be of %d", len(runs), len(load))
	}
	ready := s.Ready
	for _, m := range s.After {
		ready = max(ready, ends[m])
	}
	done, still := 0, s.Suspended
	for t, run := range runs {
		switch {
		case done == len(s.Demand) && run:
			return 0, fmt.Errorf("runs in interval %d after its %d intervals of work", t, done)
		case done == len(s.Demand):
			continue
		case !run && done < s.Shuffle:
			return 0, fmt.Errorf("stands still in interval %d of its shuffle", t)
		case !run && !still:
			c.Suspensions++
		case run && done >= s.Shuffle && t < ready:
			return 0, fmt.Errorf("runs in interval %d, before interval %d", t, ready)
		}
		if still = !run; run {
			load[t] += s.Demand[done]
			done, end = done+1, t+1
		}
	}
	if done < len(s.Demand) || end > len(s.Demand)+s.Float {
		return 0, fmt.Errorf("has done %d of %d intervals of work after %d: must end within %d", done, len(s.Demand), end,
			len(s.Demand)+s.Float)
	}
	c.Delay += end - len(s.Demand)
	return end, nil
}
