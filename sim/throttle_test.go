package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// planned is fifo that throttles the first task of the first job at given times.
type planned struct {
	policy.Policy
	at []plannedThrottle
}

type plannedThrottle struct {
	at, until time.Duration
	disk      resource.Amount // MB/s; 0 ends the throttle
}

func (p *planned) Decide(now timeline.Time, plan *book.Plan) {
	for len(p.at) > 0 && timeline.Time(p.at[0].at) <= now {
		next := p.at[0]
		p.at = p.at[1:]
		if len(plan.Jobs) > 0 && len(plan.Jobs[0].Tasks) > 0 {
			plan.Throttle(plan.Jobs[0].Tasks[0], vector(0, 0, float64(next.disk), 0), timeline.Time(next.until),
				cluster.BecauseNodePressure(resource.Disk, 1, 2))
		}
	}
	if len(p.at) > 0 {
		plan.Wake(timeline.Time(p.at[0].at), cluster.BecauseNodePressure(resource.Disk, 1, 2))
	}
	p.Policy.Decide(now, plan)
}

// A throttled task that demands 100 MB/s for 10 s goes on as fast as its bound lets it.
func TestThrottle(t *testing.T) {
	const s = time.Second
	phases := workload.StageTruth{Duration: workload.ForAll(10 * s),
		Phases: workload.ForAll([]cluster.Phase{{Duration: 10 * s, Demand: vector(1, 1, 100, 0)}})}
	plain := workload.StageTruth{Duration: workload.ForAll(10 * s)}
	for name, c := range map[string]struct {
		disk    float64 // of the node, MB/s
		plain   bool    // the task demands what it was granted
		at      []plannedThrottle
		ends    time.Duration
		answers int
		count   int           // of throttles
		lasted  time.Duration // in total
	}{
		"not throttled":      {200, false, nil, 10 * s, 0, 0, 0},
		"half of it for 4 s": {200, false, []plannedThrottle{{2 * s, 6 * s, 50}}, 12 * s, 1, 1, 4 * s},
		"plain":              {200, true, []plannedThrottle{{2 * s, 6 * s, 50}}, 12 * s, 1, 1, 4 * s},
		"to the end":         {200, false, []plannedThrottle{{2 * s, 60 * s, 50}}, 18 * s, 1, 1, 16 * s},
		"above its demand":   {200, false, []plannedThrottle{{2 * s, 6 * s, 150}}, 10 * s, 1, 1, 4 * s},
		"plain, above":       {200, true, []plannedThrottle{{2 * s, 6 * s, 150}}, 10 * s, 1, 1, 4 * s},
		"ended by an order":  {200, false, []plannedThrottle{{2 * s, 60 * s, 50}, {6 * s, 0, 0}}, 12 * s, 2, 1, 4 * s},
		"replaced":           {200, false, []plannedThrottle{{2 * s, 6 * s, 50}, {4 * s, 8 * s, 25}}, 14 * s, 2, 1, 6 * s},
		"replaced at once":   {200, false, []plannedThrottle{{2 * s, 60 * s, 1}, {2 * s, 6 * s, 50}}, 12 * s, 2, 1, 4 * s},
		// 1.6 + 2, and 6.4 at 0.8
		"on a crowded node": {80, false, []plannedThrottle{{2 * s, 7 * s, 40}}, 15 * s, 1, 1, 5 * s},
		"twice": {200, false, []plannedThrottle{{1 * s, 2 * s, 50}, {3 * s, 5 * s, 50}},
			10*s + 1500*time.Millisecond, 2, 2, 3 * s},
		"a disk without bound": {0, false, []plannedThrottle{{2 * s, 6 * s, 50}}, 12 * s, 1, 1, 4 * s},
	} {
		t.Run(name, func(t *testing.T) {
			truth := phases
			if c.plain {
				truth = plain
			}
			job := oneStage(1, 1, truth, func(j *workload.Job) {
				if c.plain {
					j.Stages[0].Ideal = vector(1, 1, 100, 0)
				}
			})
			p, err := policy.New("fifo", nil)
			if err != nil {
				t.Fatal(err)
			}
			answers, ordered := 0, map[cluster.DecisionID]bool{}
			config := sim.Config{Nodes: []cluster.Node{{Name: "n1", Capacity: vector(4, 8, c.disk, 0)}}, KeepTasks: true}
			config.Observe = func(_ timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
				for _, e := range events {
					if e.Kind == cluster.DecisionDone && ordered[e.Decision] {
						answers++
					}
				}
				for _, d := range decisions {
					ordered[d.ID] = d.Kind == cluster.Throttle
				}
			}
			res, err := sim.Run(config, &workload.Workload{Jobs: []workload.Job{job}}, &planned{p, c.at})
			if err != nil {
				t.Fatal(err)
			}
			wantEnds(t, res, c.ends)
			if answers != c.answers {
				t.Errorf("%d answers, want %d", answers, c.answers)
			}
			if res.Throttles != c.count || res.Throttled != c.lasted {
				t.Errorf("throttled %d times, for %v, want %d, for %v", res.Throttles, res.Throttled, c.count, c.lasted)
			}
		})
	}
}
