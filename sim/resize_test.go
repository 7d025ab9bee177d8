package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// resizes is fifo that resizes the first task of the first job at given times.
type resizes struct {
	policy.Policy
	at []plannedResize
}

type plannedResize struct {
	at           time.Duration
	cores, gigas float64
}

func (p *resizes) Decide(now timeline.Time, plan *book.Plan) {
	for len(p.at) > 0 && timeline.Time(p.at[0].at) <= now {
		if next := p.at[0]; len(plan.Jobs) > 0 && len(plan.Jobs[0].Tasks) > 0 {
			want := vector(next.cores, next.gigas, 0, 0)
			plan.Resize(plan.Jobs[0].Tasks[0], want, cluster.BecausePhaseDemands(0, want))
		}
		p.at = p.at[1:]
	}
	if len(p.at) > 0 {
		plan.Wake(timeline.Time(p.at[0].at), cluster.Because(cluster.PausedByOwner))
	}
	p.Policy.Decide(now, plan)
}

// A task goes on as fast as its new grant lets it. It works 10 s on 2 cores with 4 GB; memory that it lacks is
// spilled (elastic, twice as long with half of it) or paged.
func TestResize(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for name, c := range map[string]struct {
		kind  string // phases, plain or elastic
		nodes float64
		caps  resource.Kinds
		swap  resource.Amount
		delay time.Duration
		class cluster.Class
		at    []plannedResize
		ends  time.Duration
		count int
	}{
		"not resized": {kind: "phases", nodes: 4, caps: cpu, ends: 10 * s},
		"half the cores for 4 s": {kind: "phases", nodes: 4, caps: cpu,
			at: []plannedResize{{2 * s, 1, 4}, {6 * s, 2, 4}}, ends: 12 * s, count: 2},
		"plain": {kind: "plain", nodes: 4, caps: cpu,
			at: []plannedResize{{2 * s, 1, 4}, {6 * s, 2, 4}}, ends: 12 * s, count: 2},
		"cores do not bind it": {kind: "phases", nodes: 4, at: []plannedResize{{2 * s, 1, 4}}, ends: 10 * s,
			count: 1},
		"with a delay": {kind: "phases", nodes: 4, caps: cpu, delay: sim.ECSResizeDelay,
			at: []plannedResize{{2 * s, 1, 4}, {6 * s, 2, 4}}, ends: 12 * s, count: 2},
		"more than it needs": {kind: "phases", nodes: 4, caps: cpu, at: []plannedResize{{2 * s, 4, 6}},
			ends: 10 * s, count: 1},
		"spills half for 4 s": {kind: "elastic", nodes: 4, at: []plannedResize{{2 * s, 2, 2}, {6 * s, 2, 4}},
			ends: 12 * s, count: 2},
		"spills from now on": {kind: "elastic", nodes: 4, at: []plannedResize{{2 * s, 2, 2}}, ends: 18 * s,
			count: 1},
		"pages": {kind: "phases", nodes: 4, swap: 9 * resource.GB,
			at: []plannedResize{{2 * s, 2, 2}, {6 * s, 2, 4}}, ends: 12 * s, count: 2},
		"plain, and pages": {kind: "plain", nodes: 4, swap: 9 * resource.GB,
			at: []plannedResize{{2 * s, 2, 2}, {6 * s, 2, 4}}, ends: 12 * s, count: 2},
		"does not fit without swap": {kind: "phases", nodes: 4, at: []plannedResize{{2 * s, 2, 2}}, ends: 10 * s},
		"plain, and does not fit":   {kind: "plain", nodes: 4, at: []plannedResize{{2 * s, 2, 2}}, ends: 10 * s},
		"after its end": {kind: "phases", nodes: 4, delay: 9 * s, at: []plannedResize{{2 * s, 1, 4}},
			ends: 10 * s},
		"FLEX gets more at once": {kind: "phases", nodes: 4, swap: 9 * resource.GB, class: cluster.Flex,
			at: []plannedResize{{2 * s, 2, 6}}, ends: 10 * s, count: 1},
		"FLEX with less keeps its pages": {kind: "phases", nodes: 4, swap: 9 * resource.GB, class: cluster.Flex,
			at: []plannedResize{{2 * s, 2, 2}}, ends: 10 * s, count: 1},
		"FLEX, fewer cores": {kind: "phases", nodes: 4, caps: cpu, swap: 9 * resource.GB, class: cluster.Flex,
			at: []plannedResize{{2 * s, 1, 4}}, ends: 18 * s, count: 1},
	} {
		t.Run(name, func(t *testing.T) {
			truth := workload.StageTruth{Duration: workload.ForAll(10 * s)}
			if c.kind == "phases" {
				truth.Phases = workload.ForAll([]cluster.Phase{{Duration: 10 * s, Demand: vector(2, 4, 0, 0)}})
			}
			job := oneStage(1, 1, truth, func(j *workload.Job) {
				j.Class, j.Stages[0].Ideal = c.class, vector(2, 4, 0, 0)
				if c.kind == "elastic" {
					j.Stages[0].Elasticity, j.Stages[0].MinMemory = cluster.Elasticity{Kind: cluster.Step, Factor: 2}, resource.GB
				}
			})
			p, err := policy.New("fifo", nil)
			if err != nil {
				t.Fatal(err)
			}
			ordered, answers := map[cluster.DecisionID]bool{}, 0
			config := sim.Config{Nodes: []cluster.Node{{Name: "n1", Capacity: vector(c.nodes, 8, 0, 0)}}, KeepTasks: true,
				Caps: c.caps, ResizeDelay: c.delay}
			config.Series.Nodes = true
			config.Machine.Swap, config.Machine.Paging = c.swap,
				sim.Paging{{Resident: 0.5, Slowdown: 2}, {Resident: 1, Slowdown: 1}}
			config.Flex.Manager = memory.Default()
			config.Observe = func(_ timeline.Time, events []cluster.Event, decisions []cluster.Decision) {
				for _, e := range events {
					if ordered[e.Decision] {
						answers++
					}
				}
				for _, d := range decisions {
					if d.Kind == cluster.Resize {
						ordered[d.ID] = true
					}
				}
			}
			res, err := sim.Run(config, &workload.Workload{Jobs: []workload.Job{job}}, &resizes{p, c.at})
			if err != nil {
				t.Fatal(err)
			}
			wantEnds(t, res, c.ends)
			if len(ordered) != len(c.at) || c.delay < 9*s && answers != len(ordered) || res.Resizes != c.count {
				t.Errorf("%d orders, %d answers, %d resizes, want %d", len(ordered), answers, res.Resizes, c.count)
			}
			last := res.Nodes[0].Steps[len(res.Nodes[0].Steps)-1]
			if last.Granted != (resource.Vector{}) || last.Demand != (resource.Vector{}) {
				t.Errorf("left over %+v", last)
			}
		})
	}
}

var cpu = resource.KindsOf(resource.CPU)
