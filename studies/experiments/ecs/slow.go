package ecs

import (
	"fmt"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// shares are when reduces of a job may start: after that share of its maps. 1 is after all of them, as in the other
// experiments, and 0.05 is what Hadoop has by default (mapreduce.job.reduce.slowstart.completedmaps).
var shares = []float64{1, 0.5, 0.05}

// slowly lets the reduces of jobs start after a share of their maps.
func slowly(share float64, w *workload.Workload) *workload.Workload {
	if share == 1 {
		return w
	}
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			if s := &w.Jobs[i].Stages[k]; len(s.Parents) > 0 {
				s.StartShare = share
			}
		}
	}
	return w
}

// slow are the schedulers of the experiment. The claims are about ECS without leveling and with it.
var slow = append([]lab.Contender{with(unleveled, "short", "false", "leveling", "false"), own, capacity, prism},
	products...)

// slowTrials are the outcomes by share, scheduler and run.
type slowTrials [][][]ecsTrial

func slowStart(l *lab.Lab) (*lab.Findings, error) {
	part := halfPart
	if l.Quick {
		part *= 4
	}
	all, err := lab.EachRun(l, "schedulers", len(shares)*len(slow), func(point, run int) (ecsTrial, error) {
		return replayECS(slow[point%len(slow)], half.cluster(),
			slowly(shares[point/len(slow)], usual.loaded(part, l.RunSeed(run))))
	})
	if err != nil {
		return nil, err
	}
	var t slowTrials
	f := &lab.Findings{}
	data := lab.NewTable("trials", "share", "scheduler", "run", "makespan_s", "completion_s", "reduce_s", "oa_s", "stops",
		"problems", "proved", "without_schedule")
	for i, share := range shares {
		t = append(t, all[i*len(slow):(i+1)*len(slow)])
		table := lab.NewTable(fmt.Sprintf("Reduces start after %s of the maps of their job (means of the runs)",
			lab.Percent(share)), "scheduler", "last job ends", "over ECS without leveling, "+lab.InPairs, "mean job completes",
			"reduce task", "containers at a time", "over-allocation, seconds of the cluster", "problems to solve",
			"proved optimal", "without a schedule", "stops of tasks")
		for k, c := range slow {
			mean := func(number func(*ecsTrial) float64) float64 { return lab.Mean(numbersOf(t[i][k], number)) }
			w := workOf(t[i][k])
			table.Add(c.Label, lab.Decimals(mean(ends), 0)+" s", lab.Paired(numbersOf(t[i][k], ends), numbersOf(t[i][0], ends)),
				lab.Decimals(mean(completes), 0)+" s", lab.Decimals(mean(reduceTask), 0)+" s", lab.Decimals(mean(containers), 0),
				lab.Decimals(mean(overTime), 1), lab.Decimals(mean(asks), 0), lab.Percent(w.provedShare()),
				lab.Decimals(mean(impossible), 0), lab.Decimals(mean(ecsStops), 0))
			for run, one := range t[i][k] {
				data.Put(lab.Percent(share), c.Label, run, one.Makespan, one.Completion, one.Reduce, overTime(&one), one.Stops,
					one.Asks, one.Proved, one.Impossible)
			}
		}
		f.Tables = append(f.Tables, table)
	}
	f.Data, f.Claims = []lab.Table{data}, slowClaims(t)
	return f, nil
}

func impossible(t *ecsTrial) float64 { return float64(t.Impossible) }

// slowClaims judges by the least share.
func slowClaims(t slowTrials) []lab.Claim {
	const fig = "ecs/slow-start"
	last := len(t) - 1
	plain, leveled := t[last][0], t[last][1]
	stops, problems := lab.Mean(numbersOf(leveled, ecsStops)), lab.Mean(numbersOf(leveled, asks))
	stated := func(id string) lab.Claim { return Paper.Stated(fig, id) }
	ordered := stated("ordered").Judge(fmt.Sprintf("%s of %s problems have no schedule",
		lab.Decimals(lab.Mean(numbersOf(leveled, impossible)), 0), lab.Decimals(problems, 0)),
		lab.Mean(numbersOf(leveled, impossible)) == 0, lab.Mean(numbersOf(leveled, impossible)) <= problems/20)
	if problems == 0 {
		ordered = stated("ordered").NeverActed("no problem", "The solver")
	}
	if stops == 0 {
		return []lab.Claim{ordered, stated("leveled").NeverActed("0 stops", "Leveling"),
			stated("delayed").NeverActed("0 stops", "Leveling")}
	}
	left := lab.Mean(numbersOf(leveled, overTime)) / lab.Mean(numbersOf(plain, overTime))
	over := trial.GeometricMean(lab.Ratios(numbersOf(leveled, ends), numbersOf(plain, ends)))
	return []lab.Claim{ordered,
		stated("leveled").Judge(fmt.Sprintf("%s of it is left, by %s stops", lab.Percent(left), lab.Decimals(stops, 0)),
			left <= 0.5, left < 1),
		stated("delayed").Judge(lab.Interval(over, 3)+" times", over.Mean <= 1.01, over.Mean <= 1.03),
	}
}
