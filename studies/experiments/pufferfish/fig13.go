package pufferfish

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/paging"
)

// pagesOrSpills returns the slowdown of the job's hot executor in a container of the given size, compared with 64 GB,
// with a heap of the given size; NaN if it fails for lack of memory.
func pagesOrSpills(j job, container, heap resource.Amount) (float64, error) {
	j.cold = nil
	run := func(container, heap resource.Amount) (float64, error) {
		t := j.inContainers(container, heap)
		t.ID = 1
		config := pufferfishCluster(1)
		config.KeepTasks = true
		alone, err := yarnBoxes.On(config, &workload.Workload{Jobs: []workload.Job{t}})
		if err != nil {
			return 0, err
		}
		r, err := alone.Run()
		if err != nil {
			return 0, err
		}
		if len(r.Failures()) > 0 {
			return math.NaN(), nil
		}
		for _, t := range r.Tasks {
			if !t.Coordinator {
				return t.Finished.Sub(t.Launched).Seconds(), nil
			}
		}
		return 0, fmt.Errorf("%s did not end", j.name)
	}
	best, err := run(maxHeap, maxHeap)
	if err != nil {
		return 0, err
	}
	took, err := run(container, heap)
	return took / best, err
}

// twoWays is the slowdown in a smaller container of a program that spills, and of a program that pages; NaN where it
// fails.
type twoWays struct {
	name         string
	shares       []float64
	spill, page  []float64
	pagesAtLeast []bool // the run was stopped after this time
}

// simulatedWays simulates a job at shares of 64 GB.
func simulatedWays(name string, j job, shares []float64) (twoWays, error) {
	w := twoWays{name: name, shares: shares}
	for _, share := range shares {
		container := lab.PartOf(share, maxHeap)
		spill, err := pagesOrSpills(j, container, container)
		if err != nil {
			return w, err
		}
		page, err := pagesOrSpills(j, container, maxHeap)
		if err != nil {
			return w, err
		}
		w.spill, w.page, w.pagesAtLeast = append(w.spill, spill), append(w.page, page), append(w.pagesAtLeast, false)
	}
	return w, nil
}

// measuredWays returns the measurements of a small program.
func measuredWays(pattern string, shares []float64) (twoWays, error) {
	all := paging.Measured()
	c, ok := all.Curve(pattern)
	if !ok {
		return twoWays{}, fmt.Errorf("pattern %q: has not been measured", pattern)
	}
	w := twoWays{name: pattern, shares: shares}
	for _, share := range shares {
		spill, page := paging.Slowdown{Factor: math.NaN()}, paging.Slowdown{Factor: math.NaN()}
		if s, ok := c.SpillSlowdown(share); ok {
			spill = s
		}
		if s, ok := c.PageSlowdown(share); ok {
			page = s
		}
		w.spill, w.page, w.pagesAtLeast = append(w.spill, spill.Factor), append(w.page, page.Factor),
			append(w.pagesAtLeast, page.AtLeast)
	}
	return w, nil
}

// row prints a way at every share.
func (w *twoWays) row(way string, failed string) []string {
	values := w.spill
	if way == "pages" {
		values = w.page
	}
	row := []string{w.name, way}
	for i, v := range values {
		switch {
		case math.IsNaN(v):
			row = append(row, failed)
		case way == "pages" && w.pagesAtLeast[i]:
			row = append(row, "> "+lab.Decimals(v, 1))
		default:
			row = append(row, lab.Decimals(v, 2))
		}
	}
	return row
}

// series draws both ways.
func (w *twoWays) series(color int) []chart.Series {
	x := make([]float64, len(w.shares))
	for i, s := range w.shares {
		x[i] = 100 * s
	}
	return []chart.Series{{Name: w.name, X: x, Y: w.spill, Color: color}, {X: x, Y: w.page, Color: color, Dashed: true}}
}

// over calls see with both ways for all shares within a range, ends included.
func (w *twoWays) over(from, to float64, see func(spill, page float64)) {
	for i, s := range w.shares {
		if s >= from-1e-9 && s <= to+1e-9 {
			see(w.spill[i], w.page[i])
		}
	}
}

// most is the largest slowdown of either way within a range.
func (w *twoWays) most(from, to float64) float64 {
	most := 0.0
	w.over(from, to, func(spill, page float64) { most = max(most, spill, page) })
	return most
}

func fig13Paging(*lab.Lab) (*lab.Findings, error) {
	shares := []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
	var small, large, scan, merge twoWays
	var err error
	for _, c := range []struct {
		into *twoWays
		made func() (twoWays, error)
	}{
		{&large, func() (twoWays, error) {
			return simulatedWays("Pagerank, large input", app("PR", true).typical(), shares)
		}},
		{&small, func() (twoWays, error) {
			return simulatedWays("Pagerank, small input", app("PR", false).typical(), shares)
		}},
		{&scan, func() (twoWays, error) { return measuredWays("scan", shares) }},
		{&merge, func() (twoWays, error) { return measuredWays("merge", shares) }},
	} {
		if *c.into, err = c.made(); err != nil {
			return nil, err
		}
	}
	heads := []string{"program", "way"}
	for _, s := range shares {
		heads = append(heads, lab.Percent(s))
	}
	table := lab.NewTable("Run time over that with all memory, by the share of it; the first four simulated, the "+
		"others measured", heads...)
	data := lab.NewTable("slowdowns", "program", "simulated", "memory_share", "spilling", "paging",
		"paging_is_lower_bound")
	for _, w := range []*twoWays{&large, &small, &scan, &merge} {
		table.Add(w.row("spills", "out of memory")...)
		table.Add(w.row("pages", "–")...)
		for i, s := range w.shares {
			data.Put(w.name, w == &large || w == &small, s, w.spill[i], w.page[i], w.pagesAtLeast[i])
		}
	}
	simulated := &chart.Plot{Title: "Pagerank with less memory",
		Subtitle: "simulated; solid: spilling, dashed: paging (its curve is the paper's number)", X: "memory, % of 64 GB",
		Y: "slowdown", LogY: true}
	simulated.Series = append(large.series(1), small.series(2)...)
	measured := &chart.Plot{Title: "Small programs with less memory",
		Subtitle: "measured; solid: spilling, dashed: paging", X: "memory, % of the ideal", Y: "slowdown", LogY: true}
	measured.Series = append(scan.series(3), merge.series(4)...)
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "simulated",
			Caption: "Paging and spilling of Pagerank (simulated; the curve for paging was taken from this figure)",
			Picture: simulated},
			{Name: "measured", Caption: "Paging and spilling of two small programs (measured)", Picture: measured}},
		Claims: fig13Claims(large, small, scan, merge),
	}, nil
}

// spillingWins counts in how many cases spilling is faster with 30 and 40 % of the memory.
func spillingWins(ways ...*twoWays) (wins, tried int) {
	for _, w := range ways {
		w.over(0.3, 0.4, func(spill, page float64) {
			tried++
			if spill < page {
				wins++
			}
		})
	}
	return wins, tried
}

func fig13Claims(large, small, scan, merge twoWays) []lab.Claim {
	atHalf := func(w *twoWays) float64 { return w.most(0.5, 1) }
	wins, tried := spillingWins(&scan, &merge)
	simulatedWins, simulatedTried := spillingWins(&large, &small)
	fails := func(w *twoWays) float64 { // the largest share at which spilling fails
		most := 0.0
		for i, s := range w.shares {
			if math.IsNaN(w.spill[i]) {
				most = s
			}
		}
		return most
	}
	worst := func(w *twoWays) float64 {
		most := 0.0
		w.over(0, 0.29, func(_, page float64) { most = max(most, page) })
		return most
	}
	return []lab.Claim{
		Paper.Stated("pufferfish/fig13", "ideal-at-half").
			Judge(fmt.Sprintf("up to %sx (large), %sx (small) simulated; %sx (scan), %sx (merge) measured, from 0.5 to 1",
				lab.Decimals(atHalf(&large), 1), lab.Decimals(atHalf(&small), 1), lab.Decimals(atHalf(&scan), 1),
				lab.Decimals(atHalf(&merge), 1)), max(atHalf(&large), atHalf(&small), atHalf(&scan), atHalf(&merge)) <= 1.1,
				min(atHalf(&large), atHalf(&small), atHalf(&scan), atHalf(&merge)) <= 1.1),
		Paper.Stated("pufferfish/fig13", "spilling-wins").
			Judge(fmt.Sprintf("measured: in %d of %d; simulated: in %d of %d", wins, tried, simulatedWins, simulatedTried),
				wins == tried, wins > 0),
		Paper.Stated("pufferfish/fig13", "spilling-fails").
			Judge(fmt.Sprintf("simulated: up to %s (large), %s (small); measured: none", lab.Decimals(fails(&large), 1),
				lab.Decimals(fails(&small), 1)), fails(&large) >= 0.2 && fails(&large) <= 0.3 || fails(&small) >= 0.2 &&
				fails(&small) <= 0.3, fails(&small) >= 0.1 || fails(&large) >= 0.1),
		Paper.Stated("pufferfish/fig13", "paging-completes").
			Judge(fmt.Sprintf("measured: scan more than %sx, merge up to %sx; simulated: up to %sx, the curve being the "+
				"paper's", lab.Decimals(worst(&scan), 0), lab.Decimals(worst(&merge), 0), lab.Decimals(max(worst(&large),
				worst(&small)), 0)),
				lab.Within(worst(&scan), 5, 20) && lab.Within(worst(&merge), 5, 20), lab.Within(worst(&scan), 5, 20) ||
					lab.Within(worst(&merge), 5, 20)),
	}
}
