package yarnme

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fig6bSizes are the numbers of nodes, which are also the numbers of jobs. The paper goes from 100 to 3,000 and does
// not state the steps.
var (
	fig6bSizes     = []int{100, 300, 1000}
	fig6bSizesFull = []int{100, 200, 300, 500, 1000, 2000, 3000}
)

// fig6bTrial is one trace under YARN and under YARN-ME with each penalty.
type fig6bTrial struct {
	YARN    outcome   `json:"yarn"`
	Elastic []outcome `json:"elastic"`
}

func fig6b(l *lab.Lab) (*lab.Findings, error) {
	sizes := fig6bSizes
	if l.Full {
		sizes = fig6bSizesFull
	}
	if l.Quick {
		sizes = []int{10, 20}
	}
	ratios := make([][][]float64, len(sizes)) // per size and penalty
	data := lab.NewTable("traces", "nodes", "run", "penalty", "yarn_job_runtime_s", "yarn_me_job_runtime_s",
		"yarn_makespan_s", "yarn_me_makespan_s")
	err := lab.Each(l, "sizes", len(sizes)*l.Runs, func(i int) (fig6bTrial, error) {
		return fig6bRun(sizes[i/l.Runs], l.RunSeed(i%l.Runs))
	}, func(i int, t fig6bTrial) {
		size := i / l.Runs
		if ratios[size] == nil {
			ratios[size] = make([][]float64, len(penalties))
		}
		for k, p := range penalties {
			e := t.Elastic[k]
			ratios[size][k] = append(ratios[size][k], e.Runtime/t.YARN.Runtime)
			data.Put(sizes[size], i%l.Runs, p, t.YARN.Runtime, e.Runtime, t.YARN.Makespan, e.Makespan)
		}
	})
	if err != nil {
		return nil, err
	}
	return fig6bFindings(sizes, ratios, data), nil
}

func fig6bRun(size int, seed uint64) (t fig6bTrial, err error) {
	o := workload.DefaultGenerateOptions(workload.Uniform)
	o.Jobs, o.Seed = size, seed
	for k := -1; k < len(penalties); k++ {
		w, err := workload.Generate(workload.Uniform, o)
		if err != nil {
			return t, err
		}
		if k < 0 {
			if t.YARN, err = outcomeOf(yarn, paperCluster(size), w); err != nil {
				return t, err
			}
			continue
		}
		if err := elastic(w, penalties[k]); err != nil {
			return t, err
		}
		e, err := outcomeOf(yarnMESum, paperCluster(size), w)
		if err != nil {
			return t, err
		}
		t.Elastic = append(t.Elastic, e)
	}
	return t, nil
}

func fig6bFindings(sizes []int, ratios [][][]float64, data lab.Table) *lab.Findings {
	table := lab.NewTable("Ratio of YARN-ME's average job runtime to YARN's, median of the traces", "nodes and jobs",
		"1.5x",
		"3x")
	plot := &chart.Plot{Title: "YARN-ME to YARN as cluster and workload grow",
		Subtitle: "simulated, one uniform trace per size", X: "nodes, and jobs", Y: "ratio of average job runtimes",
		LogX: true, YMin: new(float64)}
	worst, drift := 0.0, 0.0
	for k, p := range penalties {
		s := chart.Series{Name: fmt.Sprintf("unif %gx", p)}
		for i, n := range sizes {
			r := lab.Median(ratios[i][k])
			s.X, s.Y = append(s.X, float64(n)), append(s.Y, r)
			worst, drift = math.Max(worst, r), math.Max(drift, r-s.Y[0])
		}
		plot.Series = append(plot.Series, s)
	}
	for i, n := range sizes {
		table.Put(n, lab.Decimals(plot.Series[0].Y[i], 2), lab.Decimals(plot.Series[1].Y[i], 2))
	}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "scaling",
			Caption: "Ratio of average job runtimes, YARN-ME to YARN, from 100 nodes on (simulated)",
			Picture: plot}},
		Claims: []lab.Claim{Paper.Stated("yarn-me/fig6b", "scaling").
			Judge(fmt.Sprintf("up to %d nodes the ratio is at most %.2f, and at most %.2f above that at %d nodes",
				sizes[len(sizes)-1], worst, max(0, drift), sizes[0]),
				worst < 1 && drift <= 0.1, worst < 1)},
	}
}
