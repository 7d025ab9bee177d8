package pufferfish

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// heaps are the heaps of section 2 and 5.
var heaps = []resource.Amount{4 * resource.GB, 8 * resource.GB, 16 * resource.GB, 32 * resource.GB,
	64 * resource.GB}

func figure1(*lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable("Run time by heap size, s (of it garbage collection)", "application")
	data := lab.NewTable("runtimes", "application", "heap_gb", "survives", "execution_s", "collection_s")
	for _, h := range heaps {
		table.Heads = append(table.Heads, gigabytes(h))
	}
	bars := &chart.Bars{Title: "Run time by heap size",
		Subtitle: "computed from models; what is missing runs out of memory", Y: "s", Width: 960}
	execution, collection := chart.BarSeries{Name: "execution"}, chart.BarSeries{Name: "garbage collection"}
	for _, a := range []*pufferfishApp{app("KM", false), app("PR", false), app("PR", true), app("TS", true)} {
		row := []string{a.String()}
		for _, h := range heaps {
			s, ok := a.typical().with(h)
			run, gc, cell := s.run.Seconds(), (s.all - s.run).Seconds(), "OOM"
			data.Put(a.String(), float64(h/resource.GB), ok, run, gc)
			if ok {
				cell = fmt.Sprintf("%.0f (%.0f)", run+gc, gc)
			} else {
				run, gc = math.NaN(), math.NaN()
			}
			row = append(row, cell)
			bars.Groups = append(bars.Groups, fmt.Sprintf("%s %d", a, h/resource.GB))
			execution.Values, collection.Values = append(execution.Values, run), append(collection.Values, gc)
		}
		table.Add(row...)
	}
	bars.Series = []chart.BarSeries{execution, collection}
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: figure1Claims(),
		Pictures: []lab.Picture{{Name: "runtime",
			Caption: "Run time by heap size in GB, execution and garbage collection (computed)", Picture: bars}},
	}, nil
}

func figure1Claims() []lab.Claim {
	seconds := func(name string, large bool, heap resource.Amount) float64 {
		s, ok := app(name, large).typical().with(heap)
		if !ok {
			return math.Inf(1)
		}
		return s.all.Seconds()
	}
	const gb = resource.GB
	kmeans := seconds("KM", false, 8*gb) / seconds("KM", false, 64*gb)
	fails := math.IsInf(seconds("KM", false, 4*gb), 1)
	pagerank32 := math.IsInf(seconds("PR", true, 32*gb), 1)
	larger := 0
	for _, a := range []struct {
		name  string
		large bool
	}{{"KM", false}, {"PR", true}, {"TS", true}} {
		better := true
		for i := range heaps[1:] {
			better = better && seconds(a.name, a.large, heaps[i+1]) <= seconds(a.name, a.large, heaps[i])
		}
		if better {
			larger++
		}
	}
	s, _ := app("KM", false).typical().with(8 * gb)
	collecting := 1 - s.run.Seconds()/s.all.Seconds()
	return []lab.Claim{
		Paper.Stated("pufferfish/fig1", "oom-at-4").
			MadeSo(map[bool]string{true: "OOM", false: "survives"}[fails], fails),
		Paper.Stated("pufferfish/fig1", "five-times").
			MadeSo(fmt.Sprintf("%.1fx", kmeans), kmeans > 4.5 && kmeans < 5.5),
		Paper.Stated("pufferfish/fig1", "pagerank-survives").
			Judge(map[bool]string{true: "OOM at 32 GB", false: "survives 32 GB, with the large input too"}[pagerank32],
				pagerank32, false),
		Paper.Stated("pufferfish/fig1", "larger-is-faster").Judge(fmt.Sprintf("%d of 3", larger),
			larger == 3, larger == 2),
		Paper.Stated("pufferfish/fig1", "beyond-survival").
			Judge(fmt.Sprintf("of Kmeans' time with 8 GB %s is collection; execution alone is %.1fx of that with 64 GB",
				lab.Percent(collecting), s.run.Seconds()/app("KM", false).duration.Seconds()),
				s.run.Seconds() >= 1.5*app("KM", false).duration.Seconds(), false),
	}
}
