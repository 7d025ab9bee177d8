package ecs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// ecsSets are the task sets of Table V, by how many intervals each lasts. Set A is critical: it lasts as long as the
// window.
var ecsSets = []struct {
	name  string
	lasts int
}{{"A", 15}, {"B", 12}, {"C", 2}, {"D", 6}, {"E", 8}, {"F", 9}}

const (
	ecsWindow = 15               // intervals of Fig. 10
	interval  = 10 * time.Second // its length: assumed
)

// setsOf returns the six sets as stages of one job that wait for nothing, so that each has the float of Table V. Each
// has 5 to 7 tasks, and is of maps or of reduces with phases of random lengths, drawn from r; A is of reduces.
func setsOf(r *rand.Rand) *workload.Workload {
	j := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "sets"}}
	for i, set := range ecsSets {
		j.Stages = append(j.Stages, setOf(set.name, set.lasts, 5+r.IntN(3), i == 0, r))
	}
	return &workload.Workload{Jobs: []workload.Job{j}}
}

// setOf is a set of tasks that lasts some intervals.
func setOf(name string, lasts, tasks int, critical bool, r *rand.Rand) cluster.Stage {
	whole := float64(lasts) * interval.Seconds()
	s := cluster.Stage{Name: name, Tasks: tasks, Ideal: usual.native, Told: cluster.Provenance{Model: "given"}}
	first := 0.2 + 0.6*r.Float64()
	if !critical && r.IntN(2) == 0 {
		s.Phases = []cluster.Phase{phase("map", whole*first, demand(1, 1.5)),
			phase("sort", whole*(1-first), demand(0.5, 2))}
	} else {
		first *= 0.9
		s.Phases = []cluster.Phase{phase("shuffle", whole*first, demand(0.3, 1)),
			phase("sort", whole*0.1, demand(0.5, 1.5)), phase("reduce", whole*(0.9-first), demand(1, 2))}
	}
	s.Duration = s.RunTime()
	return s
}

// The schedulers of section V.D, and the products. All grant CPU by phase. Capacity looks at what is free now alone.
// The claims are about the first three.
var levelers = slices.Concat([]lab.Contender{with("Capacity", "leveling", "false", "short", "false"),
	{Contender: trial.Contender{Label: "contention-aware", Policy: "contention-aware"}},
	own, with("ECS, α and β of a core", "short", "false", "units", "core"),
	with("ECS, H_RF 0", "short", "false", "threshold", "0"), weight}, products)

// ecsProfile is what the sets demanded of a node over time.
type ecsProfile struct {
	Makespan float64   `json:"makespan_s"`
	Idle     float64   `json:"fa"`    // in the window, of the capacity
	Over     float64   `json:"oa"`    // until the end, of the capacity in the window
	Whole    float64   `json:"whole"` // what is idle until the end, of the capacity until then
	Stops    int       `json:"stops"`
	Demand   []float64 `json:"demand"` // of the capacity, mean of each interval
}

// profileOf simulates the sets on one node of 16 cores.
func profileOf(c lab.Contender, w *workload.Workload) (p ecsProfile, err error) {
	config := config(sim.Uniform(1, resource.Of(16*resource.Core, 128*resource.GB)))
	config.Heartbeat, config.StartsPerHeartbeat, config.CoordinatorHeartbeat, config.Startup = 0, 0, 0, sim.Startup{}
	config.Series.Nodes = true
	config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		p.Stops += stopsIn(decisions)
	}
	r, err := c.Succeed(config, w)
	if err != nil {
		return p, err
	}
	n, end := &r.Nodes[0], r.Makespan.Seconds()
	p.Makespan = end
	for from := 0.0; from < max(end, ecsWindow*interval.Seconds()); from += interval.Seconds() {
		a := lab.AreasOf(n, resource.CPU, from, from+interval.Seconds())
		p.Demand = append(p.Demand, a.Demand())
		p.Over += a.Over / ecsWindow
		if len(p.Demand) <= ecsWindow {
			p.Idle += a.Idle / ecsWindow
		}
	}
	p.Whole = lab.AreasOf(n, resource.CPU, 0, end).Idle
	return p, nil
}

// stopsIn counts decisions to stop a task.
func stopsIn(decisions []cluster.Decision) (n int) {
	for i := range decisions {
		if decisions[i].Kind == cluster.Suspend {
			n++
		}
	}
	return n
}

func figure10(l *lab.Lab) (*lab.Findings, error) {
	t, err := lab.EachRun(l, "schedulers", len(levelers), func(point, run int) (ecsProfile, error) {
		return profileOf(levelers[point], setsOf(rand.New(rand.NewPCG(l.RunSeed(run), 10))))
	})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Demand on one node, of its 16 cores (median of the draws, and range)", "scheduler",
		"fragmentation in the window", "over-allocation until the end", "fragmentation until the end", "end",
		"fragmentation in the window less that of Capacity, mean", "stops")
	data := lab.NewTable("profiles", "scheduler", "run", "makespan_s", "fa", "oa", "fa_whole", "stops")
	for i, c := range levelers {
		share := func(number func(ecsProfile) float64) string {
			return lab.AcrossTraces(lab.Scaled(lab.Values(t[i], number), 100), 0) + " %"
		}
		table.Add(c.Label, share(windowIdle), share(windowOver), share(func(p ecsProfile) float64 { return p.Whole }),
			lab.AcrossTraces(lab.Values(t[i], func(p ecsProfile) float64 { return p.Makespan }), 0)+" s",
			points(lab.Mean(lab.Values(t[i], windowIdle))-lab.Mean(lab.Values(t[0], windowIdle))),
			lab.AcrossTraces(lab.Values(t[i], func(p ecsProfile) float64 { return float64(p.Stops) }), 0))
		for run, p := range t[i] {
			data.Put(c.Label, run, p.Makespan, p.Idle, p.Over, p.Whole, p.Stops)
		}
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: fig10Claims(t),
		Pictures: []lab.Picture{{Name: "profiles",
			Caption: "Demand of the six task sets on a node over time, by scheduler, first draw (simulated)",
			Picture: profilesOf(t)}}}, nil
}

func windowIdle(p ecsProfile) float64 { return p.Idle }
func windowOver(p ecsProfile) float64 { return p.Over }

// profilesOf draws the first draw.
func profilesOf(t [][]ecsProfile) *chart.Tracks {
	p := &chart.Tracks{Title: "Demand of six task sets on a node", X: "time, s",
		Subtitle: "simulated; demand over capacity, mean of each interval of 10 s"}
	top := 1.2
	for i := range t {
		_, most := lab.Extremes(t[i][0].Demand)
		top, p.To = max(top, most), max(p.To, float64(len(t[i][0].Demand))*interval.Seconds())
	}
	for i, c := range levelers {
		y := t[i][0].Demand
		x := make([]float64, len(y)+1)
		for k := range x {
			x[k] = float64(k) * interval.Seconds()
		}
		p.Rows = append(p.Rows, chart.Track{Name: c.Label, Top: top, High: 70, X: x,
			Areas: []chart.Area{{Name: "demand", Y: append(y[:len(y):len(y)], 0), Color: 1}},
			Lines: []chart.Series{{Name: "capacity", X: []float64{0, p.To}, Y: []float64{1, 1}, Dashed: true, Color: 2}}})
	}
	return p
}

// fig10Claims judges the profiles of Capacity, of the contention-aware scheduler and of ECS, by run.
func fig10Claims(t [][]ecsProfile) []lab.Claim {
	const fig = "ecs/fig10"
	idle := func(i int) float64 { return lab.Mean(lab.Values(t[i], windowIdle)) }
	over := func(i int) float64 { return lab.Mean(lab.Values(t[i], windowOver)) }
	more := idle(1)/idle(0) - 1
	return []lab.Claim{
		Paper.Stated(fig, "oblivious").Judge(fmt.Sprintf("over-allocation %s, fragmentation %s", lab.Percent(over(0)),
			lab.Percent(idle(0))), over(0) >= 0.05 && idle(0) >= 0.05, over(0) >= 0.05 || idle(0) >= 0.05),
		Paper.Stated(fig, "eliminated").Judge(lab.Percent(over(1))+" over-allocation", over(1) <= over(0)/10,
			over(1) <= over(0)/2),
		judgeGains(Paper.Stated(fig, "fragmentation"), fmt.Sprintf("%s more, %s of the node", lab.Percent(more),
			points(idle(1)-idle(0))),
			gained{0.15, more}),
		Paper.Stated(fig, "leveled").Judge(fmt.Sprintf("over-allocation %s, fragmentation %s", lab.Percent(over(2)),
			lab.Percent(idle(2))),
			over(2) <= over(0)/2 && idle(2) <= idle(1), over(2) < over(0)),
	}
}
