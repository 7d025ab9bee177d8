package yarnme

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fig6aTrial is one trace of one configuration under all contenders.
type fig6aTrial struct {
	YARN       outcome   `json:"yarn"`
	Unreserved outcome   `json:"unreserved"`
	Elastic    []outcome `json:"elastic"` // per penalty
}

// ratios of YARN-ME to others, per curve and configuration, with one value per trace.
type fig6aRatios struct{ yarn, unreserved [][]float64 }

func fig6a(l *lab.Lab, elasticOne lab.Contender, endsOnly bool) (*lab.Findings, error) {
	data := lab.NewTable("traces", "distribution", "tasks_max", "memory_max_gb", "duration_max_s", "run", "penalty",
		"yarn_job_runtime_s", "yarn_unreserved_job_runtime_s", "yarn_me_job_runtime_s", "yarn_makespan_s",
		"yarn_me_makespan_s",
		"yarn_memory", "yarn_me_memory", "yarn_me_elastic")
	found := map[curve]*fig6aRatios{}
	for _, r := range tableTwo {
		grid := r.grid(endsOnly)
		if l.Quick {
			grid = grid[:2]
		}
		if l.Part {
			grid = []configuration{grid[0], grid[len(grid)-1]}
		}
		for _, p := range penalties {
			found[curve{r.dist, p}] = &fig6aRatios{make([][]float64, len(grid)), make([][]float64, len(grid))}
		}
		err := lab.Each(l, r.dist.String(), len(grid)*l.Runs, func(i int) (fig6aTrial, error) {
			return fig6aRun(l.Size(), grid[i/l.Runs], l.RunSeed(i%l.Runs), elasticOne)
		}, func(i int, t fig6aTrial) {
			c := grid[i/l.Runs]
			for k, p := range penalties {
				f, e := found[curve{r.dist, p}], t.Elastic[k]
				f.yarn[i/l.Runs] = append(f.yarn[i/l.Runs], e.Runtime/t.YARN.Runtime)
				f.unreserved[i/l.Runs] = append(f.unreserved[i/l.Runs], e.Runtime/t.Unreserved.Runtime)
				data.Put(short(r.dist), c.tasks, c.memory, c.length, i%l.Runs, p,
					t.YARN.Runtime, t.Unreserved.Runtime, e.Runtime, t.YARN.Makespan, e.Makespan,
					t.YARN.Memory, e.Memory, e.Elastic)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return fig6aFindings(found, data), nil
}

func fig6aRun(size int, c configuration, seed uint64, elasticOne lab.Contender) (t fig6aTrial, err error) {
	w, err := c.workload(size, seed)
	if err != nil {
		return t, err
	}
	if t.YARN, err = outcomeOf(yarn, paperCluster(size), w); err != nil {
		return t, err
	}
	if t.Unreserved, err = outcomeOf(yarnUnreserved, paperCluster(size), w); err != nil {
		return t, err
	}
	t.Elastic, err = underPenalties(elasticOne, size, c, seed)
	return t, err
}

// underPenalties runs a trace once for each penalty.
func underPenalties(o lab.Contender, size int, c configuration, seed uint64) ([]outcome, error) {
	var all []outcome
	for _, p := range penalties {
		w, err := c.workload(size, seed)
		if err != nil {
			return nil, err
		}
		if err := elastic(w, p); err != nil {
			return nil, err
		}
		one, err := outcomeOf(o, paperCluster(size), w)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func fig6aFindings(found map[curve]*fig6aRatios, data lab.Table) *lab.Findings {
	table := lab.NewTable("Ratio of YARN-ME's average job runtime to YARN's, over configurations", "curve", "best", "25 %",
		"median", "75 %", "worst", "configurations ≤ 0.7", "worst trace", "median to YARN without reservations")
	plot := &chart.Plot{Title: "YARN-ME to YARN, average job runtime",
		Subtitle: "simulated; solid: median of a configuration's traces, dashed: maximum",
		X:        "ratio (below 1: YARN-ME is faster)", Y: "share of configurations",
		Lines: []chart.Rule{{At: 1, Vertical: true}}}
	medians := map[curve][]float64{}
	for k, c := range curves() {
		f := found[c]
		m, worst, free := lab.Values(f.yarn, lab.Median), lab.Values(f.yarn, slices.Max[[]float64]), lab.Values(f.unreserved,
			lab.Median)
		medians[c] = m
		table.Add(c.String(), lab.Decimals(slices.Min(m), 2), lab.Decimals(lab.Quantile(m, 0.25), 2),
			lab.Decimals(lab.Median(m), 2),
			lab.Decimals(lab.Quantile(m, 0.75), 2), lab.Decimals(slices.Max(m), 2), lab.Percent(lab.ShareAtMost(m, 0.7)),
			lab.Decimals(slices.Max(worst), 2), lab.Decimals(lab.Median(free), 2))
		solid, dashed := chart.CDF(c.String(), m), chart.CDF("", worst)
		solid.Color, dashed.Color, dashed.Dashed = k+1, k+1, true
		plot.Series = append(plot.Series, solid, dashed)
	}
	f := &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: fig6aClaims(medians),
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution over configurations of the ratio of YARN-ME's average job runtime to YARN's (simulated)",
			Picture: plot}},
	}
	return f
}

func fig6aClaims(m map[curve][]float64) []lab.Claim {
	middle := func(d workload.Distribution, p float64) float64 { return lab.Median(m[curve{d, p}]) }
	unif15, unif3 := middle(workload.Uniform, 1.5), middle(workload.Uniform, 3)
	exp15, exp3 := middle(workload.Exponential, 1.5), middle(workload.Exponential, 3)
	return []lab.Claim{
		Fig6aShare(lab.ShareAtMost(m[curve{workload.Uniform, 3}], 0.7)),
		Fig6aDistributions(unif15, exp15, unif3, exp3),
		Fig6aPenalties(unif15, unif3, exp15, exp3),
	}
}

// Fig6aShare judges in which share of the configurations YARN-ME takes at most 0.7 of the time.
func Fig6aShare(atMost07 float64) lab.Claim {
	return Paper.Stated("yarn-me/fig6a", "at-most-0.7").Judge(lab.Percent(atMost07), atMost07 >= 0.4, atMost07 >= 0.3)
}

// Fig6aDistributions judges by medians whether gains are larger with uniform distributions.
func Fig6aDistributions(unif15, exp15, unif3, exp3 float64) lab.Claim {
	at15, at3 := unif15 < exp15, unif3 < exp3
	return Paper.Stated("yarn-me/fig6a", "uniform").
		Judge(fmt.Sprintf("medians at 1.5x %.2f and %.2f, at 3x %.2f and %.2f", unif15, exp15, unif3, exp3),
			at15 && at3, at15 || at3)
}

// Fig6aPenalties judges by medians whether a smaller penalty gains more.
func Fig6aPenalties(unif15, unif3, exp15, exp3 float64) lab.Claim {
	unif, exp := unif15 <= unif3, exp15 <= exp3
	return Paper.Stated("yarn-me/fig6a", "penalties").
		Judge(fmt.Sprintf("medians of unif %.3f and %.3f, of exp %.3f and %.3f", unif15, unif3, exp15, exp3),
			unif && exp, unif || exp)
}
