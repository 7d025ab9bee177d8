package experiments

import (
	"fmt"
	"math/rand/v2"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
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

func fig6c(l *lab) (*Findings, error) {
	ratios, toPrompt := map[curve][]float64{}, map[curve][]float64{}
	data := newTable("traces", "distribution", "run", "tasks_max", "memory_max_gb", "duration_max_s", "penalty",
		"meganode_job_runtime_s", "prompt_meganode_job_runtime_s", "yarn_me_job_runtime_s", "meganode_makespan_s",
		"yarn_me_makespan_s", "meganode_memory")
	for _, r := range tableTwo {
		err := each(l, r.dist.String(), l.Runs, func(i int) (fig6cTrial, error) {
			return fig6cRun(l.size(), r.draw(l.seed(i)), l.seed(i))
		}, func(i int, t fig6cTrial) {
			c := r.draw(l.seed(i))
			for k, p := range penalties {
				e, of := t.Elastic[k], curve{r.dist, p}
				ratios[of] = append(ratios[of], e.Runtime/t.Meganode.Runtime)
				toPrompt[of] = append(toPrompt[of], e.Runtime/t.Prompt.Runtime)
				data.put(short(r.dist), i, c.tasks, c.memory, c.length, p,
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
	if t.Meganode, err = meganode.trial(paperCluster(size), w); err != nil {
		return t, err
	}
	if t.Prompt, err = meganodePrompt.trial(paperCluster(size), w); err != nil {
		return t, err
	}
	t.Elastic, err = yarnMESum.underPenalties(size, c, seed)
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

func fig6cFindings(ratios, toPrompt map[curve][]float64, data Table) *Findings {
	table := newTable("Ratio of YARN-ME's average job runtime to the Meganode's, over traces", "curve",
		"YARN-ME wins", "by over 5 %", "5 %", "median", "95 %", "wins against the prompt one")
	plot := &chart.Plot{Title: "YARN-ME to Meganode, average job runtime", Subtitle: "simulated",
		X: "ratio (below 1: YARN-ME is faster)", Y: "share of traces", Lines: []chart.Rule{{At: 1, Vertical: true}}}
	for _, c := range curves() {
		r := ratios[c]
		table.add(c.String(), percent(wins(r)), percent(shareAtMost(r, 0.95)), decimals(quantile(r, 0.05), 2),
			decimals(median(r), 2), decimals(quantile(r, 0.95), 2), percent(wins(toPrompt[c])))
		plot.Series = append(plot.Series, chart.CDF(c.String(), r))
	}
	won := func(d workload.Distribution, p float64) float64 { return wins(ratios[curve{d, p}]) }
	return &Findings{
		Tables: []Table{table}, Data: []Table{data},
		Pictures: []Picture{{"cdf",
			"Distribution over traces of the ratio of YARN-ME's average job runtime to the Meganode's (simulated)", plot}},
		Claims: []Claim{
			fig6cUniformWins(won(workload.Uniform, 3), won(workload.Uniform, 1.5)),
			fig6cExponentialWins(won(workload.Exponential, 1.5), wins(toPrompt[curve{workload.Exponential, 1.5}])),
			fig6cMeganodeWins(1-won(workload.Exponential, 1.5), 1-won(workload.Exponential, 3)),
		},
	}
}

func fig6cUniformWins(at3, at15 float64) Claim {
	return stated("yarn-me/fig6c", "uniform").judge(fmt.Sprintf("%s at 3x, %s at 1.5x", percent(at3), percent(at15)),
		at3 >= 0.4 && at15 >= 0.4, at3 >= 0.4 || at15 >= 0.4)
}

func fig6cExponentialWins(once, prompt float64) Claim {
	return stated("yarn-me/fig6c", "exponential").
		judge(fmt.Sprintf("%s, but %s against a Meganode that reports as often as all nodes together", percent(once),
			percent(prompt)), once >= 0.2 && prompt >= 0.2, once >= 0.2)
}

func fig6cMeganodeWins(at15, at3 float64) Claim {
	return stated("yarn-me/fig6c", "meganode-wins").
		judge(fmt.Sprintf("in %s of the exponential ones at 1.5x, %s at 3x", percent(at15), percent(at3)),
			at15 > 0.5 && at3 > 0.5, at15 > 0.5 || at3 > 0.5)
}
