package yarnme

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fig7Errors are the intervals of section 6.2; the first is no error.
var fig7Errors = []workload.Deviation{{}, {High: 0.15}, {High: 0.5}, {Low: -0.15}, {Low: -0.5}}

// fig7Trial is one trace: the ratio of YARN-ME to YARN for each of fig7Errors.
type fig7Trial struct {
	YARN    []outcome `json:"yarn"`
	Elastic []outcome `json:"elastic"`
}

// fig7 runs traces with estimates that are off; claims judges the ratios by fig7Errors.
func fig7(l *lab.Lab, what string, claims func(ratios [][]float64) []lab.Claim) (*lab.Findings, error) {
	ratios := make([][]float64, len(fig7Errors))
	data := lab.NewTable("traces", "run", "error", "yarn_job_runtime_s", "yarn_me_job_runtime_s", "yarn_me_elastic")
	err := lab.Each(l, what, l.Runs, func(i int) (fig7Trial, error) { return fig7Run(l.Size(), what, l.RunSeed(i)) },
		func(i int, t fig7Trial) {
			for k, e := range fig7Errors {
				ratios[k] = append(ratios[k], t.Elastic[k].Runtime/t.YARN[k].Runtime)
				data.Put(i, e.String(), t.YARN[k].Runtime, t.Elastic[k].Runtime, t.Elastic[k].Elastic)
			}
		})
	if err != nil {
		return nil, err
	}
	f := fig7Findings(what, ratios)
	f.Data, f.Claims = []lab.Table{data}, claims(ratios)
	return f, nil
}

func fig7Run(size int, what string, seed uint64) (t fig7Trial, err error) {
	w, err := workload.Generate(workload.Exponential, workload.GenerateOptions{
		Jobs: size, Tasks: workload.Range[int]{Min: 1, Max: 100},
		Memory:   workload.Range[resource.Amount]{Min: 100 * resource.MB, Max: 10 * resource.GB},
		Duration: workload.Range[time.Duration]{Min: 50 * time.Second, Max: 500 * time.Second},
		Arrivals: workload.Range[time.Duration]{Max: 1000 * time.Second}, Seed: seed,
	})
	if err != nil {
		return t, err
	}
	if err := elastic(w, 3); err != nil {
		return t, err
	}
	for _, e := range fig7Errors {
		off := workload.Misjudge(w, fig7Misjudgement(what, e), seed)
		y, err := outcomeOf(yarn, paperCluster(size), off)
		if err != nil {
			return t, err
		}
		m, err := outcomeOf(yarnMESum, paperCluster(size), off)
		if err != nil {
			return t, err
		}
		t.YARN, t.Elastic = append(t.YARN, y), append(t.Elastic, m)
	}
	return t, nil
}

func fig7Misjudgement(what string, e workload.Deviation) workload.Misjudgement {
	switch what {
	case "duration":
		return workload.Misjudgement{Duration: e}
	case "memory":
		return workload.Misjudgement{Memory: e}
	}
	return workload.Misjudgement{Penalty: e}
}

// fig7Name returns an interval as the paper writes it.
func fig7Name(e workload.Deviation) string {
	switch {
	case e == workload.Deviation{}:
		return "no error"
	case e.Low < 0:
		return fmt.Sprintf("[%g, 0)", e.Low)
	}
	return fmt.Sprintf("(0, %g]", e.High)
}

// lost returns, for each trace, the decrease of the gain by errors, as a share of YARN's runtime.
func lost(with, without []float64) []float64 {
	var all []float64
	for i := range with {
		all = append(all, with[i]-without[i])
	}
	return all
}

func fig7Findings(what string, ratios [][]float64) *lab.Findings {
	table := lab.NewTable("Ratio of YARN-ME's average job runtime to YARN's, over traces", "error of "+what, "median",
		"5 %", "95 %", "YARN-ME is faster", "gain lost: median", "95 %")
	plot := &chart.Plot{Title: "YARN-ME to YARN, " + what + " mis-estimated", Subtitle: "simulated, 3x penalty",
		X: "ratio (below 1: YARN-ME is faster)", Y: "share of traces", Lines: []chart.Rule{{At: 1, Vertical: true}}}
	for k, e := range fig7Errors {
		less := lost(ratios[k], ratios[0])
		table.Add(fig7Name(e), lab.Decimals(lab.Median(ratios[k]), 3), lab.Decimals(lab.Quantile(ratios[k], 0.05), 3),
			lab.Decimals(lab.Quantile(ratios[k], 0.95), 3), lab.Percent(wins(ratios[k])), lab.Decimals(lab.Median(less), 3),
			lab.Decimals(lab.Quantile(less, 0.95), 3))
		plot.Series = append(plot.Series, chart.CDF(fig7Name(e), ratios[k]))
	}
	return &lab.Findings{Tables: []lab.Table{table},
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution over traces of the ratio of average job runtimes with mis-estimated " +
				what + " (simulated)", Picture: plot}}}
}

// Indexes in fig7Errors.
const (
	noError = iota
	someMore
	muchMore
	someLess
	muchLess
)

func fig7aClaims(r [][]float64) []lab.Claim {
	off := 0.0
	for _, k := range []int{someMore, muchMore, someLess} {
		off = max(off, math.Abs(lab.Median(r[k])-lab.Median(r[noError])))
	}
	less := lost(r[muchLess], r[noError])
	return []lab.Claim{Fig7aSimilar(off), Fig7aComparable(1-lab.ShareAtMost(less, 0), lab.ShareAtMost(less, 0.1))}
}

// Fig7aSimilar judges how far errors in the memory move the median.
func Fig7aSimilar(off float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7a", "similar").Judge(fmt.Sprintf("the median ratio moves by at most %.3f", off),
		off <= 0.05, off <= 0.1)
}

// Fig7aComparable judges which shares of the traces are touched by an error in the memory, and are touched a little.
func Fig7aComparable(touched, bounded float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7a", "comparable").
		Judge(fmt.Sprintf("%s of traces gain less; in %s of all it is at most 10 %% of YARN's runtime", lab.Percent(touched),
			lab.Percent(bounded)), bounded >= 0.95 && touched <= 0.5, bounded >= 0.95 || touched <= 0.5)
}

func fig7bClaims(r [][]float64) []lab.Claim {
	off := max(math.Abs(lab.Median(r[someLess])-lab.Median(r[noError])),
		math.Abs(lab.Median(r[muchLess])-lab.Median(r[noError])))
	return []lab.Claim{
		Fig7bUpTo(1-min(slices.Min(r[someMore]), slices.Min(r[muchMore])), 1-min(lab.Median(r[someMore]),
			lab.Median(r[muchMore]))),
		Fig7bNegligible(off),
	}
}

// Fig7bUpTo judges the largest gain and the median gain with overestimated run times.
func Fig7bUpTo(best, middle float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7b", "up-to").
		Judge(fmt.Sprintf("up to %s, in the median trace %s", lab.Percent(best), lab.Percent(middle)),
			best >= 0.45, best >= 0.25)
}

// Fig7bNegligible judges how far underestimated run times move the median.
func Fig7bNegligible(off float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7b", "negligible").Judge(fmt.Sprintf("the median ratio moves by %.3f", off),
		off <= 0.02, off <= 0.05)
}

func fig7cClaims(r [][]float64) []lab.Claim {
	reduced := func(k int) float64 { return lab.Quantile(lost(r[k], r[noError]), 0.95) }
	return []lab.Claim{Fig7cReduced(reduced(muchMore)),
		Fig7cOthers(max(reduced(someMore), reduced(someLess), reduced(muchLess)))}
}

// Fig7cReduced judges what 95 % of the traces lose at most with the largest error in the penalty.
func Fig7cReduced(gain float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7c", "reduced").
		Judge(fmt.Sprintf("95 %% of traces lose at most %.1f %%", 100*max(0, gain)),
			gain <= 0.04, gain <= 0.08)
}

// Fig7cOthers judges the same with the other errors.
func Fig7cOthers(gain float64) lab.Claim {
	return Paper.Stated("yarn-me/fig7c", "others").
		Judge(fmt.Sprintf("95 %% of traces lose at most %.1f %% with the other errors", 100*max(0, gain)),
			gain <= 0.01, gain <= 0.02)
}
