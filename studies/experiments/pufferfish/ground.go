package pufferfish

import (
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Grounds are the trace of Table 2 alone, and with the queries of Fig. 10, of about a seventh of the size, in FLEX
// containers.
func Grounds() []lab.Ground {
	ground := func(name string, trace func(seed uint64, share float64) *workload.Workload) lab.Ground {
		return lab.Ground{Name: name, Seeds: []string{"pufferfish"},
			Make: func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
				share := 0.15
				if l.Quick {
					share = 0.04
				}
				config := pufferfishCluster(4)
				config.Flex = sim.Flex{Manager: memory.Default()}
				return config, trace(l.RunSeed(run), share), nil
			}}
	}
	return []lab.Ground{
		ground("Pufferfish, data-intensive", func(seed uint64, share float64) *workload.Workload {
			return inBoxes(productionTrace(seed, share), 0, sparkAttempts)
		}),
		ground("Pufferfish, mixed", func(seed uint64, share float64) *workload.Workload {
			jobs, queries := mixedTrace(seed, share, 1)
			w := inBoxes(jobs, 0, sparkAttempts)
			for _, q := range queries {
				w.Jobs = append(w.Jobs, q.job())
			}
			lab.Number(w)
			return w
		}),
	}
}
