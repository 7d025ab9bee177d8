package pufferfish

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// usageOver returns the memory in use by an executor with the given share of the hot executor's memory, at evenly
// spread times, GB.
func (a *pufferfishApp) usageOver(share float64) []float64 {
	const moments = 1000
	all := make([]float64, moments)
	for i := range all {
		all[i] = share * float64(a.memoryAt((float64(i)+0.5)/moments)) / 1e9
	}
	return all
}

func figure2(l *lab.Lab) (*lab.Findings, error) {
	data := lab.NewTable("percentiles", "application", "executor", "p50_gb", "p90_gb", "peak_gb")
	j := app("PR", true).draw(rand.New(rand.NewPCG(l.Seed, 2)))
	bars := &chart.Bars{Title: "Memory of Pagerank's executors over time",
		Subtitle: "computed from a model, large input; the heap is 64 GB", Y: "GB in use"}
	middle, high := chart.BarSeries{Name: "50th percentile"}, chart.BarSeries{Name: "90th percentile"}
	for i, share := range append([]float64{1}, j.cold...) {
		use := j.usageOver(share)
		p50, p90 := lab.Quantile(use, 0.5), lab.Quantile(use, 0.9)
		bars.Groups = append(bars.Groups, strconv.Itoa(i+1))
		middle.Values, high.Values = append(middle.Values, p50), append(high.Values, p90)
		data.Put(j.String(), i+1, p50, p90, lab.Quantile(use, 1))
	}
	bars.Series = []chart.BarSeries{middle, high}
	table := lab.NewTable("Memory in use by the hot executor with a heap of 64 GB", "application",
		"a third of the time at most, GB", "50th percentile", "90th percentile", "peak", "mean of all executors over 64 GB")
	for i := range apps {
		a := &apps[i]
		use := a.usageOver(1)
		table.Add(a.String(), lab.Decimals(lab.Quantile(use, 1./3), 0), lab.Decimals(lab.Quantile(use, 0.5), 0),
			lab.Decimals(lab.Quantile(use, 0.9), 0), lab.Decimals(lab.Quantile(use, 1), 0), lab.Percent(a.boxShare()))
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: figure2Claims(middle.Values),
		Pictures: []lab.Picture{{Name: "executors",
			Caption: "Percentiles over time of the memory of each executor of Pagerank; the first is the hot one (computed)",
			Picture: bars}},
	}, nil
}

// boxShare returns the share of containers of 64 GB that a typical job's executors use, averaged over their time.
func (a *pufferfishApp) boxShare() float64 {
	shares := append([]float64{1}, a.typical().cold...)
	return lab.Mean(shares) * a.meanMemory() / float64(maxHeap)
}

func figure2Claims(medians []float64) []lab.Claim {
	third := func(name string, large bool, heap float64) float64 {
		return lab.Quantile(app(name, large).usageOver(1), 1./3) / heap
	}
	pr, km, ts := third("PR", false, 64), third("KM", false, 64), third("TS", true, float64(app("TS", true).peak)/1e9)
	used, all := 0.0, 0.0
	for i := range apps {
		a := &apps[i]
		work := float64(a.jobs*a.executors) * a.typical().alone().Seconds()
		used, all = used+work*a.boxShare(), all+work
	}
	hot := medians[0] / lab.Mean(medians[1:])
	perNode := used / all * float64(maxHeap)
	return []lab.Claim{
		Paper.Stated("pufferfish/fig2", "third-of-the-time").
			MadeSo(fmt.Sprintf("%s, %s and %s", lab.Percent(pr), lab.Percent(km), lab.Percent(ts)),
				max(pr-0.49, 0.49-pr, km-0.64, 0.64-km, ts-0.86, 0.86-ts) <= 0.02),
		Paper.Stated("pufferfish/fig2", "hot-executor").
			MadeSo(fmt.Sprintf("the hot executor %.1fx the others", hot), hot >= 1.5),
		Paper.Stated("pufferfish/fig2", "unused").
			Judge(fmt.Sprintf("over all jobs of Table 2, weighed by their run time, %s of containers of 64 GB is in use; "+
				"%s executors would fit into a node's 120 GB instead of one if each held no more than it uses",
				lab.Percent(used/all),
				lab.Decimals(float64(nodeHas)/perNode, 1)), used/all < 0.7, used/all < 0.9),
	}
}
