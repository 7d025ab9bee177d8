package leveling

// mostSweeps bounds how often each set is moved in a descent.
const mostSweeps = 20

// descend improves a schedule by moving one set at a time to where it costs least while the other sets stay, until
// none can be improved, and keeps the result if it is the best. runs must satisfy all constraints; it is changed.
func (g *program) descend(runs [][]bool) {
	ends, costs := make([]int, len(runs)), make([]int64, len(runs))
	clear(g.load)
	shifts := int64(0)
	for j := range runs {
		for t, run := range runs[j] {
			if run {
				ends[j] = t + 1
			}
		}
		costs[j] = g.sets[j].shiftCost(runs[j], ends[j])
		shifts += costs[j]
		g.sets[j].addTo(g.load, runs[j])
	}
	value := g.over(g.load) + shifts
	for sweep, since := 0, 0; sweep < mostSweeps && since < len(runs); sweep++ {
		for j := range runs {
			w := &g.sets[j]
			shifts -= costs[j]
			g.remove(w, runs[j])
			ends[j] = g.respond(j, runs, ends)
			w.addTo(g.load, runs[j])
			costs[j] = w.shiftCost(runs[j], ends[j])
			shifts += costs[j]
			if v := g.over(g.load) + shifts; v < value {
				value, since = v, 0
			} else {
				since++
			}
		}
	}
	g.keep(runs, value)
}

// remove subtracts the demand of a set's schedule from load.
func (g *program) remove(w *window, runs []bool) {
	done := 0
	for t, run := range runs {
		if run {
			g.load[t] -= w.demand[done]
			done++
		}
	}
}

// respond makes runs[j] the cheapest schedule of the set together with load, which has the demand of all other sets,
// and returns when it ends.
func (g *program) respond(j int, runs [][]bool, ends []int) (end int) {
	w := &g.sets[j]
	ready, float := w.ready, w.float
	for _, m := range w.after {
		ready = max(ready, ends[m])
	}
	for _, k := range w.before {
		float = min(float, g.sets[k].firstShifted(runs[k])-len(w.demand))
	}
	run := func(t, done int) int64 {
		other := g.excess[t] + g.load[t]
		return (max(0, other+w.demand[done]) - max(0, other)) * one
	}
	w.fill(g.tables[j], ready, float, run)
	return w.trace(g.tables[j], ready, float, run, runs[j])
}

// firstShifted returns the interval in which a schedule does the first work after the shuffle.
func (w *window) firstShifted(runs []bool) int {
	done := 0
	for t, run := range runs {
		if run && done == w.shuffle {
			return t
		}
		if run {
			done++
		}
	}
	return len(runs)
}

// earliest makes runs the schedule in which everything runs as early as it may.
func (g *program) earliest(runs [][]bool) {
	ends := make([]int, len(runs))
	for j := range runs {
		clear(runs[j])
		w := &g.sets[j]
		ready := w.ready
		for _, m := range w.after {
			ready = max(ready, ends[m])
		}
		for done, t := 0, 0; done < len(w.demand); t++ {
			if done < w.shuffle || t >= ready {
				runs[j][t] = true
				done, ends[j] = done+1, t+1
			}
		}
	}
}
