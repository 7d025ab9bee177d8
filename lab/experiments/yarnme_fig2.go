package experiments

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/lab/framework"
	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/trial"
	"github.com/bellows-rm/bellows/workload"
)

func yarnMEFig2a() Experiment {
	return Experiment{
		Name: "yarn-me/fig2a", Title: "Spark and Tez with less memory",
		Takes: "1 s", TakesFull: "1 s",
		Paper: "YARN-ME section 2.4, Fig. 2a",
		Setup: []string{
			"Computed, not measured: neither Spark nor Tez was run. Models of their spilling for 10 GB of input, each 1.9x slower just below its ideal memory, beside a Hadoop reducer: Spark with the settings that it comes with (profile.SparkSortDefaults), Tez and Hadoop in the paper's reading (framework.TezReducerPaper). Spark has an expansion of 2, Tez a tenth of its input on its own node: ours, the paper gives neither.",
		},
		run: fig2a,
	}
}

func fig2a(*lab) (*Findings, error) {
	spark := profile.SparkSortDefaults(10 * resource.GB)
	spark.Expansion = 2
	plot, data := profilePlot("Three frameworks: slowdown with less memory"), newTable("profiles", "task", "memory_share", "slowdown")
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
	claim := func(says string, k int) Claim {
		d := differ(k)
		return Claim{Says: says, Where: "section 2.4", Paper: "similar", Ours: fmt.Sprintf("%.1f %% apart on average over all sizes", 100*d),
			Criterion: "at most 5 % apart; in part: 10 %"}.judge(d <= 0.05, d <= 0.1, "See the picture.")
	}
	return &Findings{Data: []Table{data}, Pictures: []Picture{{"profiles", "Slowdown over memory for three frameworks (computed)", plot}},
		Claims: []Claim{
			claim("the elasticity profile for Spark resembles that of Hadoop reducers", 1),
			claim("The elasticity profile for Tez is similar to those for Spark and Hadoop", 2),
			{Says: "Flink stands out with its low penalty between 70% and 99% of optimal memory which suggests a different model is needed", Where: "section 2.4", Paper: "low", Ours: "–", Holds: Untested, Why: "Neither the paper nor we have a model of Flink, and none was run."},
		},
		Notes: []string{"This follows from the models, which are the paper's insight: all three spill a full buffer whole and keep the rest. It says that the models agree, not that the frameworks do."},
	}, nil
}

func yarnMEFig2b() Experiment {
	return Experiment{
		Name: "yarn-me/fig2b", Title: "spilling vs. paging",
		Takes: "1 s", TakesFull: "1 s",
		Paper: "YARN-ME section 2.5, Fig. 2b",
		Setup: []string{
			"Measured here, though not with Hadoop: four small programs in containers of 10 to 100 % of their ideal memory, told how little they have (so that they spill), and told that they have enough (so that the kernel pages to a swap file); medians of three. docs/profiles.md has the ranges, the machine, and what one must know to judge them. `merge` is the nearest to a reducer. The load of the machine, which has two cores, rose from 1 to 11 meanwhile (profile/paging.json).",
			"These are stored measurements: `bellows-lab paging` makes new ones.",
		},
		run: fig2b,
	}
}

func fig2b(*lab) (*Findings, error) {
	measured := profile.MeasuredPaging()
	table := newTable("From which share of the ideal memory on paging is no slower than spilling", "program", "share", "at 50 %: spills", "pages", "at 70 %: spills", "pages")
	data := newTable("slowdowns", "program", "memory_share", "spilling", "paging", "paging_is_lower_bound")
	plot := &chart.Plot{Title: "Spilling and paging", Subtitle: "measured here with small programs; dashed: paging", X: "memory, % of the ideal", Y: "slowdown", LogY: true}
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
			data.add(c.Pattern, exact(p.Share), exact(s.Factor), exact(g.Factor), strconv.FormatBool(g.AtLeast))
			if p.Share <= 0.6 {
				sizes++
				if s.Factor < g.Factor {
					spillingWins++
				}
			}
		}
		plot.Series = append(plot.Series, spill, page)
		row := []string{c.Pattern, percent(even)}
		for _, share := range []float64{0.5, 0.7} {
			s, _ := c.SpillSlowdown(share)
			g, _ := c.PageSlowdown(share)
			row = append(row, slowdown(s), slowdown(g))
		}
		table.add(row...)
	}
	return &Findings{
		Tables: []Table{table}, Data: []Table{data}, Pictures: []Picture{{"paging", "Slowdown of four programs that spill, and that are paged (measured)", plot}},
		Claims: []Claim{
			Claim{Says: "Paging wins when a task gets allocated close to ideal memory (0.7 or more on the x-axis)", Where: "section 2.5", Paper: "from 70 % on",
				Ours: "merge: from " + percent(reducerEven) + " on", Criterion: "from 75 % or less on; in part: from 95 % or less"}.
				judge(reducerEven <= 0.75, reducerEven <= 0.95, "Spilling writes and reads in order at the speed of the disk, paging brings back 32 KiB for a fault and waits for each; and the oldest pages go first, which a merge wants next. The paper's reducer ran on another disk and kernel, with a task that computes more; ours only touches memory."),
			Claim{Says: "spilling beats paging for smaller memory allocations", Where: "section 2.5", Paper: "below 70 %",
				Ours: fmt.Sprintf("at %d of %d sizes and programs up to 60 %%", spillingWins, sizes), Criterion: "at every one; in part: at most of them"}.
				judge(spillingWins == sizes, 2*spillingWins > sizes, "See the table."),
			{Says: "the SSD significantly outperforms the HDD", Where: "section 2.5", Paper: "–", Ours: "–", Holds: Untested, Why: "There was one disk to measure."},
		},
	}, nil
}

func slowdown(s profile.Slowdown) string {
	if s.AtLeast {
		return "> " + decimals(s.Factor, 1)
	}
	return decimals(s.Factor, 1)
}

func yarnMEFig2c() Experiment {
	return Experiment{
		Name: "yarn-me/fig2c", Title: "under-sized reducers that share a disk",
		Takes: "1 s", TakesFull: "1 s",
		Paper: "YARN-ME section 2.6, Fig. 2c",
		Setup: []string{
			"Simulated: 1 to 8 under-sized reducers on one node, each a second after the other, on a hard disk of 110 MB/s and on a solid-state disk of 145 MB/s. They spill 20.7 MB/s (WordCount) or 15 MB/s (Pagerank job 1, Recommender), at a slowdown of 1.9 and 1.22.",
			"This checks that the simulator is consistent, and no more: how disks lose efficiency there was taken from this very figure (docs/truth.md).",
		},
		run: fig2c,
	}
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
		w.Jobs = append(w.Jobs, workload.Job{After: -1, Truth: []workload.StageTruth{{IdealMemory: 2 * resource.GB}},
			Job: cluster.Job{ID: cluster.JobID(i + 1), Name: "reducer" + strconv.Itoa(i+1), Submitted: timeline.Time(i) * timeline.Time(time.Second),
				Stages: []cluster.Stage{{Name: "reduce", Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB), MinMemory: resource.GB, Duration: 189 * time.Second, Elasticity: real}}}})
	}
	node := resource.Of(16*resource.Core, 64*resource.GB)
	node[resource.Disk] = s.diskRate
	r, err := contender{Contender: trial.Contender{Label: s.name, Policy: "fifo"}}.simulate(sim.Config{Nodes: sim.Uniform(1, node), Machine: s.machine, KeepTasks: true}, w)
	if err != nil {
		return 0, err
	}
	var all []float64
	for _, t := range r.Tasks {
		all = append(all, t.Finished.Sub(t.Launched).Seconds())
	}
	return mean(all), nil
}

func fig2c(*lab) (*Findings, error) {
	hdd, ssd := sim.Machine{Disk: sim.HDDLoss}, sim.Machine{Disk: sim.SSDLoss}
	spillers := []spiller{
		{"WordCount, hard disk", 1.9, 20_700_000, hdd, 110 * resource.MB},
		{"Pagerank job 1, Recommender, hard disk", 1.22, 15 * resource.MB, hdd, 110 * resource.MB},
		{"WordCount, solid-state disk", 1.9, 20_700_000, ssd, 145 * resource.MB},
	}
	table := newTable("Slowdown by running at the same time", "reducers", spillers[0].name, spillers[1].name, spillers[2].name)
	data := newTable("slowdowns", "reducers", "task", "slowdown")
	plot := &chart.Plot{Title: "Under-sized reducers that share a disk", Subtitle: "simulated; calibrated to the paper's figure", X: "reducers at the same time", Y: "slowdown"}
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
			row = append(row, decimals(all/alone, 2))
			data.add(strconv.Itoa(n), s.name, exact(all/alone))
		}
		table.add(row...)
	}
	last := func(k int) float64 { return plot.Series[k].Y[7] - 1 }
	claim := func(says string, paper float64, k int) Claim {
		off := math.Abs(last(k) - paper)
		return Claim{Says: says, Where: "section 2.6", Paper: percent(paper), Ours: percent(last(k)), Criterion: "within 5 points; in part: 10"}.
			judge(off <= 0.05, off <= 0.1, "Reducers begin and end one after the other, so that not all share the disk all the time.")
	}
	return &Findings{
		Tables: []Table{table}, Data: []Table{data}, Pictures: []Picture{{"contention", "Slowdown over the number of reducers on one disk (simulated, calibrated)", plot}},
		Claims: []Claim{
			claim("running 8 under-sized WordCount reducers concurrently leads to a 70% degradation when an HDD is used", 0.7, 0),
			claim("but that is reduced to just 15% when moving the spills to SSD", 0.15, 2),
			Claim{Says: "Several reducers (PageRank job1, Recommender job1,2) show minimal slowdown (at most 15% degradation for 8 concurrently under-sized reducers)", Where: "section 2.6", Paper: "at most 15 %",
				Ours: percent(last(1)), Criterion: "at most 15 %; in part: 20 %"}.judge(last(1) <= 0.1501, last(1) <= 0.2, "See the table."),
		},
	}, nil
}
