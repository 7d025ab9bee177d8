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

// condition is a way to run a workload: whose forecasts it has, and how CPU is granted.
type condition struct {
	oracle bool
	weight bool // under all schedulers a grant is a weight, without any limit
}

var conditions = []condition{{false, false}, {true, false}, {false, true}, {true, true}}

func (c condition) names() (forecast, grant string) {
	forecast, grant = "learned", "quota"
	if c.oracle {
		forecast = "oracle"
	}
	if c.weight {
		grant = "weight"
	}
	return forecast, grant
}

// unleveled grants by phase and stops nothing. byWeight has weights and limits (ecs.cpu=weight), under every
// condition.
const (
	unleveled = "ECS without leveling"
	byWeight  = "ECS by weight"
)

// ecsOnRecorded are the schedulers, with an interval of ecs, and the products, whose intervals are what they are by
// default.
func ecsOnRecorded(interval string) []lab.Contender {
	return append([]lab.Contender{capacity, {Contender: trial.Contender{Label: "contention-aware",
		Policy: "contention-aware"}}, prism, with(unleveled, "short", "false", "leveling", "false"),
		with("ECS", "short", "false", "interval", interval), with(byWeight, "short", "false", "interval", interval,
			"cpu", "weight")}, products...)
}

// outcome is the outcome of a workload. Shares are of the cores until the last job ends.
type outcome struct {
	Makespan   float64 `json:"makespan_s"`
	Completion float64 `json:"completion_s"` // mean of the jobs
	Task       float64 `json:"task_s"`       // mean run time of a task
	CPU        float64 `json:"cpu"`          // used
	Over       float64 `json:"oa"`           // demanded beyond what a node has
	Stops      int     `json:"stops"`
	Beyond     float64 `json:"beyond"` // share of the CPU of tasks that is above their forecast
}

// onRecorded simulates a workload on nodes that acquire work at once.
func onRecorded(c lab.Contender, nodes []cluster.Node, weight bool, w *workload.Workload) (o outcome, err error) {
	config := config(nodes)
	config.Heartbeat, config.StartsPerHeartbeat, config.CoordinatorHeartbeat, config.Startup = 0, 0, 0, sim.Startup{}
	config.KeepTasks, config.Series.Nodes = true, true
	if weight {
		config.Caps = 0
	}
	config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
		o.Stops += stopsIn(decisions)
	}
	r, err := c.Succeed(config, w)
	if err != nil {
		return o, err
	}
	o.Makespan, o.Completion, o.Beyond = r.Makespan.Seconds(), r.AverageJobRuntime.Seconds(), beyondForecast(w)
	o.Task = lab.Ran(r) / float64(len(r.Tasks))
	for i := range r.Nodes {
		n := &r.Nodes[i]
		o.CPU += usedOf(n, resource.CPU,
			timeline.Time(r.Makespan)) / float64(n.Steps[0].Capacity[resource.CPU]) / o.Makespan / float64(len(nodes))
		o.Over += lab.AreasOf(n, resource.CPU, 0, o.Makespan).Over / float64(len(nodes))
	}
	return o, nil
}

// outcomes are the outcomes by source, condition, scheduler, and draw.
type outcomes [][][][]outcome

func onReal(l *lab.Lab) (*lab.Findings, error) {
	sources := ecsSources
	if l.Quick {
		sources = sources[1:2]
	}
	f := &lab.Findings{}
	var all outcomes
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
	f.Tables, f.Data, f.Claims = realTables(sources, all), []lab.Table{realData(sources, all)},
		realClaims(sources, all)
	return f, nil
}

// draws are the random numbers of a run.
func (s *source) draws(l *lab.Lab, run int) *rand.Rand {
	return rand.New(rand.NewPCG(l.RunSeed(run), 0xda7a))
}

// outcomes are those of a source, by condition, scheduler, and draw.
func (s *source) outcomes(l *lab.Lab, recorded []workload.Job) (all [][][]outcome, err error) {
	some := *l
	if !s.drawn {
		some.Runs = 1
	}
	schedulers := ecsOnRecorded(s.interval)
	t, err := lab.EachRun(&some, s.name, len(conditions)*len(schedulers), func(point, run int) (outcome, error) {
		c := conditions[point/len(schedulers)]
		w, err := s.workload(recorded, s.draws(l, run), c.oracle)
		if err != nil {
			return outcome{}, err
		}
		return onRecorded(schedulers[point%len(schedulers)], s.nodes, c.weight, w)
	})
	if err != nil {
		return nil, err
	}
	for i := range conditions {
		all = append(all, t[i*len(schedulers):(i+1)*len(schedulers)])
	}
	return all, nil
}

func recordedEnds(o outcome) float64      { return o.Makespan }
func recordedCompletes(o outcome) float64 { return o.Completion }
func recordedTask(o outcome) float64      { return o.Task }
func recordedCPU(o outcome) float64       { return o.CPU }
func recordedOver(o outcome) float64      { return o.Over }

// realTables has a table for each source.
func realTables(sources []source, all outcomes) (tables []lab.Table) {
	for i := range sources {
		s := &sources[i]
		t := lab.NewTable(s.name+" (recorded demand, simulated schedulers; means of the draws)", "forecasts",
			"a grant of CPU is a", "scheduler", "last job ends", "over static boxes", "job completes", "over static boxes",
			"task runs, over static boxes", "CPU used", "CPU demanded beyond capacity", "stops",
			"CPU of tasks above their forecast")
		for k, c := range conditions {
			forecast, grant := c.names()
			for at, scheduler := range ecsOnRecorded(s.interval) {
				of := func(number func(outcome) float64) float64 { return lab.Mean(lab.Values(all[i][k][at], number)) }
				over := func(number func(outcome) float64) string {
					return lab.Decimals(of(number)/lab.Mean(lab.Values(all[i][k][0], number)), 2)
				}
				hours := func(number func(outcome) float64) string {
					return time.Duration(of(number) * 1e9).Round(time.Second).String()
				}
				t.Add(forecast, grant, scheduler.Label, hours(recordedEnds), over(recordedEnds), hours(recordedCompletes),
					over(recordedCompletes), over(recordedTask), lab.Percent(of(recordedCPU)), lab.Percent(of(recordedOver)),
					lab.Decimals(of(func(o outcome) float64 { return float64(o.Stops) }), 0),
					lab.Percent(of(func(o outcome) float64 { return o.Beyond })))
			}
		}
		tables = append(tables, t)
	}
	return tables
}

func realData(sources []source, all outcomes) lab.Table {
	data := lab.NewTable("outcomes", "source", "forecasts", "grant", "scheduler", "draw", "makespan_s", "completion_s",
		"task_s", "cpu", "oa", "stops", "beyond")
	for i := range sources {
		for k, c := range conditions {
			forecast, grant := c.names()
			for at, scheduler := range ecsOnRecorded(sources[i].interval) {
				for run, o := range all[i][k][at] {
					data.Put(sources[i].name, forecast, grant, scheduler.Label, run, o.Makespan, o.Completion, o.Task, o.CPU, o.Over,
						o.Stops, o.Beyond)
				}
			}
		}
	}
	return data
}

// picture draws what machines of the first draw used, and what was forecast.
func (s *source) picture(l *lab.Lab, recorded []workload.Job) (lab.Picture, error) {
	learned, err := s.workload(recorded, s.draws(l, 0), false)
	if err != nil {
		return lab.Picture{}, err
	}
	told, err := s.workload(recorded, s.draws(l, 0), true)
	if err != nil {
		return lab.Picture{}, err
	}
	p := &chart.Tracks{Title: "CPU of machines of " + s.name, Subtitle: "recorded; each to its own scale, in cores",
		X: "time, s"}
	for at := range min(2, len(learned.Jobs)) {
		for k := range learned.Jobs[at].Stages {
			stage := &learned.Jobs[at].Stages[k]
			truth, _ := learned.Jobs[at].Truth[k].Phases.Of(0)
			used := coresOf("used", truth)
			used.Y[len(used.Y)-1] = 0 // it has ended
			t := chart.Track{Name: stage.Name, Top: 1.05 * max(float64(lab.UsageOf(truth).Peak[resource.CPU]),
				float64(stage.Ideal[resource.CPU])) / float64(resource.Core), High: 50, X: used.X,
				Areas: []chart.Area{{Name: "used", Y: used.Y, Color: 1}}}
			t.Notes = []string{"box " + lab.Decimals(float64(stage.Ideal[resource.CPU])/float64(resource.Core), 1) + " cores"}
			forecast, oracle := coresOf("forecast, learned", stage.Phases),
				coresOf("forecast, oracle", told.Jobs[at].Stages[k].Phases)
			forecast.Color, oracle.Color, oracle.Dashed = 2, 3, true
			t.Lines = []chart.Series{forecast, oracle}
			p.Rows, p.To = append(p.Rows, t), max(p.To, lab.UsageOf(truth).Lasts)
		}
	}
	return lab.Picture{Name: map[string]string{"Bitbrains": "bitbrains", "Google": "google"}[s.name],
		Caption: "What machines of " +
			s.name + " used (recorded), what bellows had learned to forecast, and an oracle", Picture: p}, nil
}

// of is the mean of a number of a scheduler, and NaN for a source that did not run.
func (all outcomes) of(sources []source, source string, c condition, scheduler string,
	number func(outcome) float64) float64 {
	var numbers []float64
	for i := range all {
		if sources[i].name == source {
			at := lab.Place(scheduler, ecsOnRecorded(""))
			numbers = lab.Values(all[i][slices.Index(conditions, c)][at], number)
		}
	}
	return lab.Mean(numbers)
}

// gains are by what share a number is smaller under ECS than under another scheduler, by source.
func (all outcomes) gains(sources []source, c condition, over string,
	number func(outcome) float64) (text string, each []float64) {
	for i, s := range ecsSources {
		gain := 1 - all.of(sources, s.name, c, "ECS", number)/all.of(sources, s.name, c, over, number)
		if each = append(each, gain); i > 0 {
			text += ", "
		}
		text += s.name + " " + lab.Percent(gain)
	}
	return text, each
}

// usual are gains with the forecasts and the grants that ECS would have: learned, and quotas. The text has those
// under other conditions, too.
func (all outcomes) usual(sources []source, over string, number func(outcome) float64) (text string,
	each []float64) {
	text, each = all.gains(sources, conditions[0], over, number)
	oracle, _ := all.gains(sources, conditions[1], over, number)
	weight, _ := all.gains(sources, conditions[2], over, number)
	both, _ := all.gains(sources, conditions[3], over, number)
	return fmt.Sprintf("%s; with an oracle: %s; with weights: %s; with both: %s", text, oracle, weight, both), each
}

// leveling is how much over-allocation there is with and without leveling, where it stops tasks, and how much longer it
// makes the last job, and the mean one, at most in a draw in which it does; acted counts these draws.
func (all outcomes) leveling() (with, without, worst float64, acted int) {
	level, none := lab.Place("ECS", ecsOnRecorded("")), lab.Place(unleveled, ecsOnRecorded(""))
	for i := range all {
		for k := range all[i] {
			on, off, before := all[i][k][level], all[i][k][none], acted
			for run := range on {
				if on[run].Stops > 0 {
					acted++
					worst = max(worst, on[run].Makespan/off[run].Makespan, on[run].Completion/off[run].Completion)
				}
			}
			if acted > before {
				with += lab.Mean(lab.Values(on, recordedOver))
				without += lab.Mean(lab.Values(off, recordedOver))
			}
		}
	}
	return with, without, worst, acted
}

// leveled says whether ECS stops a task of a source under a condition.
func (all outcomes) leveled(sources []source, source string, c condition) bool {
	return all.of(sources, source, c, "ECS", func(o outcome) float64 { return float64(o.Stops) }) > 0
}

func realClaims(sources []source, all outcomes) []lab.Claim {
	const fig, static = "ecs/real", "Capacity"
	jct, saved := all.usual(sources, static, recordedCompletes)
	_, most := lab.Extremes(saved)
	earlier := countOf(saved, func(gain float64) bool { return gain > 0 })
	rival, overPRISM := all.usual(sources, prism.Label, recordedCompletes)
	var pairs []gained
	for i, gain := range overPRISM {
		if all.leveled(sources, ecsSources[i].name, conditions[0]) {
			pairs = append(pairs, gained{0.16, gain})
		}
	}
	busy, used := all.usual(sources, static, recordedCPU)
	var uses []gained
	for _, less := range used {
		uses = append(uses, gained{0.25, -less})
	}
	with, without, worst, acted := all.leveling()
	leveled, harmless := Paper.Stated(fig, "leveled").NeverActed("0 stops", "Leveling"),
		Paper.Stated(fig, "harmless").NeverActed("0 stops", "Leveling")
	if acted > 0 {
		leveled = Paper.Stated(fig, "leveled").Judge(lab.Percent(with/without)+" is left", without > 0 && with <= without/2,
			with < without)
		harmless = Paper.Stated(fig, "harmless").Judge(fmt.Sprintf("at worst %sx, in %d draws", lab.Decimals(worst, 3),
			acted), worst <= 1.01, worst <= 1.03)
	}
	return []lab.Claim{
		judgeGains(Paper.Stated(fig, "jct"), jct, gained{0.29, most}),
		Paper.Stated(fig, "all").Judge(fmt.Sprintf("%d of %d", earlier, len(saved)), earlier == len(saved),
			2*earlier > len(saved)),
		judgeGains(Paper.Stated(fig, "utilisation"), busy, uses...),
		judgeActed(Paper.Stated(fig, "prism"), len(pairs) > 0, rival, pairs...),
		leveled, harmless,
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
