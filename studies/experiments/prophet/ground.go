package prophet

import (
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Grounds are a quarter of the applications of section IV.B on a quarter of the servers.
func Grounds() []lab.Ground {
	return []lab.Ground{{Name: "Prophet, applications", Seeds: []string{"prophet"}, Makespan: true,
		Settings: map[string]string{"prophet.relief": "share", "bellows.backoff": "share"},
		Make: func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
			config, w := usual.cluster(), usual.workload(l, run, nil)
			config.Machine.PressedBelow = lower
			n := min(len(w.Jobs), 23)
			w.Jobs, config.Nodes = w.Jobs[:n], config.Nodes[:servers/4]
			return config, w, nil
		}}}
}
