package ecs

import (
	"math/rand/v2"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Grounds are jobs of section V.B, a fifth of the size on a fifth of the nodes, and virtual machines as they were
// recorded, with learned forecasts.
func Grounds() []lab.Ground {
	all := []lab.Ground{{Name: "ECS, benchmarks", Seeds: []string{"ecs"},
		Settings: map[string]string{"ecs.short": "false"},
		Make: func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
			r := rand.New(rand.NewPCG(l.RunSeed(run), 0xec5))
			a, w := usual, &workload.Workload{}
			a.maps, a.reduces = a.maps/5, a.reduces/5
			if l.Quick {
				a.maps, a.reduces = a.maps/5, a.reduces/5
			}
			for i, at := range lab.Arrivals(4, a.reduceTime, r) {
				w.Jobs = append(w.Jobs, a.job(&benchmarks[r.IntN(len(benchmarks))], i+1, at, r))
			}
			n := nodes{of16: 2, of20: 1}
			return n.cluster(), w, nil
		}}}
	for _, s := range ecsSources[:2] {
		all = append(all, lab.Ground{Name: "ECS, " + s.name, Seeds: []string{"ecs"}, Settings: map[string]string{
			"ecs.short": "false", "ecs.interval": s.interval},
			Make: func(l *lab.Lab, run int) (sim.Config, *workload.Workload, error) {
				recorded, err := s.read(l.Settings.Data)
				if err != nil {
					return sim.Config{}, nil, err
				}
				config := config(s.nodes)
				config.Heartbeat, config.StartsPerHeartbeat, config.CoordinatorHeartbeat = 0, 0, 0
				config.Startup = sim.Startup{}
				w, err := s.workload(recorded, s.draws(l, run), false)
				return config, w, err
			}})
	}
	return all
}
