package pufferfish

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// fig12Runs returns the runs of Fig. 12: the jobs, and for how long.
func fig12Runs() []fig12Run {
	var all []fig12Run
	for _, name := range []string{"KM", "WC"} {
		for _, length := range []struct {
			name string
			by   float64
		}{{"short", 0.5}, {"long", 4}} {
			a := *app(name, false)
			a.duration = time.Duration(length.by * float64(a.duration))
			all = append(all, fig12Run{a.name + ", " + length.name, a.typical()})
		}
	}
	return all
}

type fig12Run struct {
	name string
	job  job
}

// fig12Sweep simulates all runs for the values of a parameter. set returns the manager and MIN_CONT for a value.
func fig12Sweep(what, unit string, values []float64, set func(m lab.Contender, value float64) (lab.Contender,
	resource.Amount)) (*lab.Findings, map[string][]float64, error) {
	f := &lab.Findings{}
	data := lab.NewTable("overheads", "run", "manager", what, "overhead", "suspended_share")
	all := map[string][]float64{} // by manager and run
	for _, m := range flexRivals {
		heads := []string{"run"}
		for _, v := range values {
			heads = append(heads, lab.Exact(v)+unit)
		}
		table := lab.NewTable("Run time over that with 64 GB from the start, by "+what+", with "+m.Label+" (simulated)",
			heads...)
		axis := what
		if unit != "" {
			axis += "," + unit
		}
		plot := &chart.Plot{Title: "Overhead over " + what + ", " + m.Label,
			Subtitle: "simulated; against 64 GB from the start", X: axis, Y: "overhead, %", YMin: new(float64)}
		for k, run := range fig12Runs() {
			row := []string{run.name}
			s := chart.Series{Name: run.name, Color: k/2 + 1, Dashed: k%2 == 1}
			for _, v := range values {
				with, minCont := set(m, v)
				more, suspended, err := run.job.overhead(with, minCont)
				if err != nil {
					return nil, nil, err
				}
				all[m.Label+run.name] = append(all[m.Label+run.name], more)
				s.X, s.Y = append(s.X, v), append(s.Y, 100*more)
				row = append(row, percent1(more))
				data.Put(run.name, m.Label, v, more, suspended)
			}
			plot.Series = append(plot.Series, s)
			table.Add(row...)
		}
		f.Tables = append(f.Tables, table)
		if m.Label == pufferfishPaper.Label { // the lines of bellows are on the axis
			f.Pictures = []lab.Picture{{Name: "overhead", Caption: "Overhead over " + what + " with " + m.Label + " (simulated)",
				Picture: plot}}
		}
	}
	f.Data = []lab.Table{data}
	return f, all, nil
}

func fig12aRatio(*lab.Lab) (*lab.Findings, error) {
	f, all, err := fig12Sweep("puff ratio φ", "", []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1},
		func(m lab.Contender, v float64) (lab.Contender, resource.Amount) {
			m.Flex.Manager.PuffRatio = v
			return m, minCont
		})
	if err != nil {
		return nil, err
	}
	f.Claims = fig12Claims("pufferfish/fig12a", all)
	return f, nil
}

func fig12bStart(*lab.Lab) (*lab.Findings, error) {
	f, all, err := fig12Sweep("MIN_CONT", " GB", []float64{1, 2, 4, 8, 16},
		func(m lab.Contender, v float64) (lab.Contender, resource.Amount) {
			return m, lab.PartOf(v, resource.GB)
		})
	if err != nil {
		return nil, err
	}
	f.Claims = fig12Claims("pufferfish/fig12b", all)
	return f, nil
}

// fig12Claims judges Pufferfish.
func fig12Claims(experiment string, all map[string][]float64) []lab.Claim {
	runs := fig12Runs()
	falls, lower, pairs, amortised := 0, 0, 0, 0
	text := ""
	for k, run := range runs {
		over := all[pufferfishPaper.Label+run.name]
		steady := true
		for i := range over[1:] {
			steady = steady && over[i+1] <= over[i]+0.002
		}
		if steady {
			falls++
		}
		if over[len(over)-1] < over[0] {
			lower++
		}
		text += fmt.Sprintf("%s: %s to %s; ", run.name, percent1(over[0]), percent1(over[len(over)-1]))
		if k%2 == 1 {
			short := all[pufferfishPaper.Label+runs[k-1].name]
			for i := range over {
				pairs++
				if over[i] < short[i] {
					amortised++
				}
			}
		}
	}
	return []lab.Claim{
		Paper.Stated(experiment, "falls").Judge(text[:len(text)-2],
			falls == len(runs) && lower == len(runs), lower == len(runs)),
		Paper.Stated(experiment, "amortised").Judge(fmt.Sprintf("in %d of %d cases", amortised, pairs),
			amortised == pairs, 2*amortised > pairs),
	}
}
