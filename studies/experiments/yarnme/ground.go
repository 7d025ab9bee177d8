package yarnme

import (
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Grounds are traces of section 6.1, of a third of the size, with the middle of the ranges of Table 2.
func Grounds() []lab.Ground {
	ground := func(name string, c configuration, penalty float64) lab.Ground {
		return lab.Ground{Name: name, Seeds: []string{"yarn-me"},
			Make: func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
				nodes := 30
				if l.Quick {
					nodes = 6
				}
				w, err := c.workload(nodes, l.RunSeed(run))
				if err != nil {
					return sim.Config{}, nil, err
				}
				return paperCluster(nodes), w, elastic(w, penalty)
			}}
	}
	return []lab.Ground{
		ground("YARN-ME, uniform 3x", configuration{workload.Uniform, 200, 6, 300, tableTwo[0].shortest}, 3),
		ground("YARN-ME, exponential 1.5x", configuration{workload.Exponential, 120, 6, 300, tableTwo[1].shortest}, 1.5),
	}
}
