package ecs

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// loaded fills a cluster with all benchmarks: two jobs of each, submitted one after the other in loadedWindow, so
// that maps of some run beside reduces of others. A job has that part of the usual tasks.
func (a *assumed) loaded(part int, seed uint64) *workload.Workload {
	few := *a
	few.maps, few.reduces = a.maps/part, a.reduces/part
	r := rand.New(rand.NewPCG(seed, 0x10ad))
	w := &workload.Workload{}
	for i := range 2 * len(benchmarks) {
		at := timeline.Time(0).Add(time.Duration(i) * loadedWindow / time.Duration(2*len(benchmarks)))
		w.Jobs = append(w.Jobs, few.job(&benchmarks[i%len(benchmarks)], i+1, at, r))
	}
	return w
}

const loadedWindow = 300 * time.Second

// half is half of the paper's cluster, with half of the tasks of a job: as many tasks per node for half the time
// to simulate.
var half = nodes{"4 nodes of 16 cores and 3 of 20", 4, 3}

const (
	part     = 6 // of the tasks, on the whole cluster
	halfPart = 2 * part
)

// treated are the two ways to treat tasks of short stages, by the value of ecs.short.
var treated = []struct{ name, short string }{{"all tasks alike", "false"}, {"short tasks apart", "true"}}

// detected is a setting of the fluctuation detector: H_RF and λ. Without a threshold ECS does not level.
type detected struct{ threshold, discount string }

var discounts = []string{"0.7", "0.8", "0.9", "0.97"}

// ecsDetected are the settings of the sweep. The first does not level; with a threshold of 0 every node is leveled
// that will be over-allocated, whatever λ is.
func ecsDetected() []detected {
	all := []detected{{}, {"0", "0.9"}}
	for _, threshold := range []string{"2", "5", "10", "20"} {
		for _, discount := range discounts {
			all = append(all, detected{threshold, discount})
		}
	}
	return all
}

func (d detected) contender(short string) lab.Contender {
	if d.threshold == "" {
		return with("no leveling", "short", short, "leveling", "false")
	}
	name := "H_RF " + d.threshold + " s, λ " + d.discount
	if d.threshold == "0" {
		name = "H_RF 0 s"
	}
	return with(name, "short", short, "threshold", d.threshold, "discount", d.discount)
}

// defaults are the settings of the detector that policy ecs has by default.
func defaults() (d detected) {
	_, parameters := policy.About("ecs")
	for _, p := range parameters {
		switch p.Name {
		case "ecs.threshold":
			d.threshold = p.Default
		case "ecs.discount":
			d.discount = p.Default
		}
	}
	return d
}

// detectorSweep has the trials by treatment of short tasks, setting and run.
type detectorSweep struct {
	settings []detected
	trials   [][][]ecsTrial
}

// over returns the ratios of a number of all trials with a setting to the same trials without leveling.
func (s *detectorSweep) over(setting int, number func(*ecsTrial) float64) (all []float64) {
	for of := range s.trials {
		all = append(all, lab.Ratios(numbersOf(s.trials[of][setting], number), numbersOf(s.trials[of][0], number))...)
	}
	return all
}

// each returns the mean of a number of all trials with a setting.
func (s *detectorSweep) each(setting int, number func(*ecsTrial) float64) float64 {
	return lab.Mean(lab.Pooled(s.trials, func(of [][]ecsTrial) []float64 { return numbersOf(of[setting], number) }))
}

// ends is the makespan over that without leveling.
func (s *detectorSweep) ends(setting int) float64 {
	return trial.GeometricMean(s.over(setting, ends)).Mean
}

// removed is the share of the over-allocation without leveling that a setting removes.
func (s *detectorSweep) removed(setting int) float64 {
	return 1 - s.each(setting, overTime)/s.each(0, overTime)
}

// useful says of each setting whether its makespan is at most 1 % above the least and it removes at least half of the
// over-allocation that the best removes. best is the useful setting with the fewest problems to solve; -1 is none.
func (s *detectorSweep) useful() (which []bool, best int) {
	shortest, most := 1.0, 0.0
	for i := range s.settings {
		shortest, most = min(shortest, s.ends(i)), max(most, s.removed(i))
	}
	best = -1
	for i := range s.settings {
		which = append(which, i > 0 && s.ends(i) <= 1.01*shortest && s.removed(i) >= most/2)
		if which[i] && (best < 0 || s.each(i, asks) < s.each(best, asks)) {
			best = i
		}
	}
	return which, best
}

func numbersOf(of []ecsTrial, number func(*ecsTrial) float64) []float64 {
	return lab.Values(of, func(t ecsTrial) float64 { return number(&t) })
}

func detector(l *lab.Lab) (*lab.Findings, error) {
	s, part, unseen := detectorSweep{settings: ecsDetected()}, halfPart, l.Unseen()
	if l.Quick {
		s.settings = []detected{{}, {"0", "0.9"}, defaults(), {defaults().threshold, "0.97"}}
		part *= 4
	}
	for _, treated := range treated {
		t, err := lab.EachRun(l, treated.name, len(s.settings), func(point, run int) (ecsTrial, error) {
			return replayECS(s.settings[point].contender(treated.short), half.cluster(),
				usual.loaded(part, unseen.RunSeed(run)))
		})
		if err != nil {
			return nil, err
		}
		s.trials = append(s.trials, t)
	}
	f := &lab.Findings{Claims: detectorClaims(&s, defaults()),
		Pictures: []lab.Picture{{Name: "detector",
			Caption: "Over-allocation that is left, over the problems to solve, by setting of the detector (simulated)",
			Picture: s.picture()}}}
	which, best := s.useful()
	all := lab.NewTable("Both ways to treat short tasks together (means of the runs)", "H_RF and λ",
		"makespan over that without leveling, "+lab.InPairs, "over-allocation removed", "problems to solve", "stops of tasks",
		"over-allocation removed per problem, seconds of the cluster", "useful")
	for i, d := range s.settings {
		note := "no"
		if which[i] {
			note = "yes"
		}
		if i == best {
			note += ", with the fewest problems"
		}
		all.Add(d.contender("").Label, lab.Interval(trial.GeometricMean(s.over(i, ends)), 3), lab.Percent(s.removed(i)),
			lab.Decimals(s.each(i, asks), 0), lab.Decimals(s.each(i, ecsStops), 0), lab.Decimals(s.perProblem(i), 3), note)
	}
	f.Tables = append(f.Tables, all)
	data := lab.NewTable("trials", "short", "setting", "run", "makespan_s", "completion_s", "oa_s", "stops", "problems",
		"proved", "states")
	for of, treated := range treated {
		table := lab.NewTable("Under ECS, "+treated.name+" (means of the runs)", "H_RF and λ", "makespan", "mean completion",
			"over-allocation, seconds of the cluster", "problems to solve", "stops of tasks")
		for i, d := range s.settings {
			mean := func(number func(*ecsTrial) float64) float64 { return lab.Mean(numbersOf(s.trials[of][i], number)) }
			table.Add(d.contender("").Label, lab.Decimals(mean(ends), 0)+" s", lab.Decimals(mean(completes), 0)+" s",
				lab.Decimals(mean(overTime), 1), lab.Decimals(mean(asks), 0), lab.Decimals(mean(ecsStops), 0))
			for run, t := range s.trials[of][i] {
				data.Put(treated.name, d.contender("").Label, run, t.Makespan, t.Completion, overTime(&t), t.Stops, t.Asks,
					t.Proved, t.States)
			}
		}
		f.Tables = append(f.Tables, table)
	}
	f.Data = []lab.Table{data}
	return f, nil
}

// perProblem is how much over-allocation a setting removes per problem to solve, in seconds of the cluster.
func (s *detectorSweep) perProblem(setting int) float64 {
	return (s.each(0, overTime) - s.each(setting, overTime)) / s.each(setting, asks)
}

// picture draws over-allocation that is left over problems to solve: a line for each λ, a point for each H_RF.
func (s *detectorSweep) picture() *chart.Plot {
	p := &chart.Plot{Title: "What the detector's settings cost, and leave", X: "problems to solve",
		Y:        "over-allocation, of that without leveling",
		Subtitle: "simulated; along a line H_RF is 20, 10, 5, 2 and 0 s, from left to right"}
	for _, discount := range discounts {
		line := chart.Series{Name: "λ " + discount}
		for i := len(s.settings) - 1; i > 0; i-- {
			if s.settings[i].discount == discount || s.settings[i].threshold == "0" {
				line.X, line.Y = append(line.X, s.each(i, asks)), append(line.Y, 1-s.removed(i))
			}
		}
		p.Series = append(p.Series, line)
	}
	return p
}

// detectorClaims judges the settings of the detector that are the defaults of policy ecs.
func detectorClaims(s *detectorSweep, defaults detected) []lab.Claim {
	const fig = "ecs/detector"
	at, always, unweighted := -1, -1, -1
	for i, d := range s.settings {
		switch {
		case d == defaults:
			at = i
		case d.threshold == "0":
			always = i
		case d.threshold == defaults.threshold && d.discount == "0.97":
			unweighted = i
		}
	}
	which, best := s.useful()
	chosen := "no setting is useful"
	if best >= 0 {
		chosen = "chosen: " + s.settings[best].contender("").Label
	}
	calls, recent := s.each(at, asks)/s.each(always, asks), s.perProblem(at)/s.perProblem(unweighted)
	return []lab.Claim{
		Paper.Stated(fig, "threshold").Judge(chosen, at == best, at >= 0 && which[at]),
		Paper.Stated(fig, "significant").Judge(fmt.Sprintf(
			"%s of the problems, %s of the over-allocation removed instead of %s",
			lab.Percent(calls), lab.Percent(s.removed(at)), lab.Percent(s.removed(always))), calls <= 0.5 &&
			s.removed(at) >= s.removed(always)/2, calls <= 0.5 || s.removed(at) >= s.removed(always)/2),
		Paper.Stated(fig, "recent").Judge(lab.Decimals(recent,
			1)+" times as much over-allocation removed per problem as with λ 0.97",
			recent >= 1.5, recent > 1),
		Paper.Stated(fig, "leveled").Judge(
			fmt.Sprintf("%s of the over-allocation removed, makespan %s times that without leveling", lab.Percent(s.removed(at)),
				lab.Decimals(s.ends(at), 3)), s.removed(at) >= 0.5 && s.ends(at) <= 1.01, s.removed(at) > 0 && s.ends(at) <= 1.01),
	}
}
