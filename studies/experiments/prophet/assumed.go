package prophet

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// variant is the usual assumptions with one that differs.
type variant struct {
	name string
	assumed
}

func variants() []variant {
	all := []variant{{"as usual", usual}}
	vary := func(name string, change func(*assumed)) {
		v := variant{name, usual}
		change(&v.assumed)
		all = append(all, v)
	}
	for _, n := range []int{2, 8} {
		vary(fmt.Sprintf("%d executors per application", n), func(a *assumed) { a.executors = n })
	}
	for _, size := range []resource.Amount{4, 12} {
		vary(fmt.Sprintf("%d GB per executor", size), func(a *assumed) { a.memory = size * resource.GB })
	}
	vary("half of all bytes and work", func(a *assumed) { a.amounts /= 2 })
	vary("twice all bytes and work", func(a *assumed) { a.amounts *= 2 })
	vary("half the rates per core", func(a *assumed) {
		a.diskPerCore, a.networkPerCore = a.diskPerCore/2, a.networkPerCore/2
	})
	for _, rate := range []resource.Amount{125, 160} {
		vary(fmt.Sprintf("NICs of %d MB/s", rate), func(a *assumed) { a.network = rate * resource.MB })
	}
	vary("over-allocation (O) loses nothing", func(a *assumed) { a.disk, a.incast = sim.Loss{}, sim.Loss{} })
	half, most := sim.Loss{Slope: 1, Floor: 0.1}, sim.Loss{Slope: 3, Floor: 0.1}
	vary("O loses half at twice the capacity", func(a *assumed) { a.disk, a.incast = half, half })
	vary("O loses three quarters at twice the capacity", func(a *assumed) { a.disk, a.incast = most, most })
	vary("arrivals of a real trace", func(a *assumed) { a.traced = true })
	vary("forecasts by linear SVR", func(a *assumed) { a.predicted = true })
	vary("forecasts by linear SVR, and O loses half", func(a *assumed) {
		a.predicted, a.disk, a.incast = true, half, half
	})
	return all
}

func prophetSweep(l *lab.Lab) (*lab.Findings, error) {
	all := schedulers()
	table := lab.NewTable("Makespan over Prophet's (median of the workloads, and range)", "assumption")
	pairs := lab.NewTable("The same, "+lab.InPairs, "assumption")
	data := lab.NewTable("makespans", "assumption", "scheduler", "run", "makespan_s")
	for _, c := range all[:len(all)-1] {
		table.Heads, pairs.Heads = append(table.Heads, c.Label), append(pairs.Heads, c.Label)
	}
	table.Heads = append(table.Heads, "Prophet's makespan", "median completion time, Prophet over CS")
	var gains, slower []float64 // by variant
	variants := variants()
	if l.Quick {
		variants = variants[len(variants)-3 : len(variants)-1] // arrivals and forecasts
	}
	for _, v := range variants {
		t, err := contest(l, v.name, all, &v.assumed)
		if err != nil {
			return nil, err
		}
		own, cs := t[lab.Place("Prophet", all)], t[lab.Place("CS", all)]
		row, pair := []string{v.name}, []string{v.name}
		for i, c := range all[:len(all)-1] {
			row = append(row, lab.AcrossTraces(lab.Ratios(lab.Values(t[i], makespan), lab.Values(own, makespan)), 2))
			pair = append(pair, lab.Paired(lab.Values(t[i], makespan), lab.Values(own, makespan)))
			for run, one := range t[i] {
				data.Put(v.name, c.Label, run, one.Makespan)
			}
		}
		for run, one := range own {
			data.Put(v.name, "Prophet", run, one.Makespan)
		}
		middle := func(t prophetTrial) float64 { return lab.Median(t.Completion) }
		table.Add(append(row, lab.AcrossTraces(lab.Values(own, makespan), 0)+" s",
			lab.AcrossTraces(lab.Ratios(lab.Values(own, middle), lab.Values(cs, middle)), 2))...)
		pairs.Add(pair...)
		gains = append(gains, 1-lab.Median(lab.Ratios(lab.Values(own, makespan), lab.Values(cs, makespan))))
		slower = append(slower, lab.Median(lab.Ratios(lab.Values(t[lab.Place("Tetris", all)], makespan), lab.Values(own,
			makespan))))
	}
	return &lab.Findings{Tables: []lab.Table{table, pairs}, Data: []lab.Table{data}, Claims: AssumedClaims(gains, slower)},
		nil
}

// AssumedClaims judges, by assumption, what Prophet saves of the makespan under CS, and how many times as long Tetris
// takes.
func AssumedClaims(gains, slower []float64) []lab.Claim {
	least, most := lab.Extremes(gains)
	shortest, longest := lab.Extremes(slower)
	return []lab.Claim{
		Paper.Stated("prophet/assumed", "cs").Judge(lab.Percent(least)+" to "+lab.Percent(most), lab.Within(least, 0.22,
			0.42) &&
			most <= 0.42, most >= 0.22),
		Paper.Stated("prophet/assumed", "tetris").Judge(fmt.Sprintf("%s to %s times as long", lab.Decimals(shortest, 2),
			lab.Decimals(longest, 2)), shortest >= 1.2 && longest <= 4.3, shortest > 1),
	}
}
