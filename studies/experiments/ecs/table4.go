package ecs

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// kinds are the columns of Table IV, each with a benchmark of the kind.
var kinds = []struct{ kind, benchmark string }{{"I/O", "wordcount"}, {"CPU", "k-means"}, {"hybrid", "pagerank"}}

// table4 has the cores and GB of Table IV, by phase and by kind. The sort phase of a map task is the second row,
// that of a reduce task the fourth.
var table4 = []struct {
	task, phase string
	cores, gb   [3]float64
}{
	{"map", "map", [3]float64{1, 1, 1}, [3]float64{1.5, 1.5, 1.5}},
	{"map", "sort", [3]float64{0.5, 0.5, 0.5}, [3]float64{2, 2, 2}},
	{"reduce", "shuffle", [3]float64{0.3, 0.2, 0.3}, [3]float64{1, 1, 1}},
	{"reduce", "sort", [3]float64{0.5, 0.5, 0.5}, [3]float64{1.5, 1.5, 1.5}},
	{"reduce", "reduce", [3]float64{1, 1, 1}, [3]float64{2, 2, 2}},
}

// ecsDemandsOf are the demands of Table IV for a task, in phases of equal lengths.
func ecsDemandsOf(task string, kind int) (phases []cluster.Phase) {
	for _, row := range table4 {
		if row.task == task {
			phases = append(phases, phase(row.phase, 1, demand(row.cores[kind], row.gb[kind])))
		}
	}
	return phases
}

// mostDeviation is the largest deviation that demands permit, whatever the lengths of the phases: that of half of the
// time each at the least and at the largest demand.
func mostDeviation(phases []cluster.Phase) float64 {
	least, most := phases[0].Demand[resource.CPU], phases[0].Demand[resource.CPU]
	for _, p := range phases {
		least, most = min(least, p.Demand[resource.CPU]), max(most, p.Demand[resource.CPU])
	}
	return (1 - float64(least)/float64(most)) / 2
}

func tableFour(*lab.Lab) (*lab.Findings, error) {
	demands := lab.NewTable(
		"Demands of phases (Table IV), and how long the phases last in our models (the paper has no lengths)",
		"task, phase", "I/O", "CPU", "hybrid", "wordcount", "k-means", "pagerank")
	alike := true
	for _, row := range table4 {
		cells := []string{row.task + ", " + row.phase}
		var lengths []string
		for k, kind := range kinds {
			b := benchmarkOf(kind.benchmark)
			phases := usual.phasesOfMap(b, 1)
			if row.task == "reduce" {
				phases = usual.phasesOfReduce(b, 1)
			}
			for _, p := range phases {
				if p.Name == row.phase {
					alike = alike && p.Demand == demand(row.cores[k], row.gb[k])
					lengths = append(lengths, lab.Decimals(p.Duration.Seconds(), 0)+" s")
				}
			}
			cells = append(cells, fmt.Sprintf("%s cores, %s GB", lab.Decimals(row.cores[k], 1), lab.Decimals(row.gb[k], 1)))
		}
		demands.Add(append(cells, lengths...)...)
	}
	permits := lab.NewTable("Deviation of CPU use (Table I) beside what Table IV permits", "benchmark", "kind",
		"map task, Table I", "largest by Table IV", "with phases of equal lengths", "reduce task, Table I",
		"largest by Table IV", "with phases of equal lengths",
		"mean CPU of a task of the model, of a box of the largest demand")
	listed, inside, bound := 0, 0, 0.0
	equal := map[string]float64{}
	for i := range benchmarks {
		b := &benchmarks[i]
		if !b.listed {
			continue
		}
		kind := kindAt(b.kind)
		cells := []string{b.name, b.kind}
		for k, task := range []string{"map", "reduce"} {
			phases := ecsDemandsOf(task, kind)
			if listed++; b.deviations[k] <= mostDeviation(phases) {
				inside++
			}
			equal[b.kind] = max(equal[b.kind], deviationOf(phases))
			cells = append(cells, lab.Decimals(b.deviations[k], 2), lab.Decimals(mostDeviation(phases), 2),
				lab.Decimals(deviationOf(phases), 2))
		}
		share := meanOfBox(b)
		if b.name == "wordcount" {
			bound = 1 / share
		}
		permits.Add(append(cells, lab.Percent(share))...)
	}
	return &lab.Findings{Tables: []lab.Table{demands, permits}, Claims: table4Claims(alike, inside, listed, equal, bound)},
		nil
}

func kindAt(kind string) int {
	for i := range kinds {
		if kinds[i].kind == kind {
			return i
		}
	}
	panic("experiments: Table IV has no kind " + kind)
}

// meanOfBox is the mean CPU that the tasks of a job demand, of boxes of the largest demand.
func meanOfBox(b *benchmark) float64 {
	box, used := 0.0, 0.0
	for k, phases := range [][]cluster.Phase{usual.phasesOfMap(b, 1), usual.phasesOfReduce(b, 1)} {
		u, tasks := lab.UsageOf(phases), float64([]int{usual.maps, usual.reduces}[k])
		box += float64(u.Peak[resource.CPU]) * u.Lasts * tasks
		used += float64(u.Mean[resource.CPU]) * u.Lasts * tasks
	}
	return used / box
}

// table4Claims judges whether the models have the demands of the table, how many of the listed deviations are
// within what it permits, the largest deviation by kind with phases of equal lengths, and the largest parallelism of
// wordcount.
func table4Claims(alike bool, inside, listed int, equal map[string]float64, bound float64) []lab.Claim {
	const table = "ecs/table4"
	says := map[bool]string{true: "the same", false: "others"}[alike]
	cpu, others := equal["CPU"], min(equal["I/O"], equal["hybrid"])
	return []lab.Claim{
		Paper.Stated(table, "demands").MadeSo(says, alike),
		Paper.Stated(table, "consistent").Judge(fmt.Sprintf("%d of %d deviations are at most what the demands permit", inside,
			listed), inside == listed, 2*inside > listed),
		Paper.Stated(table, "stable").Judge(fmt.Sprintf("%s, others %s", lab.Decimals(cpu, 2), lab.Decimals(others, 2)),
			cpu <= others/1.5, cpu < others-1e-9),
		Paper.Stated(table, "bound").Judge(lab.Decimals(bound, 2)+"x at most", bound >= 1.5 && !math.IsInf(bound, 0),
			bound >= 1.25),
	}
}
