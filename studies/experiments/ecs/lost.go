package ecs

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/coreshare"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// lost is what over-allocated cores lose: nothing, what was measured, and what is assumed. The paper does
// not say how large its "exponential increase" is; the assumed ones reach half of the cores at twice the demand.
type lost struct {
	name    string
	assumed bool
	sim.Loss
}

const leastCores = 0.3 // of a node, whatever is demanded, where the loss is assumed

func losses() []lost {
	all := []lost{{"nothing", false, sim.Loss{}}, {"as measured", false, sim.SharedCoreLoss}}
	for _, slope := range []float64{0.02, 0.05, 0.1, 0.25, 0.5, 1} {
		l := sim.Loss{Slope: slope, Floor: leastCores}
		all = append(all, lost{lab.Percent(1 - l.Efficiency(2)), true, l})
	}
	return all
}

// lostOn are the workloads of the experiment, each with its nodes. part is by how much the usual jobs are divided.
var lostOn = []struct {
	name string
	of   func(part int, seed uint64) (sim.Config, *workload.Workload)
}{
	{"Two jobs of pagerank, as in Fig. 2 and 3", func(part int, seed uint64) (sim.Config, *workload.Workload) {
		return caseConfig(), caseJobs(seed, caseTasks/part)
	}},
	{"A loaded cluster", func(part int, seed uint64) (sim.Config, *workload.Workload) {
		return half.cluster(), usual.loaded(part*halfPart, seed)
	}},
}

// lostUnder are the schedulers: the first levels nothing, and the second is ECS.
var lostUnder = append([]lab.Contender{with(unleveled, "short", "false", "leveling", "false"), own, capacity},
	products...)

// lostTrials are outcomes by workload, loss, scheduler and run.
type lostTrials [][][][]ecsTrial

// over returns the makespans of a scheduler over those without leveling.
func (t lostTrials) over(on, loss, scheduler int) []float64 {
	return lab.Ratios(numbersOf(t[on][loss][scheduler], ends), numbersOf(t[on][loss][0], ends))
}

// overAllocated compares schedulers by what over-allocated cores lose.
func overAllocated(l *lab.Lab) (*lab.Findings, error) {
	part, losses := 1, losses()
	if l.Quick {
		part, losses = 4, losses[:3]
	}
	each := len(losses) * len(lostUnder)
	all, err := lab.EachRun(l, "losses", len(lostOn)*each, func(point, run int) (ecsTrial, error) {
		config, w := lostOn[point/each].of(part, l.RunSeed(run))
		config.Machine.CPU = losses[point%each/len(lostUnder)].Loss
		return replayECS(lostUnder[point%len(lostUnder)], config, w)
	})
	if err != nil {
		return nil, err
	}
	f := &lab.Findings{Tables: []lab.Table{coreTable(coreshare.Measured())}}
	data := lab.NewTable("trials", "workload", "slope", "floor", "scheduler", "run", "makespan_s", "completion_s", "oa",
		"stops")
	t := lostTrials{}
	for on := range lostOn {
		var of [][][]ecsTrial
		for i := range losses {
			from := on*each + i*len(lostUnder)
			of = append(of, all[from:from+len(lostUnder)])
		}
		t = append(t, of)
		f.Tables = append(f.Tables, t.table(on, losses))
		for i, loss := range losses {
			for k, c := range lostUnder {
				for run, one := range of[i][k] {
					data.Put(lostOn[on].name, loss.Slope, loss.Floor, c.Label, run, one.Makespan, one.Completion, one.Over,
						one.Stops)
				}
			}
		}
	}
	f.Data, f.Claims = []lab.Table{data}, lostClaims(t, losses, coreshare.Measured())
	return f, nil
}

// table has the outcomes of a workload by loss.
func (t lostTrials) table(on int, losses []lost) lab.Table {
	heads := []string{"lost at twice the demand", "without leveling: last job ends", "over-allocation"}
	for _, c := range lostUnder[1:] {
		heads = append(heads, c.Label+" over that, "+lab.InPairs)
	}
	table := lab.NewTable(lostOn[on].name+" (means of the runs)", append(heads, "ECS: over-allocation", "stops of tasks",
		"mean job completes, over that without leveling")...)
	for i, loss := range losses {
		mean := func(scheduler int, number func(*ecsTrial) float64) float64 {
			return lab.Mean(numbersOf(t[on][i][scheduler], number))
		}
		row := []string{loss.name, lab.Decimals(mean(0, ends), 0) + " s", lab.Percent(mean(0, overShare))}
		for k := range lostUnder[1:] {
			row = append(row, lab.Interval(trial.GeometricMean(t.over(on, i, k+1)), 3))
		}
		table.Add(append(row, lab.Percent(mean(1, overShare)), lab.Decimals(mean(1, ecsStops), 0),
			lab.Paired(numbersOf(t[on][i][1], completes), numbersOf(t[on][i][0], completes)))...)
	}
	return table
}

func overShare(t *ecsTrial) float64 { return t.Over }

// coreTable has what programs lose that share a core.
func coreTable(s coreshare.Series) lab.Table {
	table := lab.NewTable("Measured on a real core: work per CPU second over that of one program at a time, median "+
		"(least–most) of pairs; in the last row the geometric mean of the medians", "program", "2 on a core", "4", "8", "16",
		"all of 16: work per second")
	for _, p := range s.Programs {
		row := []string{p.Command}
		for i := range p.Points {
			row = append(row, ratio(p.Points[i].Efficiency()))
		}
		table.Add(append(row, ratio(p.Points[len(p.Points)-1].Throughput()))...)
	}
	row := []string{"all but random reads"}
	for _, p := range s.Programs[0].Points {
		mean, _ := s.Mean(p.Copies)
		row = append(row, lab.Decimals(mean, 3))
	}
	table.Add(append(row, "")...)
	return table
}

func ratio(r coreshare.Ratio) string {
	return fmt.Sprintf("%s (%s–%s)", lab.Decimals(r.Median, 3), lab.Decimals(r.Least, 3), lab.Decimals(r.Most, 3))
}

// lostClaims judges what was measured, and ECS over ECS without leveling.
func lostClaims(t lostTrials, losses []lost, s coreshare.Series) []lab.Claim {
	const fig = "ecs/over-allocated"
	two, _ := s.Mean(2)
	most, _ := s.Mean(16)
	exponential := Paper.Stated(fig, "exponential").Judge(fmt.Sprintf(
		"%s and %s are lost; an exponential through the first would lose %s", percents(1-two), percents(1-most),
		percents(1-math.Pow(two, 15))), two < 1 && most <= math.Pow(two, 15), two < 1 && 1-most >= 2*(1-two))
	var ours, from []string
	measured, some, stops := 0, 0, 0.0 // workloads that leveling ends earlier with the measured loss, and with any
	for on := range t {
		first := ""
		for i, loss := range losses {
			over := trial.GeometricMean(t.over(on, i, 1))
			stops += lab.Mean(numbersOf(t[on][i][1], ecsStops))
			if !loss.assumed && loss.Slope > 0 {
				ours = append(ours, lab.Interval(over, 3)+" times")
			}
			switch better := over.High < 1 && loss.Slope > 0; {
			case better && !loss.assumed:
				measured++
			case better && first == "":
				first = loss.name
			}
		}
		if first != "" {
			some++
		}
		from = append(from, cmp.Or(first, "more than "+losses[len(losses)-1].name))
	}
	harmful := Paper.Stated(fig, "harmful")
	if stops == 0 {
		return []lab.Claim{exponential, harmful.NeverActed("0 stops", "Leveling")}
	}
	return []lab.Claim{exponential, harmful.Because(from[0], from[1]).Judge(strings.Join(ours, " and "),
		measured == len(t), measured+some > 0)}
}

func percents(share float64) string { return lab.Decimals(100*share, 1) + " %" }
