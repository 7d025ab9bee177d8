package pufferfish

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// syntheticWorkload returns copies of the mixed workload of Fig. 7c.
func syntheticWorkload(large bool, copies int, seed uint64) []submission {
	r := rand.New(rand.NewPCG(seed, 0x8a))
	var jobs []submission
	for i, name := range []string{"WC", "WC", "KM", "KM", "PR", "PR", "NW", "NW"} {
		for range copies {
			jobs = append(jobs, submission{app(name, large).draw(r), timeline.Time(i) * timeline.Time(120*time.Second)})
		}
	}
	return jobs
}

func figure8a(l *lab.Lab) (*lab.Findings, error) {
	copies, nodes := 20, nodes
	if l.Quick {
		copies, nodes = 2, 3
	}
	all := slices.Insert(slices.Clone(rivals), lab.Place("bellows", rivals), roomy)
	bars := &chart.Bars{Title: "Makespan of synthetic workloads",
		Subtitle: "simulated; median and range of the workloads; with 8 to 32 GB some jobs fail", Y: "minutes"}
	data := lab.NewTable("makespans", "input", "rival", "run", "makespan_s", "last_success_s", "failed", "manager_kills",
		"suspended_s", "lost_s")
	f := &lab.Findings{}
	found := map[bool]contest{}
	for _, large := range []bool{false, true} {
		size := map[bool]string{false: "small", true: "large"}[large]
		c, err := hold(l, size, all, nodes, 1, func(run int) []submission {
			return syntheticWorkload(large, copies, l.RunSeed(run))
		})
		if err != nil {
			return nil, err
		}
		found[large] = c
		table := lab.NewTable("Synthetic workload, "+size+" inputs (range of the workloads)", "", "makespan, min",
			"last job to succeed, min", "jobs that fail or never end", "killed for memory's sake", "in vain, executor hours")
		s := chart.BarSeries{Name: size + " inputs"}
		for i, o := range all {
			minutes := lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Makespan }), 1./60)
			s.Values, s.Low, s.High = append(s.Values, lab.Median(minutes)), append(s.Low, slices.Min(minutes)),
				append(s.High, slices.Max(minutes))
			table.Add(o.Label, lab.AcrossTraces(minutes, 0),
				lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Succeeded }), 1./60), 0),
				lab.AcrossTraces(c.of(i, unsuccessful), 0),
				lab.AcrossTraces(c.of(i, func(t rivalTrial) float64 { return float64(t.Kills) }), 0),
				lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Lost }), 1./3600), 0))
			for run, t := range c[i] {
				data.Put(size, o.Label, run, t.Makespan, t.Succeeded, t.Failed, t.Kills, t.Suspended, t.Lost)
			}
		}
		bars.Series = append(bars.Series, s)
		f.Tables = append(f.Tables, table)
	}
	for _, o := range all {
		bars.Groups = append(bars.Groups, o.Label)
	}
	f.Data, f.Claims = []lab.Table{data}, fig8aClaims(all, found[false], found[true])
	f.Pictures = []lab.Picture{{Name: "makespan", Caption: "Makespan of the synthetic workloads (simulated)",
		Picture: bars}}
	return f, nil
}

func fig8aClaims(all []lab.Contender, small, large contest) []lab.Claim {
	makespan := func(t rivalTrial) float64 { return t.Makespan / 60 }
	good := func(t rivalTrial) float64 { return t.Succeeded / 60 }
	failed := func(c contest, name string) float64 {
		return slices.Max(c.of(lab.Place(name, all), unsuccessful))
	}
	at := func(c contest, name string, number func(rivalTrial) float64) float64 {
		return lab.Median(c.of(lab.Place(name, all), number))
	}
	best, bestWhole := true, true
	for _, o := range []string{"8 GB", "16 GB", "32 GB", "64 GB"} {
		slower := at(large, o, makespan) > at(large, "Pufferfish", makespan)
		best = best && slower
		bestWhole = bestWhole && (slower || failed(large, o) > 0)
	}
	pf, half := at(small, "Pufferfish", makespan), at(small, "32 GB", good)
	most := max(failed(small, "Pufferfish"), failed(large, "Pufferfish"))
	ours := max(failed(small, "bellows"), failed(large, "bellows"))
	return []lab.Claim{
		Paper.Stated("pufferfish/fig8a", "best-large").
			Judge(fmt.Sprintf("%.0f min, with room for two %.0f, bellows %.0f; 64 GB %.0f; 32, 16 and 8 GB %.0f, %.0f "+
				"and %.0f, with jobs that fail", at(large, "Pufferfish", makespan), at(large, roomy.Label, makespan),
				at(large, "bellows", makespan), at(large, "64 GB", makespan),
				at(large, "32 GB", makespan), at(large, "16 GB", makespan), at(large, "8 GB", makespan)),
				best, bestWhole),
		Paper.Stated("pufferfish/fig8a", "small").
			Judge(fmt.Sprintf("%.0f min, bellows %.0f; 32 GB: %.0f until the last success, %.0f with those that fail", pf,
				at(small, "bellows", makespan), half, at(small, "32 GB", makespan)), pf > half && pf <= 1.5*half, pf > half &&
				pf <= 2.5*half),
		Paper.Stated("pufferfish/fig8a", "no-failure").Judge(fmt.Sprintf("%.0f, bellows %.0f", most, ours),
			most+ours == 0, most == 0),
	}
}

// tracePart replays the trace under rivals, submitted within the given time.
func tracePart(l *lab.Lab, within time.Duration, all []lab.Contender) (contest, error) {
	nodes := nodes
	if l.Quick {
		nodes = 4
	}
	return hold(l, "within "+within.String(), all, nodes, sparkAttempts, func(run int) []submission {
		jobs := productionTrace(l.RunSeed(run), share(l))
		for i := range jobs {
			jobs[i].at = timeline.Time(float64(jobs[i].at) * (within.Seconds() / hours.Seconds()))
		}
		return jobs
	})
}

func normalTable(name string, all []lab.Contender, c contest) lab.Table {
	table := lab.NewTable(name, "", "median", "90th percentile", "99th percentile", "jobs that fail", "that never end",
		"killed for memory's sake", "makespan, h")
	for i, o := range all {
		table.Add(o.Label, lab.AcrossTraces(c.of(i, medianTime), 2), lab.AcrossTraces(c.of(i, tailTime), 2),
			lab.AcrossTraces(c.of(i, func(t rivalTrial) float64 { return t.quantile(0.99) }), 1),
			lab.AcrossTraces(c.of(i, func(t rivalTrial) float64 { return float64(t.Failed) }), 0),
			lab.AcrossTraces(c.of(i, func(t rivalTrial) float64 { return float64(t.Endless) }), 0),
			lab.AcrossTraces(c.of(i, func(t rivalTrial) float64 { return float64(t.Kills) }), 0),
			lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return t.Makespan }), 1./3600), 1))
	}
	return table
}

func normalData(all []lab.Contender, c contest) lab.Table {
	data := lab.NewTable("runtimes", "rival", "run", "normalised_runtime")
	for i, o := range all {
		for run, t := range c[i] {
			for _, v := range t.Normal {
				data.Put(o.Label, run, v)
			}
		}
	}
	return data
}

func figure8b(l *lab.Lab) (*lab.Findings, error) {
	c, err := tracePart(l, hours, rivals)
	if err != nil {
		return nil, err
	}
	plot := &chart.Plot{Title: "Run times of the jobs that succeed",
		Subtitle: "simulated; over those alone with a heap of 64 GB", X: "normalised run time", Y: "share of jobs",
		LogX: true}
	for i, o := range rivals {
		plot.Series = append(plot.Series, chart.CDF(o.Label, lab.Pooled(c[i],
			func(t rivalTrial) []float64 { return t.Normal })))
	}
	load, err := loadTable(l, c)
	if err != nil {
		return nil, err
	}
	pf := lab.Place("Pufferfish", rivals)
	faster := func(size string) []float64 { return c.ratio(lab.Place(size, rivals), pf, medianTime) }
	over := func(size string) []float64 {
		return c.ratio(lab.Place(size, rivals), lab.Place("bellows", rivals), medianTime)
	}
	most := func(name string) float64 { return slices.Max(c.of(lab.Place(name, rivals), unsuccessful)) }
	half, full := lab.Median(faster("32 GB")), lab.Median(faster("64 GB"))
	return &lab.Findings{
		Tables: []lab.Table{normalTable("Normalised run time of the jobs that succeed (median over the traces, and range)",
			rivals, c), load}, Data: []lab.Table{normalData(rivals, c)},
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution of normalised run times over the jobs that succeed, all traces together (simulated)",
			Picture: plot}},
		Claims: []lab.Claim{
			Paper.Stated("pufferfish/fig8b", "over-64").
				Judge(lab.AcrossTraces(faster("64 GB"), 1)+"x, bellows "+lab.AcrossTraces(over("64 GB"), 1)+"x",
					full >= 5.5, full >= 2),
			Paper.Stated("pufferfish/fig8b", "over-32").
				Judge(lab.AcrossTraces(faster("32 GB"), 2)+"x, bellows "+lab.AcrossTraces(over("32 GB"), 2)+"x",
					half >= 3.2, half >= 1.5),
			Paper.Stated("pufferfish/fig8b", "no-oom").
				Judge(fmt.Sprintf("%.0f jobs fail, bellows %.0f", most("Pufferfish"), most("bellows")),
					most("Pufferfish")+most("bellows") == 0, false),
		},
	}, nil
}

// loads are other submission periods of the trace, as multiples of 5 hours.
var loads = []float64{0.5, 0.75, 1, 2}

// loadTable replays the trace within other periods than 5 hours; usual is the result with 5 hours.
func loadTable(l *lab.Lab, usual contest) (lab.Table, error) {
	table := lab.NewTable("The same jobs submitted within other times: median of the normalised run times (median over "+
		"the traces, and range)", "submitted within", "8 GB", "16 GB", "32 GB", "64 GB", "Pufferfish", "bellows",
		"32 GB over Pufferfish", "64 GB over Pufferfish")
	for _, factor := range loads {
		within, c := time.Duration(factor*float64(hours)), usual
		if factor != 1 {
			var err error
			if c, err = tracePart(l, within, rivals); err != nil {
				return table, err
			}
		}
		row := []string{lab.Decimals(within.Hours(), 2) + " h"}
		for i := range rivals {
			row = append(row, lab.AcrossTraces(c.of(i, medianTime), 1))
		}
		pf := lab.Place("Pufferfish", rivals)
		table.Add(append(row, lab.AcrossTraces(c.ratio(lab.Place("32 GB", rivals), pf, medianTime), 1),
			lab.AcrossTraces(c.ratio(lab.Place("64 GB", rivals), pf, medianTime), 1))...)
	}
	return table, nil
}

func figure8c(l *lab.Lab) (*lab.Findings, error) {
	c, err := tracePart(l, hours, rivals)
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Memory in use, % of the cluster's (median over the traces, and range)", "",
		"median over time", "most", "mean while jobs are submitted", "in vain, % of the time of executors")
	plot := &chart.Plot{Title: "Memory in use over time", Subtitle: "simulated; first trace", X: "hours",
		Y: "% of the cluster's memory", YMin: new(float64)}
	data := lab.NewTable("memory", "rival", "hour", "share")
	for i, o := range rivals {
		table.Add(o.Label, lab.AcrossTraces(lab.Scaled(c.of(i, medianMemory), 100), 0),
			lab.AcrossTraces(lab.Scaled(c.of(i, func(t rivalTrial) float64 { return slices.Max(t.Memory) }), 100), 0),
			lab.AcrossTraces(lab.Scaled(c.of(i, rivalTrial.busy), 100), 0), lab.AcrossTraces(lab.Scaled(c.of(i, rivalTrial.vain),
				100), 0))
		s := chart.Series{Name: o.Label}
		for k, share := range c[i][0].Memory {
			s.X, s.Y = append(s.X, (time.Duration(k)*memoryStep).Hours()), append(s.Y, 100*share)
			data.Put(o.Label, s.X[k], share)
		}
		plot.Series = append(plot.Series, s)
	}
	pf, ours, full := lab.Place("Pufferfish", rivals), lab.Place("bellows", rivals), lab.Place("64 GB", rivals)
	more := c.ratio(pf, full, medianMemory)
	busy := func(size string) float64 { return 100 * lab.Median(c.of(lab.Place(size, rivals), rivalTrial.busy)) }
	vain := func(size string) float64 { return lab.Median(c.of(lab.Place(size, rivals), rivalTrial.vain)) }
	highest := true
	for i, o := range rivals {
		highest = highest && (o.Box == 0 || lab.Median(c.of(i, medianMemory)) < lab.Median(c.of(pf, medianMemory)))
	}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "memory", Caption: "Memory in use in the cluster over time, first trace (simulated)",
			Picture: plot}},
		Claims: []lab.Claim{
			Paper.Stated("pufferfish/fig8c", "utilisation").
				Judge(lab.AcrossTraces(more, 1)+"x, bellows "+lab.AcrossTraces(c.ratio(ours, full, medianMemory), 1)+"x",
					lab.Median(more) >= 2.7, lab.Median(more) >= 2),
			Paper.Stated("pufferfish/fig8c", "useless-failover").
				Judge(fmt.Sprintf("while jobs are submitted %.0f and %.0f %% (64 GB: %.0f %%); of all that ran %s and %s "+
					"were in vain", busy("16 GB"), busy("8 GB"), busy("64 GB"), lab.Percent(vain("16 GB")), lab.Percent(vain("8 GB"))),
					min(busy("16 GB"), busy("8 GB")) > busy("64 GB") && min(vain("16 GB"), vain("8 GB")) >= 1./3,
					max(vain("16 GB"), vain("8 GB")) >= 1./3),
			Paper.Stated("pufferfish/fig8c", "highest").
				Judge(fmt.Sprintf("median %.0f %%, bellows %.0f %%; 8, 16, 32 and 64 GB %s",
					100*lab.Median(c.of(pf, medianMemory)), 100*lab.Median(c.of(ours, medianMemory)), boxMedians(c)),
					highest, false),
		},
	}, nil
}

// boxMedians lists the median utilisation under YARN.
func boxMedians(c contest) string {
	var text string
	for i, o := range rivals {
		if o.Box == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += lab.Percent(lab.Median(c.of(i, medianMemory)))
	}
	return text
}
