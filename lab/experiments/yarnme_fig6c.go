package experiments

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/workload"
)

func yarnMEFig6c() Experiment {
	return Experiment{
		Name: "yarn-me/fig6c", Title: "YARN-ME vs. the idealised Meganode",
		Takes: "35 s",
		Paper: "YARN-ME section 6.2, Fig. 6c",
		Setup: []string{
			"100 jobs on 100 nodes as in Fig. 6a. The Meganode is one node with the cores and memory of all, which serves the job with the least remaining work first and is not elastic.",
			"The paper does not say which parameters its 20,000 traces have: each of ours draws its maxima from Table 2's ranges, uniformly, in steps of 1 task, 1 GB and 1 s.",
			"YARN-ME estimates by timeline sum.",
			gapsOff, authorsTable,
		},
		Unit: "traces per distribution", Runs: 150, Full: 20000,
		run: fig6c,
	}
}

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
		"meganode_job_runtime_s", "prompt_meganode_job_runtime_s", "yarn_me_job_runtime_s", "meganode_makespan_s", "yarn_me_makespan_s", "meganode_memory")
	for _, r := range tableTwo {
		err := each(l, r.dist.String(), l.Runs, func(i int) (fig6cTrial, error) {
			return fig6cRun(l.size(), r.draw(l.seed(i)), l.seed(i))
		}, func(i int, t fig6cTrial) {
			c := r.draw(l.seed(i))
			for k, p := range penalties {
				e, of := t.Elastic[k], curve{r.dist, p}
				ratios[of] = append(ratios[of], e.Runtime/t.Meganode.Runtime)
				toPrompt[of] = append(toPrompt[of], e.Runtime/t.Prompt.Runtime)
				data.add(short(r.dist), strconv.Itoa(i), strconv.Itoa(c.tasks), strconv.Itoa(c.memory), strconv.Itoa(c.length), exact(p),
					exact(t.Meganode.Runtime), exact(t.Prompt.Runtime), exact(e.Runtime), exact(t.Meganode.Makespan), exact(e.Makespan), exact(t.Meganode.Memory))
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
	table := newTable("Ratio of YARN-ME's average job runtime to the Meganode's, over traces", "curve", "YARN-ME wins", "by over 5 %", "5 %", "median", "95 %", "wins against the prompt one")
	plot := &chart.Plot{Title: "YARN-ME to Meganode, average job runtime", Subtitle: "simulated", X: "ratio (below 1: YARN-ME is faster)",
		Y: "share of traces", Lines: []chart.Rule{{At: 1, Vertical: true}}}
	for _, c := range curves() {
		r := ratios[c]
		table.add(c.String(), percent(wins(r)), percent(shareAtMost(r, 0.95)), decimals(quantile(r, 0.05), 2), decimals(median(r), 2), decimals(quantile(r, 0.95), 2), percent(wins(toPrompt[c])))
		plot.Series = append(plot.Series, chart.CDF(c.String(), r))
	}
	won := func(d workload.Distribution, p float64) float64 { return wins(ratios[curve{d, p}]) }
	return &Findings{
		Tables: []Table{table}, Data: []Table{data},
		Pictures: []Picture{{"cdf", "Distribution over traces of the ratio of YARN-ME's average job runtime to the Meganode's (simulated)", plot}},
		Claims: []Claim{
			fig6cUniformWins(won(workload.Uniform, 3), won(workload.Uniform, 1.5)),
			fig6cExponentialWins(won(workload.Exponential, 1.5), wins(toPrompt[curve{workload.Exponential, 1.5}])),
			fig6cMeganodeWins(1-won(workload.Exponential, 1.5), 1-won(workload.Exponential, 3)),
		},
	}
}

func fig6cUniformWins(at3, at15 float64) Claim {
	return Claim{
		Says: "YARN-ME beats Meganode for 40%-60% of the cases for the uniform trace", Where: "section 6.2", Paper: "40 to 60 %",
		Ours:      fmt.Sprintf("%s at 3x, %s at 1.5x", percent(at3), percent(at15)),
		Criterion: "at least 40 % for both penalties; in part: for one",
	}.judge(at3 >= 0.4 && at15 >= 0.4, at3 >= 0.4 || at15 >= 0.4, fig6cUniform)
}

func fig6cExponentialWins(once, prompt float64) Claim {
	return Claim{
		Says: "and for 20% of the exponential trace for 1.5x penalty", Where: "section 6.2", Paper: "20 %",
		Ours:      fmt.Sprintf("%s, but %s against a Meganode that reports as often as all nodes together", percent(once), percent(prompt)),
		Criterion: "at least 20 % against both; in part: against the one that reports once a second",
	}.judge(once >= 0.2 && prompt >= 0.2, once >= 0.2, fig6cIdle)
}

func fig6cMeganodeWins(at15, at3 float64) Claim {
	return Claim{
		Says: "it is expected that Meganode wins in many cases", Where: "section 6.2", Paper: "for most exponential traces",
		Ours:      fmt.Sprintf("in %s of the exponential ones at 1.5x, %s at 3x", percent(at15), percent(at3)),
		Criterion: "more than half of the exponential traces, for both penalties",
	}.judge(at15 > 0.5 && at3 > 0.5, at15 > 0.5 || at3 > 0.5, fig6cIdle)
}

// Explanations why the shares differ from the paper's.
const (
	fig6cUniform = "At 1.5x a task with half its memory takes 1.25 times as long (the saw-tooth's best size), so that it holds 0.63 of the memory × time that it would hold well-sized: YARN-ME then has less work to do than the Meganode. At 3x it takes twice as long and holds as much: what is left to gain is fragmentation, which is less than shortest-job-first gains over fairness. The authors' simulator says the same of the one trace that we ran with it (0.81 and 1.42 times the Meganode's runtime). How many traces lie between is decided by their parameters, which the paper does not give."
	fig6cIdle    = "These traces leave the cluster all but idle, and both finish a job as fast as it can be: the Meganode is one node that reports once a second, as in the authors' simulator, where its nodes report one after the other, so that a job waits about 2 s longer there. Against a Meganode that reports as often as all nodes together YARN-ME wins hardly any: see the last column."
)
