package ecs

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// ecsError is by what the forecasts of all tasks are multiplied: how long phases last, and the CPU that they demand.
type ecsError struct {
	name             string
	lengths, demands float64
	stageByStage     bool // each stage has both factors drawn, half or twice
}

// ecsErrors begin with forecasts that are right for the mean task.
var ecsErrors = []ecsError{
	{"right", 1, 1, false},
	{"half the CPU", 1, 0.5, false}, {"twice the CPU", 1, 2, false},
	{"half as long", 0.5, 1, false}, {"twice as long", 2, 1, false},
	{"each stage by itself", 1, 1, true},
}

// tell changes what schedulers know, and not what tasks do. A task that is said to demand more than a static
// container requests as much.
func (e *ecsError) tell(w *workload.Workload, seed uint64) *workload.Workload {
	r := rand.New(rand.NewPCG(seed, 0x3770))
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			s, lengths, demands := &w.Jobs[i].Stages[k], e.lengths, e.demands
			if e.stageByStage {
				lengths, demands = [2]float64{0.5, 2}[r.IntN(2)], [2]float64{0.5, 2}[r.IntN(2)]
			}
			for p := range s.Phases {
				told := &s.Phases[p]
				told.Duration = time.Duration(float64(told.Duration) * lengths)
				told.Demand[resource.CPU] = resource.Amount(float64(told.Demand[resource.CPU]) * demands)
				s.Ideal = s.Ideal.Max(resource.Vector{}.With(resource.CPU, told.Demand[resource.CPU]))
			}
			s.Duration = time.Duration(float64(s.Duration) * lengths)
		}
	}
	return w
}

// wrongSweep has trials by treatment of short tasks, error, without and with leveling, and run.
type wrongSweep [][][2][]ecsTrial

// over returns the makespans of an error with leveling over those without.
func (s wrongSweep) over(of, e int) []float64 {
	t := &s[of][e]
	return lab.Ratios(numbersOf(t[1], ends), numbersOf(t[0], ends))
}

// with returns the mean of a number of an error, with leveling (1) or without (0), over both treatments.
func (s wrongSweep) with(e, leveling int, number func(*ecsTrial) float64) float64 {
	return lab.Mean(lab.Pooled(s, func(of [][2][]ecsTrial) []float64 { return numbersOf(of[e][leveling], number) }))
}

func wrong(l *lab.Lab) (*lab.Findings, error) {
	errors, part := ecsErrors, halfPart
	if l.Quick {
		errors, part = []ecsError{ecsErrors[0], ecsErrors[2], ecsErrors[5]}, 4*part
	}
	var s wrongSweep
	for _, treated := range treated {
		t, err := lab.EachRun(l, treated.name, 2*len(errors), func(point, run int) (ecsTrial, error) {
			c := with("ECS", "short", treated.short, "leveling", []string{"false", "true"}[point%2])
			w := errors[point/2].tell(usual.loaded(part, l.RunSeed(run)), l.RunSeed(run))
			return replayECS(c, half.cluster(), w)
		})
		if err != nil {
			return nil, err
		}
		var of [][2][]ecsTrial
		for e := range errors {
			of = append(of, [2][]ecsTrial{t[2*e], t[2*e+1]})
		}
		s = append(s, of)
	}
	f := &lab.Findings{Claims: wrongClaims(s),
		Pictures: []lab.Picture{{Name: "wrong",
			Caption: "Makespan with leveling over that without, by how forecasts are wrong (simulated)",
			Picture: s.picture(errors)}}}
	data := lab.NewTable("trials", "short", "forecasts", "leveling", "run", "makespan_s", "completion_s", "oa_s", "stops",
		"problems")
	for of, treated := range treated {
		table := lab.NewTable("Under ECS, "+treated.name+" (means of the runs)", "forecasts", "makespan without leveling",
			"with leveling over that, geometric mean of the pairs", "worst", "mean completion, with over without",
			"stops of tasks", "problems to solve", "over-allocation without leveling, seconds of the cluster", "with leveling")
		for e := range errors {
			number := func(leveling int, n func(*ecsTrial) float64) float64 {
				return lab.Mean(numbersOf(s[of][e][leveling], n))
			}
			_, worst := lab.Extremes(s.over(of, e))
			table.Add(errors[e].name, lab.Decimals(number(0, ends), 0)+" s", lab.Decimals(trial.GeometricMean(s.over(of,
				e)).Mean,
				3), lab.Decimals(worst, 3), lab.Decimals(number(1, completes)/number(0, completes), 3), lab.Decimals(number(1,
				ecsStops), 0),
				lab.Decimals(number(1, asks), 0),
				lab.Decimals(number(0, overTime), 1), lab.Decimals(number(1, overTime), 1))
			for leveling, on := range []bool{false, true} {
				for run, t := range s[of][e][leveling] {
					data.Put(treated.name, errors[e].name, on, run, t.Makespan, t.Completion, overTime(&t), t.Stops, t.Asks)
				}
			}
		}
		f.Tables = append(f.Tables, table)
	}
	f.Data = []lab.Table{data}
	return f, nil
}

// picture draws the geometric means, with the least and the largest of the runs.
func (s wrongSweep) picture(errors []ecsError) *chart.Bars {
	b := &chart.Bars{Title: "Makespan with leveling over that without",
		Subtitle: "simulated; bars are geometric means, lines reach from the least to the largest run", Y: "ratio",
		Lines: []chart.Rule{{At: 1.1, Label: "1.1"}}, Width: 960}
	for i := range errors {
		b.Groups = append(b.Groups, errors[i].name)
	}
	for of, treated := range treated {
		bars := chart.BarSeries{Name: treated.name}
		for e := range errors {
			least, most := lab.Extremes(s.over(of, e))
			bars.Values = append(bars.Values, trial.GeometricMean(s.over(of, e)).Mean)
			bars.Low, bars.High = append(bars.Low, least), append(bars.High, most)
		}
		b.Series = append(b.Series, bars)
	}
	return b
}

// wrongClaims judges leveling by forecasts that are right, the first, and by wrong ones.
func wrongClaims(s wrongSweep) []lab.Claim {
	const fig = "ecs/wrong"
	worst, runs, stops, less, kinds := 0.0, 0, 0.0, 0, 0 // of runs and of kinds in which tasks are stopped
	for e := 1; e < len(s[0]); e++ {
		for of := range s {
			for run, over := range s.over(of, e) {
				if s[of][e][1][run].Stops > 0 {
					worst, runs = max(worst, over), runs+1
				}
			}
		}
		if s.with(e, 1, ecsStops) == 0 {
			continue
		}
		kinds, stops = kinds+1, max(stops, s.with(e, 1, ecsStops))
		if s.with(e, 1, overTime) <= s.with(e, 0, overTime) {
			less++
		}
	}
	right := s.with(0, 1, ecsStops)
	if kinds == 0 {
		var none []lab.Claim
		for _, id := range []string{"harmless", "overhead", "over"} {
			none = append(none, Paper.Stated(fig, id).NeverActed("0 stops", "Leveling"))
		}
		return none
	}
	return []lab.Claim{
		Paper.Stated(fig, "harmless").Judge(fmt.Sprintf("at worst %s times the makespan without leveling, in %d runs",
			lab.Decimals(worst, 3), runs), worst <= 1.01, worst <= 1.03),
		Paper.Stated(fig, "overhead").Judge(fmt.Sprintf("at most %s stops per run, %s with right forecasts",
			lab.Decimals(stops, 0),
			lab.Decimals(right, 0)), stops <= 2*right, stops <= 4*right),
		Paper.Stated(fig, "over").Judge(fmt.Sprintf("no more with %d of %d kinds of wrong forecasts", less, kinds),
			less == kinds, 2*less > kinds),
	}
}
