package experiments

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
)

// prophetVariant is the usual assumptions with one that differs.
type prophetVariant struct {
	name string
	prophetAssumed
}

func prophetVariants() []prophetVariant {
	all := []prophetVariant{{"as usual", prophetUsual}}
	vary := func(name string, change func(*prophetAssumed)) {
		v := prophetVariant{name, prophetUsual}
		change(&v.prophetAssumed)
		all = append(all, v)
	}
	for _, n := range []int{2, 8} {
		vary(fmt.Sprintf("%d executors per application", n), func(a *prophetAssumed) { a.executors = n })
	}
	for _, size := range []resource.Amount{4, 12} {
		vary(fmt.Sprintf("%d GB per executor", size), func(a *prophetAssumed) { a.memory = size * resource.GB })
	}
	vary("half of all bytes and work", func(a *prophetAssumed) { a.amounts /= 2 })
	vary("twice all bytes and work", func(a *prophetAssumed) { a.amounts *= 2 })
	vary("half the rates per core", func(a *prophetAssumed) {
		a.diskPerCore, a.networkPerCore = a.diskPerCore/2, a.networkPerCore/2
	})
	for _, rate := range []resource.Amount{125, 160} {
		vary(fmt.Sprintf("NICs of %d MB/s", rate), func(a *prophetAssumed) { a.network = rate * resource.MB })
	}
	vary("over-allocation (O) loses nothing", func(a *prophetAssumed) { a.disk, a.incast = sim.Loss{}, sim.Loss{} })
	half, most := sim.Loss{Slope: 1, Floor: 0.1}, sim.Loss{Slope: 3, Floor: 0.1}
	vary("O loses half at twice the capacity", func(a *prophetAssumed) { a.disk, a.incast = half, half })
	vary("O loses three quarters at twice the capacity", func(a *prophetAssumed) { a.disk, a.incast = most, most })
	vary("arrivals of a real trace", func(a *prophetAssumed) { a.traced = true })
	vary("forecasts by linear SVR", func(a *prophetAssumed) { a.predicted = true })
	vary("forecasts by linear SVR, and O loses half", func(a *prophetAssumed) {
		a.predicted, a.disk, a.incast = true, half, half
	})
	return all
}

func prophetSweep(l *lab) (*Findings, error) {
	all := prophetSchedulers()
	table := newTable("Makespan over Prophet's (median of the workloads, and range)", "assumption")
	pairs := newTable("The same, "+inPairs, "assumption")
	data := newTable("makespans", "assumption", "scheduler", "run", "makespan_s")
	for _, c := range all[:len(all)-1] {
		table.Heads, pairs.Heads = append(table.Heads, c.Label), append(pairs.Heads, c.Label)
	}
	table.Heads = append(table.Heads, "Prophet's makespan", "median completion time, Prophet over CS")
	var gains, slower []float64 // by variant
	variants := prophetVariants()
	if l.quick {
		variants = variants[len(variants)-3 : len(variants)-1] // arrivals and forecasts
	}
	for _, v := range variants {
		t, err := prophetContest(l, v.name, all, &v.prophetAssumed)
		if err != nil {
			return nil, err
		}
		own, cs := t[place("Prophet", all)], t[place("CS", all)]
		row, pair := []string{v.name}, []string{v.name}
		for i, c := range all[:len(all)-1] {
			row = append(row, acrossTraces(ratios(values(t[i], makespan), values(own, makespan)), 2))
			pair = append(pair, paired(values(t[i], makespan), values(own, makespan)))
			for run, one := range t[i] {
				data.put(v.name, c.Label, run, one.Makespan)
			}
		}
		for run, one := range own {
			data.put(v.name, "Prophet", run, one.Makespan)
		}
		middle := func(t prophetTrial) float64 { return median(t.Completion) }
		table.add(append(row, acrossTraces(values(own, makespan), 0)+" s",
			acrossTraces(ratios(values(own, middle), values(cs, middle)), 2))...)
		pairs.add(pair...)
		gains = append(gains, 1-median(ratios(values(own, makespan), values(cs, makespan))))
		slower = append(slower, median(ratios(values(t[place("Tetris", all)], makespan), values(own, makespan))))
	}
	return &Findings{Tables: []Table{table, pairs}, Data: []Table{data}, Claims: assumedClaims(gains, slower)}, nil
}

// assumedClaims judges, by assumption, what Prophet saves of the makespan under CS, and how many times as long Tetris
// takes.
func assumedClaims(gains, slower []float64) []Claim {
	least, most := extremes(gains)
	shortest, longest := extremes(slower)
	return []Claim{
		stated("prophet/assumed", "cs").judge(percent(least)+" to "+percent(most), within(least, 0.22, 0.42) &&
			most <= 0.42, most >= 0.22),
		stated("prophet/assumed", "tetris").judge(fmt.Sprintf("%s to %s times as long", decimals(shortest, 2),
			decimals(longest, 2)), shortest >= 1.2 && longest <= 4.3, shortest > 1),
	}
}
