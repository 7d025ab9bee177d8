package leveling

import "math"

// Costs are integers: units of amounts, times one where prices take part. Hence they are exact, and the same
// everywhere.
const (
	// one is the price at which a unit of demand costs as much as a unit of over-allocation.
	one = 1 << 10
	// forbidden is more than any cost, and can be added up a few times.
	forbidden = math.MaxInt64 / 8
)

// window is a set with the times in which its work can be done in some schedule.
type window struct {
	demand  []int64 // by work done, in units
	float   int     // how often it may stand still at most
	shuffle int
	ready   int
	still   bool
	after   []int
	before  []int // sets that must wait for this one
	// suspend and delay are α and β, in units times one.
	suspend, delay int64
}

// latest returns after how many intervals the set has ended at the latest.
func (w *window) latest() int { return len(w.demand) + w.float }

// at returns the index in a table of: t intervals are over, the set stood still in idle of them, and does so now or
// not.
func (w *window) at(t, idle, still int) int { return (t*(w.float+1)+idle)*2 + still }

// cells returns the length of a table.
func (w *window) cells() int { return (w.latest() + 1) * (w.float + 1) * 2 }

// moves returns whether the set may run and may stand still in interval t, after done intervals of work, if it can do
// work after its shuffle from ready on and stands still at most float times.
func (w *window) moves(t, done, ready, float int) (run, wait bool) {
	return done < w.shuffle || t >= ready, done >= w.shuffle && t-done < float
}

// fill writes the least cost of all that is to come into every cell of table. run returns the cost of doing the work
// after done intervals of it in interval t.
//
// A schedule of one set depends on how often the set stood still and whether it does: the work done and the delay
// follow.
func (w *window) fill(table []int64, ready, float int, run func(t, done int) int64) {
	d := len(w.demand)
	for t := w.latest(); t >= 0; t-- {
		for idle := max(0, t-d); idle <= min(t, w.float); idle++ {
			done := t - idle
			moving := w.at(t, idle, 0)
			if done == d {
				table[moving], table[moving+1] = 0, 0
				continue
			}
			mayRun, mayWait := w.moves(t, done, ready, float)
			runs, waits := int64(forbidden), int64(forbidden)
			if mayRun {
				runs = min(forbidden, run(t, done)+table[w.at(t+1, idle, 0)])
			}
			if mayWait {
				waits = min(forbidden-w.suspend, w.delay+table[w.at(t+1, idle+1, 1)])
			}
			table[moving], table[moving+1] = min(runs, waits+w.suspend), min(runs, waits)
		}
	}
}

// start returns the cell in which the set is at first.
func (w *window) start() int {
	if w.still {
		return w.at(0, 0, 1)
	}
	return w.at(0, 0, 0)
}

// trace writes the cheapest schedule of a filled table to runs, and returns when it ends. Of equally cheap ones it is
// the one that runs first.
func (w *window) trace(table []int64, ready, float int, run func(t, done int) int64, runs []bool) (end int) {
	clear(runs)
	for t, idle := 0, 0; t-idle < len(w.demand); t++ {
		done := t - idle
		mayRun, mayWait := w.moves(t, done, ready, float)
		still := t > 0 && !runs[t-1] || t == 0 && w.still
		wait := int64(forbidden)
		if mayWait {
			wait = w.delay + table[w.at(t+1, idle+1, 1)]
			if !still {
				wait += w.suspend
			}
		}
		if mayRun && run(t, done)+table[w.at(t+1, idle, 0)] <= wait {
			runs[t], end = true, t+1
		} else {
			idle++
		}
	}
	return end
}
