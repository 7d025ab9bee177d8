package yarnme

import (
	"fmt"
	"math/rand/v2"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fig6cTrial is one trace on the Meganode and under YARN-ME.
type fig6cTrial struct {
	Meganode outcome   `json:"meganode"`
	Prompt   outcome   `json:"prompt_meganode"`
	Elastic  []outcome `json:"elastic"` // per penalty
}

// draw returns a configuration with each maximum drawn from its range.
func (r sweepRange) draw(seed uint64) configuration {
	random := rand.New(rand.NewPCG(seed, 0x6c))
	between := func(ends [2]int) int { return ends[0] + random.IntN(ends[1]-ends[0]+1) }
	return configuration{r.dist, between(r.tasks), between(r.memory), between(r.length), r.shortest}
}

func fig6c(l *lab.Lab) (*lab.Findings, error) {
	ratios, toPrompt := map[curve][]float64{}, map[curve][]float64{}
	data := lab.NewTable("traces", "distribution", "run", "tasks_max", "memory_max_gb", "duration_max_s", "penalty",
		"meganode_job_runtime_s", "prompt_meganode_job_runtime_s", "yarn_me_job_runtime_s", "meganode_makespan_s",
		"yarn_me_makespan_s", "meganode_memory")
	for _, r := range tableTwo {
		err := lab.Each(l, r.dist.String(), l.Runs, func(i int) (fig6cTrial, error) {
			return fig6cRun(l.Size(), r.draw(l.RunSeed(i)), l.RunSeed(i))
		}, func(i int, t fig6cTrial) {
			c := r.draw(l.RunSeed(i))
			for k, p := range penalties {
				e, of := t.Elastic[k], curve{r.dist, p}
				ratios[of] = append(ratios[of], e.Runtime/t.Meganode.Runtime)
				toPrompt[of] = append(toPrompt[of], e.Runtime/t.Prompt.Runtime)
				data.Put(short(r.dist), i, c.tasks, c.memory, c.length, p,
					t.Meganode.Runtime, t.Prompt.Runtime, e.Runtime, t.Meganode.Makespan, e.Makespan, t.Meganode.Memory)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return fig6cFindings(ratios, toPrompt, data), nil
}

func fig6cRun(size int, c configuration, seed uint64) (t fig6cTrial, err error) {
	w, err := c.workload(size, seed)
	if err != nil {
		return t, err
	}
	if t.Meganode, err = outcomeOf(meganode, paperCluster(size), w); err != nil {
		return t, err
	}
	if t.Prompt, err = outcomeOf(meganodePrompt, paperCluster(size), w); err != nil {
		return t, err
	}
	t.Elastic, err = underPenalties(yarnMESum, size, c, seed)
	return t, err
}

// wins returns the share of ratios below 1.
func wins(ratios []float64) float64 {
	n := 0
	for _, r := range ratios {
		if r < 1 {
			n++
		}
	}
	return float64(n) / float64(len(ratios))
}

func fig6cFindings(ratios, toPrompt map[curve][]float64, data lab.Table) *lab.Findings {
	table := lab.NewTable("Ratio of YARN-ME's average job runtime to the Meganode's, over traces", "curve",
		"YARN-ME wins", "by over 5 %", "5 %", "median", "95 %", "wins against the prompt one")
	plot := &chart.Plot{Title: "YARN-ME to Meganode, average job runtime", Subtitle: "simulated",
		X: "ratio (below 1: YARN-ME is faster)", Y: "share of traces", Lines: []chart.Rule{{At: 1, Vertical: true}}}
	for _, c := range curves() {
		r := ratios[c]
		table.Add(c.String(), lab.Percent(wins(r)), lab.Percent(lab.ShareAtMost(r, 0.95)), lab.Decimals(lab.Quantile(r, 0.05),
			2),
			lab.Decimals(lab.Median(r), 2), lab.Decimals(lab.Quantile(r, 0.95), 2), lab.Percent(wins(toPrompt[c])))
		plot.Series = append(plot.Series, chart.CDF(c.String(), r))
	}
	won := func(d workload.Distribution, p float64) float64 { return wins(ratios[curve{d, p}]) }
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution over traces of the ratio of YARN-ME's average job runtime to the Meganode's (simulated)",
			Picture: plot}},
		Claims: []lab.Claim{
			Fig6cUniformWins(won(workload.Uniform, 3), won(workload.Uniform, 1.5)),
			Fig6cExponentialWins(won(workload.Exponential, 1.5), wins(toPrompt[curve{workload.Exponential, 1.5}])),
			Fig6cMeganodeWins(1-won(workload.Exponential, 1.5), 1-won(workload.Exponential, 3)),
		},
	}
}

// Fig6cUniformWins judges the shares of traces with uniform distributions in which YARN-ME is better, at two penalties.
func Fig6cUniformWins(at3, at15 float64) lab.Claim {
	return Paper.Stated("yarn-me/fig6c", "uniform").Judge(fmt.Sprintf("%s at 3x, %s at 1.5x", lab.Percent(at3),
		lab.Percent(at15)),
		at3 >= 0.4 && at15 >= 0.4, at3 >= 0.4 || at15 >= 0.4)
}

// Fig6cExponentialWins judges the shares of traces with exponential distributions in which YARN-ME is better than
// either Meganode.
func Fig6cExponentialWins(once, prompt float64) lab.Claim {
	return Paper.Stated("yarn-me/fig6c", "exponential").
		Judge(fmt.Sprintf("%s, but %s against a Meganode that reports as often as all nodes together", lab.Percent(once),
			lab.Percent(prompt)), once >= 0.2 && prompt >= 0.2, once >= 0.2)
}

// Fig6cMeganodeWins judges the shares of traces in which the Meganode is better, at two penalties.
func Fig6cMeganodeWins(at15, at3 float64) lab.Claim {
	return Paper.Stated("yarn-me/fig6c", "meganode-wins").
		Judge(fmt.Sprintf("in %s of the exponential ones at 1.5x, %s at 3x", lab.Percent(at15), lab.Percent(at3)),
			at15 > 0.5 && at3 > 0.5, at15 > 0.5 || at3 > 0.5)
}
