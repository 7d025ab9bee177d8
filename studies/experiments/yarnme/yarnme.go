package yarnme

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Runs has the experiments of YARN-ME: "Don't cry over spilled records: Memory elasticity of data-parallel
// applications and its application to cluster scheduling", Iorgulescu et al., USENIX ATC 2017.
var Runs = map[string]lab.Run{
	"yarn-me/fig1a": fig1a, "yarn-me/fig1b": fig1b, "yarn-me/fig1c": fig1c,
	"yarn-me/fig2a": fig2a, "yarn-me/fig2b": fig2b, "yarn-me/fig2c": fig2c,
	"yarn-me/fig3": fig3, "yarn-me/fig4": fig4, "yarn-me/fig5ab": fig5ab, "yarn-me/fig5c": fig5c,
	"yarn-me/fig6a":            func(l *lab.Lab) (*lab.Findings, error) { return fig6a(l, yarnMESum, false) },
	"yarn-me/fig6a-resimulate": func(l *lab.Lab) (*lab.Findings, error) { return fig6a(l, yarnMEAgain, !l.Full) },
	"yarn-me/fig6b":            fig6b, "yarn-me/fig6c": fig6c,
	"yarn-me/fig7a": func(l *lab.Lab) (*lab.Findings, error) { return fig7(l, "duration", fig7aClaims) },
	"yarn-me/fig7b": func(l *lab.Lab) (*lab.Findings, error) { return fig7(l, "memory", fig7bClaims) },
	"yarn-me/fig7c": func(l *lab.Lab) (*lab.Findings, error) { return fig7(l, "penalty", fig7cClaims) },
}

// penalties are the largest slowdowns of section 6: "to cover the range of penalties measured in §2".
var penalties = []float64{1.5, 3}

// sweepRange is the range of the parameters of a distribution in Table 2: the largest number of tasks, memory and
// duration of a trace.
type sweepRange struct {
	dist                  workload.Distribution
	tasks, memory, length [2]int // ends of the range of the maximum: tasks, GB, seconds
	steps                 [3]int // ours: the paper does not state the steps
	shortest              time.Duration
}

var tableTwo = []sweepRange{
	{workload.Uniform, [2]int{200, 400}, [2]int{2, 10}, [2]int{200, 500}, [3]int{100, 2, 100}, time.Second},
	{workload.Exponential, [2]int{20, 220}, [2]int{2, 10}, [2]int{100, 500}, [3]int{50, 2, 100}, 50 * time.Second},
}

// configuration is one combination of maxima.
type configuration struct {
	dist                  workload.Distribution
	tasks, memory, length int
	shortest              time.Duration
}

// grid returns all combinations, or only the combinations of the ends.
func (r sweepRange) grid(endsOnly bool) []configuration {
	points := func(ends [2]int, step int) []int {
		if endsOnly {
			return ends[:]
		}
		var all []int
		for v := ends[0]; v <= ends[1]; v += step {
			all = append(all, v)
		}
		return all
	}
	var all []configuration
	for _, tasks := range points(r.tasks, r.steps[0]) {
		for _, memory := range points(r.memory, r.steps[1]) {
			for _, length := range points(r.length, r.steps[2]) {
				all = append(all, configuration{r.dist, tasks, memory, length, r.shortest})
			}
		}
	}
	return all
}

// workload draws a trace (section 6.1).
func (c configuration) workload(jobs int, seed uint64) (*workload.Workload, error) {
	o := workload.DefaultGenerateOptions(c.dist)
	o.Jobs = jobs
	o.Tasks.Max = c.tasks
	o.Memory.Max = resource.Amount(c.memory) * resource.GB
	o.Duration = workload.Range[time.Duration]{Min: c.shortest, Max: time.Duration(c.length) * time.Second}
	o.Seed = seed
	return workload.Generate(c.dist, o)
}

// curve is a line of the paper's figures: a distribution with a penalty.
type curve struct {
	dist    workload.Distribution
	penalty float64
}

func (c curve) String() string { return fmt.Sprintf("%s %gx", short(c.dist), c.penalty) }

func short(d workload.Distribution) string {
	if d == workload.Exponential {
		return "exp"
	}
	return "unif"
}

// curves returns the curves of Figs. 6a and 6c.
func curves() []curve {
	var all []curve
	for _, r := range tableTwo {
		for _, p := range penalties {
			all = append(all, curve{r.dist, p})
		}
	}
	return all
}
