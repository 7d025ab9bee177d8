package experiments

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
)

// fig7Errors are the intervals of section 6.2; the first is no error.
var fig7Errors = []workload.Deviation{{}, {High: 0.15}, {High: 0.5}, {Low: -0.15}, {Low: -0.5}}

// fig7Trial is one trace: the ratio of YARN-ME to YARN for each of fig7Errors.
type fig7Trial struct {
	YARN    []outcome `json:"yarn"`
	Elastic []outcome `json:"elastic"`
}

// fig7 runs traces with estimates that are off; claims judges the ratios by fig7Errors.
func fig7(l *lab, what string, claims func(ratios [][]float64) []Claim) (*Findings, error) {
	ratios := make([][]float64, len(fig7Errors))
	data := newTable("traces", "run", "error", "yarn_job_runtime_s", "yarn_me_job_runtime_s", "yarn_me_elastic")
	err := each(l, what, l.Runs, func(i int) (fig7Trial, error) { return fig7Run(l.size(), what, l.seed(i)) },
		func(i int, t fig7Trial) {
			for k, e := range fig7Errors {
				ratios[k] = append(ratios[k], t.Elastic[k].Runtime/t.YARN[k].Runtime)
				data.put(i, e.String(), t.YARN[k].Runtime, t.Elastic[k].Runtime, t.Elastic[k].Elastic)
			}
		})
	if err != nil {
		return nil, err
	}
	f := fig7Findings(what, ratios)
	f.Data, f.Claims = []Table{data}, claims(ratios)
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
		y, err := yarn.trial(paperCluster(size), off)
		if err != nil {
			return t, err
		}
		m, err := yarnMESum.trial(paperCluster(size), off)
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

func fig7Findings(what string, ratios [][]float64) *Findings {
	table := newTable("Ratio of YARN-ME's average job runtime to YARN's, over traces", "error of "+what, "median",
		"5 %", "95 %", "YARN-ME is faster", "gain lost: median", "95 %")
	plot := &chart.Plot{Title: "YARN-ME to YARN, " + what + " mis-estimated", Subtitle: "simulated, 3x penalty",
		X: "ratio (below 1: YARN-ME is faster)", Y: "share of traces", Lines: []chart.Rule{{At: 1, Vertical: true}}}
	for k, e := range fig7Errors {
		less := lost(ratios[k], ratios[0])
		table.add(fig7Name(e), decimals(median(ratios[k]), 3), decimals(quantile(ratios[k], 0.05), 3),
			decimals(quantile(ratios[k], 0.95), 3), percent(wins(ratios[k])), decimals(median(less), 3),
			decimals(quantile(less, 0.95), 3))
		plot.Series = append(plot.Series, chart.CDF(fig7Name(e), ratios[k]))
	}
	return &Findings{Tables: []Table{table},
		Pictures: []Picture{{"cdf", "Distribution over traces of the ratio of average job runtimes with mis-estimated " +
			what + " (simulated)", plot}}}
}

// Indexes in fig7Errors.
const (
	noError = iota
	someMore
	muchMore
	someLess
	muchLess
)

func fig7aClaims(r [][]float64) []Claim {
	off := 0.0
	for _, k := range []int{someMore, muchMore, someLess} {
		off = max(off, math.Abs(median(r[k])-median(r[noError])))
	}
	less := lost(r[muchLess], r[noError])
	return []Claim{fig7aSimilar(off), fig7aComparable(1-shareAtMost(less, 0), shareAtMost(less, 0.1))}
}

func fig7aSimilar(off float64) Claim {
	return stated("yarn-me/fig7a", "similar").judge(fmt.Sprintf("the median ratio moves by at most %.3f", off),
		off <= 0.05, off <= 0.1)
}

func fig7aComparable(touched, bounded float64) Claim {
	return stated("yarn-me/fig7a", "comparable").
		judge(fmt.Sprintf("%s of traces gain less; in %s of all it is at most 10 %% of YARN's runtime", percent(touched),
			percent(bounded)), bounded >= 0.95 && touched <= 0.5, bounded >= 0.95 || touched <= 0.5)
}

func fig7bClaims(r [][]float64) []Claim {
	off := max(math.Abs(median(r[someLess])-median(r[noError])), math.Abs(median(r[muchLess])-median(r[noError])))
	return []Claim{
		fig7bUpTo(1-min(slices.Min(r[someMore]), slices.Min(r[muchMore])), 1-min(median(r[someMore]), median(r[muchMore]))),
		fig7bNegligible(off),
	}
}

func fig7bUpTo(best, middle float64) Claim {
	return stated("yarn-me/fig7b", "up-to").
		judge(fmt.Sprintf("up to %s, in the median trace %s", percent(best), percent(middle)),
			best >= 0.45, best >= 0.25)
}

func fig7bNegligible(off float64) Claim {
	return stated("yarn-me/fig7b", "negligible").judge(fmt.Sprintf("the median ratio moves by %.3f", off),
		off <= 0.02, off <= 0.05)
}

func fig7cClaims(r [][]float64) []Claim {
	reduced := func(k int) float64 { return quantile(lost(r[k], r[noError]), 0.95) }
	return []Claim{fig7cReduced(reduced(muchMore)),
		fig7cOthers(max(reduced(someMore), reduced(someLess), reduced(muchLess)))}
}

func fig7cReduced(gain float64) Claim {
	return stated("yarn-me/fig7c", "reduced").
		judge(fmt.Sprintf("95 %% of traces lose at most %.1f %%", 100*max(0, gain)),
			gain <= 0.04, gain <= 0.08)
}

func fig7cOthers(gain float64) Claim {
	return stated("yarn-me/fig7c", "others").
		judge(fmt.Sprintf("95 %% of traces lose at most %.1f %% with the other errors", 100*max(0, gain)),
			gain <= 0.01, gain <= 0.02)
}
