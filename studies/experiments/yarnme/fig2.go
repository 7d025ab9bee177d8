package yarnme

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/framework"
	"github.com/bellows-rm/bellows/studies/paging"
)

func fig2a(*lab.Lab) (*lab.Findings, error) {
	spark := framework.SparkSortDefaults(10 * resource.GB)
	spark.Expansion = 2
	plot, data := profilePlot("Three frameworks: slowdown with less memory"),
		lab.NewTable("profiles", "task", "memory_share", "slowdown")
	for _, c := range []struct {
		name string
		f    framework.Task
	}{
		{"Hadoop reducer", framework.HadoopReducerPaper(10*resource.GB, 10*resource.MB)},
		{"Spark sortByKey", spark},
		{"Tez reducer", framework.TezReducerPaper(10*resource.GB, 10*resource.MB, 0.1)},
	} {
		m, ideal, err := fitted(c.f, 0.999, 1.9)
		if err != nil {
			return nil, err
		}
		plot.Series = append(plot.Series, profileSeries(c.name, m, ideal, &data))
	}
	differ := func(k int) float64 {
		sum := 0.0
		for i, y := range plot.Series[k].Y {
			sum += math.Abs(y/plot.Series[0].Y[i] - 1)
		}
		return sum / float64(len(plot.Series[k].Y))
	}
	claim := func(id string, k int) lab.Claim {
		d := differ(k)
		return Paper.Stated("yarn-me/fig2a", id).Judge(fmt.Sprintf("%.1f %% apart on average over all sizes", 100*d),
			d <= 0.05,
			d <= 0.1)
	}
	return &lab.Findings{Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "profiles", Caption: "Slowdown over memory for three frameworks (computed)",
			Picture: plot}}, Claims: []lab.Claim{
			claim("spark", 1),
			claim("tez", 2),
		},
	}, nil
}

func fig2b(*lab.Lab) (*lab.Findings, error) {
	measured := paging.Measured()
	table := lab.NewTable("From which share of the ideal memory on paging is no slower than spilling", "program",
		"share", "at 50 %: spills", "pages", "at 70 %: spills", "pages")
	data := lab.NewTable("slowdowns", "program", "memory_share", "spilling", "paging", "paging_is_lower_bound")
	plot := &chart.Plot{Title: "Spilling and paging", Subtitle: "measured here with small programs; dashed: paging",
		X: "memory, % of the ideal", Y: "slowdown", LogY: true}
	spillingWins, sizes, reducerEven := 0, 0, 1.0
	for k, c := range measured.Curves {
		even, ok := c.BreakEven()
		if !ok {
			even = 1
		}
		if c.Pattern == "merge" {
			reducerEven = even
		}
		spill, page := chart.Series{Name: c.Pattern, Color: k + 1}, chart.Series{Color: k + 1, Dashed: true}
		for _, p := range c.Points {
			s, known := c.SpillSlowdown(p.Share)
			g, too := c.PageSlowdown(p.Share)
			if !known || !too {
				continue
			}
			spill.X, spill.Y = append(spill.X, 100*p.Share), append(spill.Y, s.Factor)
			page.X, page.Y = append(page.X, 100*p.Share), append(page.Y, g.Factor)
			data.Put(c.Pattern, p.Share, s.Factor, g.Factor, g.AtLeast)
			if p.Share <= 0.6 {
				sizes++
				if s.Factor < g.Factor {
					spillingWins++
				}
			}
		}
		plot.Series = append(plot.Series, spill, page)
		row := []string{c.Pattern, lab.Percent(even)}
		for _, share := range []float64{0.5, 0.7} {
			s, _ := c.SpillSlowdown(share)
			g, _ := c.PageSlowdown(share)
			row = append(row, slowdown(s), slowdown(g))
		}
		table.Add(row...)
	}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data}, Pictures: []lab.Picture{{Name: "paging",
			Caption: "Slowdown of four programs that spill, and that are paged (measured)", Picture: plot}},
		Claims: []lab.Claim{
			Paper.Stated("yarn-me/fig2b", "paging-wins").Judge("merge: from "+lab.Percent(reducerEven)+" on",
				reducerEven <= 0.75, reducerEven <= 0.95),
			Paper.Stated("yarn-me/fig2b", "spilling-wins").
				Judge(fmt.Sprintf("at %d of %d sizes and programs up to 60 %%", spillingWins, sizes),
					spillingWins == sizes, 2*spillingWins > sizes),
		},
	}, nil
}

func slowdown(s paging.Slowdown) string {
	if s.AtLeast {
		return "> " + lab.Decimals(s.Factor, 1)
	}
	return lab.Decimals(s.Factor, 1)
}

// spiller is a reducer that is under-sized with any grant up to its estimate.
type spiller struct {
	name     string
	slower   float64
	rate     resource.Amount
	machine  sim.Machine
	diskRate resource.Amount
}

// together returns the mean run time of n such reducers at once, in seconds.
func (s spiller) together(n int) (float64, error) {
	real := cluster.Elasticity{Kind: cluster.Step, Factor: s.slower, DiskRate: s.rate}
	w := &workload.Workload{}
	for i := range n {
		w.Jobs = append(w.Jobs,
			workload.Job{After: -1, Truth: []workload.StageTruth{{IdealMemory: workload.ForAll(2 * resource.GB)}},
				Job: cluster.Job{ID: cluster.JobID(i + 1), Name: "reducer" + strconv.Itoa(i+1),
					Submitted: timeline.Time(i) * timeline.Time(time.Second),
					Stages: []cluster.Stage{{Name: "reduce", Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB),
						MinMemory: resource.GB, Duration: 189 * time.Second, Elasticity: real}}}})
	}
	node := resource.Of(16*resource.Core, 64*resource.GB)
	node[resource.Disk] = s.diskRate
	r, err := lab.Contender{Contender: trial.Contender{Label: s.name,
		Policy: "fifo"}}.Succeed(sim.Config{Nodes: sim.Uniform(1, node), Machine: s.machine, KeepTasks: true}, w)
	if err != nil {
		return 0, err
	}
	return lab.Mean(lab.Values(r.Tasks, lab.TaskSeconds)), nil
}

func fig2c(*lab.Lab) (*lab.Findings, error) {
	hdd, ssd := sim.Machine{Disk: sim.HDDLoss}, sim.Machine{Disk: sim.SSDLoss}
	spillers := []spiller{
		{"WordCount, hard disk", 1.9, 20_700_000, hdd, 110 * resource.MB},
		{"Pagerank job 1, Recommender, hard disk", 1.22, 15 * resource.MB, hdd, 110 * resource.MB},
		{"WordCount, solid-state disk", 1.9, 20_700_000, ssd, 145 * resource.MB},
	}
	table := lab.NewTable("Slowdown by running at the same time", "reducers", spillers[0].name, spillers[1].name,
		spillers[2].name)
	data := lab.NewTable("slowdowns", "reducers", "task", "slowdown")
	plot := &chart.Plot{Title: "Under-sized reducers that share a disk",
		Subtitle: "simulated; calibrated to the paper's figure", X: "reducers at the same time", Y: "slowdown"}
	for _, s := range spillers {
		plot.Series = append(plot.Series, chart.Series{Name: s.name})
	}
	for n := 1; n <= 8; n++ {
		row := []string{strconv.Itoa(n)}
		for k, s := range spillers {
			alone, err := s.together(1)
			if err != nil {
				return nil, err
			}
			all, err := s.together(n)
			if err != nil {
				return nil, err
			}
			p := &plot.Series[k]
			p.X, p.Y = append(p.X, float64(n)), append(p.Y, all/alone)
			row = append(row, lab.Decimals(all/alone, 2))
			data.Put(n, s.name, all/alone)
		}
		table.Add(row...)
	}
	last := func(k int) float64 { return plot.Series[k].Y[7] - 1 }
	claim := func(id string, paper float64, k int) lab.Claim {
		off := math.Abs(last(k) - paper)
		return Paper.Stated("yarn-me/fig2c", id).Judge(lab.Percent(last(k)), off <= 0.05, off <= 0.1)
	}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data}, Pictures: []lab.Picture{{Name: "contention",
			Caption: "Slowdown over the number of reducers on one disk (simulated, calibrated)", Picture: plot}},
		Claims: []lab.Claim{
			claim("hdd", 0.7, 0),
			claim("ssd", 0.15, 2),
			Paper.Stated("yarn-me/fig2c", "minimal").Judge(lab.Percent(last(1)), last(1) <= 0.1501, last(1) <= 0.2),
		},
	}, nil
}
