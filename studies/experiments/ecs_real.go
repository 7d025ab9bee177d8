package experiments

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
)

// ecsCondition is a way to run a workload: whose forecasts it has, and how CPU is granted.
type ecsCondition struct {
	oracle bool
	weight bool // under all schedulers a grant is a weight, without any limit
}

var ecsConditions = []ecsCondition{{false, false}, {true, false}, {false, true}, {true, true}}

func (c ecsCondition) names() (forecast, grant string) {
	forecast, grant = "learned", "quota"
	if c.oracle {
		forecast = "oracle"
	}
	if c.weight {
		grant = "weight"
	}
	return forecast, grant
}

// ecsUnleveled grants by phase and stops nothing. ecsByWeight has weights and limits (ecs.cpu=weight), under every
// condition.
const (
	ecsUnleveled = "ECS without leveling"
	ecsByWeight  = "ECS by weight"
)

// ecsOnRecorded are the schedulers, with an interval of ecs.
func ecsOnRecorded(interval string) []contender {
	return []contender{ecsCapacity, {Contender: trial.Contender{Label: "contention-aware", Policy: "contention-aware"}},
		ecsPRISM, ecsWith(ecsUnleveled, "short", "false", "leveling", "false"),
		ecsWith("ECS", "short", "false", "interval", interval), ecsWith(ecsByWeight, "short", "false", "interval", interval,
			"cpu", "weight")}
}

// ecsOutcome is the outcome of a workload. Shares are of the cores until the last job ends.
type ecsOutcome struct {
	Makespan   float64 `json:"makespan_s"`
	Completion float64 `json:"completion_s"` // mean of the jobs
	Task       float64 `json:"task_s"`       // mean run time of a task
	CPU        float64 `json:"cpu"`          // used
	Over       float64 `json:"oa"`           // demanded beyond what a node has
	Stops      int     `json:"stops"`
	Beyond     float64 `json:"beyond"` // share of the CPU of tasks that is above their forecast
}

// onRecorded simulates a workload on nodes that acquire work at once.
func (c contender) onRecorded(nodes []cluster.Node, weight bool, w *workload.Workload) (o ecsOutcome, err error) {
	config := ecsConfig(nodes)
	config.Heartbeat, config.StartsPerHeartbeat, config.CoordinatorHeartbeat, config.Startup = 0, 0, 0, sim.Startup{}
	config.KeepTasks, config.Series.Nodes = true, true
	if weight {
		config.Caps = 0
	}
	config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		o.Stops += stopsIn(decisions)
	}
	r, err := c.succeed(config, w)
	if err != nil {
		return o, err
	}
	o.Makespan, o.Completion, o.Beyond = r.Makespan.Seconds(), r.AverageJobRuntime.Seconds(), beyondForecast(w)
	o.Task = ran(r) / float64(len(r.Tasks))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		o.CPU += usedOf(n, resource.CPU,
			timeline.Time(r.Makespan)) / float64(n.Steps[0].Capacity[resource.CPU]) / o.Makespan / float64(len(nodes))
		o.Over += areasOf(n, resource.CPU, 0, o.Makespan).Over / float64(len(nodes))
	}
	return o, nil
}

// ecsOutcomes are the outcomes by source, condition, scheduler, and draw.
type ecsOutcomes [][][][]ecsOutcome

func ecsOnReal(l *lab) (*Findings, error) {
	sources := ecsSources
	if l.quick {
		sources = sources[1:2]
	}
	f := &Findings{}
	var all ecsOutcomes
	for i := range sources {
		s := &sources[i]
		recorded, err := s.read(l.Settings.Data)
		if err != nil {
			return nil, fmt.Errorf("read the recorded data: %w", err)
		}
		outcomes, err := s.outcomes(l, recorded)
		if err != nil {
			return nil, err
		}
		all = append(all, outcomes)
		if s.drawn {
			picture, err := s.picture(l, recorded)
			if err != nil {
				return nil, err
			}
			f.Pictures = append(f.Pictures, picture)
		}
	}
	f.Tables, f.Data, f.Claims = ecsRealTables(sources, all), []Table{ecsRealData(sources, all)},
		ecsRealClaims(sources, all)
	return f, nil
}

// draws are the random numbers of a run.
func (s *ecsSource) draws(l *lab, run int) *rand.Rand {
	return rand.New(rand.NewPCG(l.seed(run), 0xda7a))
}

// outcomes are those of a source, by condition, scheduler, and draw.
func (s *ecsSource) outcomes(l *lab, recorded []workload.Job) (all [][][]ecsOutcome, err error) {
	some := *l
	if !s.drawn {
		some.Runs = 1
	}
	schedulers := ecsOnRecorded(s.interval)
	t, err := eachRun(&some, s.name, len(ecsConditions)*len(schedulers), func(point, run int) (ecsOutcome, error) {
		c := ecsConditions[point/len(schedulers)]
		w, err := s.workload(recorded, s.draws(l, run), c.oracle)
		if err != nil {
			return ecsOutcome{}, err
		}
		return schedulers[point%len(schedulers)].onRecorded(s.nodes, c.weight, w)
	})
	if err != nil {
		return nil, err
	}
	for i := range ecsConditions {
		all = append(all, t[i*len(schedulers):(i+1)*len(schedulers)])
	}
	return all, nil
}

func recordedEnds(o ecsOutcome) float64      { return o.Makespan }
func recordedCompletes(o ecsOutcome) float64 { return o.Completion }
func recordedTask(o ecsOutcome) float64      { return o.Task }
func recordedCPU(o ecsOutcome) float64       { return o.CPU }
func recordedOver(o ecsOutcome) float64      { return o.Over }

// ecsRealTables has a table for each source.
func ecsRealTables(sources []ecsSource, all ecsOutcomes) (tables []Table) {
	for i := range sources {
		s := &sources[i]
		t := newTable(s.name+" (recorded demand, simulated schedulers; means of the draws)", "forecasts",
			"a grant of CPU is a", "scheduler", "last job ends", "over static boxes", "job completes", "over static boxes",
			"task runs, over static boxes", "CPU used", "CPU demanded beyond capacity", "stops",
			"CPU of tasks above their forecast")
		for k, c := range ecsConditions {
			forecast, grant := c.names()
			for at, scheduler := range ecsOnRecorded(s.interval) {
				of := func(number func(ecsOutcome) float64) float64 { return mean(values(all[i][k][at], number)) }
				over := func(number func(ecsOutcome) float64) string {
					return decimals(of(number)/mean(values(all[i][k][0], number)), 2)
				}
				hours := func(number func(ecsOutcome) float64) string {
					return time.Duration(of(number) * 1e9).Round(time.Second).String()
				}
				t.add(forecast, grant, scheduler.Label, hours(recordedEnds), over(recordedEnds), hours(recordedCompletes),
					over(recordedCompletes), over(recordedTask), percent(of(recordedCPU)), percent(of(recordedOver)),
					decimals(of(func(o ecsOutcome) float64 { return float64(o.Stops) }), 0),
					percent(of(func(o ecsOutcome) float64 { return o.Beyond })))
			}
		}
		tables = append(tables, t)
	}
	return tables
}

func ecsRealData(sources []ecsSource, all ecsOutcomes) Table {
	data := newTable("outcomes", "source", "forecasts", "grant", "scheduler", "draw", "makespan_s", "completion_s",
		"task_s", "cpu", "oa", "stops", "beyond")
	for i := range sources {
		for k, c := range ecsConditions {
			forecast, grant := c.names()
			for at, scheduler := range ecsOnRecorded(sources[i].interval) {
				for run, o := range all[i][k][at] {
					data.put(sources[i].name, forecast, grant, scheduler.Label, run, o.Makespan, o.Completion, o.Task, o.CPU, o.Over,
						o.Stops, o.Beyond)
				}
			}
		}
	}
	return data
}

// picture draws what machines of the first draw used, and what was forecast.
func (s *ecsSource) picture(l *lab, recorded []workload.Job) (Picture, error) {
	learned, err := s.workload(recorded, s.draws(l, 0), false)
	if err != nil {
		return Picture{}, err
	}
	told, err := s.workload(recorded, s.draws(l, 0), true)
	if err != nil {
		return Picture{}, err
	}
	p := &chart.Tracks{Title: "CPU of machines of " + s.name, Subtitle: "recorded; each to its own scale, in cores",
		X: "time, s"}
	for at := range min(2, len(learned.Jobs)) {
		for k := range learned.Jobs[at].Stages {
			stage := &learned.Jobs[at].Stages[k]
			truth, _ := learned.Jobs[at].Truth[k].Phases.Of(0)
			used := coresOf("used", truth)
			used.Y[len(used.Y)-1] = 0 // it has ended
			t := chart.Track{Name: stage.Name, Top: 1.05 * max(float64(usageOf(truth).peak[resource.CPU]),
				float64(stage.Ideal[resource.CPU])) / float64(resource.Core), High: 50, X: used.X,
				Areas: []chart.Area{{Name: "used", Y: used.Y, Color: 1}}}
			t.Notes = []string{"box " + decimals(float64(stage.Ideal[resource.CPU])/float64(resource.Core), 1) + " cores"}
			forecast, oracle := coresOf("forecast, learned", stage.Phases),
				coresOf("forecast, oracle", told.Jobs[at].Stages[k].Phases)
			forecast.Color, oracle.Color, oracle.Dashed = 2, 3, true
			t.Lines = []chart.Series{forecast, oracle}
			p.Rows, p.To = append(p.Rows, t), max(p.To, usageOf(truth).lasts)
		}
	}
	return Picture{map[string]string{"Bitbrains": "bitbrains", "Google": "google"}[s.name], "What machines of " +
		s.name + " used (recorded), what bellows had learned to forecast, and an oracle", p}, nil
}

// of is the mean of a number of a scheduler, and NaN for a source that did not run.
func (all ecsOutcomes) of(sources []ecsSource, source string, c ecsCondition, scheduler string,
	number func(ecsOutcome) float64) float64 {
	var numbers []float64
	for i := range all {
		if sources[i].name == source {
			at := place(scheduler, ecsOnRecorded(""))
			numbers = values(all[i][slices.Index(ecsConditions, c)][at], number)
		}
	}
	return mean(numbers)
}

// gains are by what share a number is smaller under ECS than under another scheduler, by source.
func (all ecsOutcomes) gains(sources []ecsSource, c ecsCondition, over string,
	number func(ecsOutcome) float64) (text string, each []float64) {
	for i, s := range ecsSources {
		gain := 1 - all.of(sources, s.name, c, "ECS", number)/all.of(sources, s.name, c, over, number)
		if each = append(each, gain); i > 0 {
			text += ", "
		}
		text += s.name + " " + percent(gain)
	}
	return text, each
}

// usual are gains with the forecasts and the grants that ECS would have: learned, and quotas. The text has those
// under other conditions, too.
func (all ecsOutcomes) usual(sources []ecsSource, over string, number func(ecsOutcome) float64) (text string,
	each []float64) {
	text, each = all.gains(sources, ecsConditions[0], over, number)
	oracle, _ := all.gains(sources, ecsConditions[1], over, number)
	weight, _ := all.gains(sources, ecsConditions[2], over, number)
	both, _ := all.gains(sources, ecsConditions[3], over, number)
	return fmt.Sprintf("%s; with an oracle: %s; with weights: %s; with both: %s", text, oracle, weight, both), each
}

// leveling is how much over-allocation there is with and without leveling, and how much longer it makes a run at most.
func (all ecsOutcomes) leveling() (with, without, worst float64) {
	level, none := place("ECS", ecsOnRecorded("")), place(ecsUnleveled, ecsOnRecorded(""))
	for i := range all {
		for k := range all[i] {
			with += mean(values(all[i][k][level], recordedOver))
			without += mean(values(all[i][k][none], recordedOver))
			for run := range all[i][k][level] {
				worst = max(worst, all[i][k][level][run].Makespan/all[i][k][none][run].Makespan)
			}
		}
	}
	return with, without, worst
}

func ecsRealClaims(sources []ecsSource, all ecsOutcomes) []Claim {
	const fig, static = "ecs/real", "Capacity"
	jct, saved := all.usual(sources, static, recordedCompletes)
	_, most := extremes(saved)
	earlier := countOf(saved, func(gain float64) bool { return gain > 0 })
	rival, overPRISM := all.usual(sources, ecsPRISM.Label, recordedCompletes)
	var pairs []gained
	for _, gain := range overPRISM {
		pairs = append(pairs, gained{0.16, gain})
	}
	busy, used := all.usual(sources, static, recordedCPU)
	var uses []gained
	for _, less := range used {
		uses = append(uses, gained{0.25, -less})
	}
	with, without, worst := all.leveling()
	return []Claim{
		stated(fig, "jct").close(jct, gained{0.29, most}),
		stated(fig, "all").judge(fmt.Sprintf("%d of %d", earlier, len(saved)), earlier == len(saved), 2*earlier > len(saved)),
		stated(fig, "utilisation").close(busy, uses...),
		stated(fig, "prism").close(rival, pairs...),
		stated(fig, "leveled").judge(percent(with/without)+" is left", without > 0 && with <= without/2, with < without),
		stated(fig, "harmless").judge(decimals(worst, 2)+"x", worst <= 1.1, worst <= 1.2),
	}
}

// countOf counts the values for which is holds.
func countOf(all []float64, is func(float64) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}
