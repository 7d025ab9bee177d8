package yarnme

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// mix is the heterogeneous workload of section 5.2.
func mix() []start {
	all := []start{{pagerank, 0}, {recommender, 0}, {wordCount, 0}, {wordCount, 0}, {wordCount, 0}}
	for i, app := range []application{wordCount, pagerank, wordCount, recommender, wordCount, pagerank, wordCount,
		recommender, wordCount} {
		all = append(all, start{app, time.Duration(i+1) * 5 * time.Minute})
	}
	return all
}

func fig5c(l *lab.Lab) (*lab.Findings, error) {
	starts := mix()
	if l.Quick {
		starts = starts[2:4]
	}
	var pairs []pair
	data := lab.NewTable("runs", "iteration", "application", "start_s", "yarn_runtime_s", "yarn_me_runtime_s",
		"yarn_map_s",
		"yarn_me_map_s")
	err := lab.Each(l, "mix", l.Runs, func(i int) (pair, error) {
		return assumedDefault.runPair(yarnMESum, starts, l.RunSeed(i))
	}, func(i int, p pair) {
		pairs = append(pairs, p)
		for k, s := range starts {
			data.Put(i, s.app.name, s.at.Seconds(), p.YARN.Runtimes[k], p.Elastic.Runtimes[k], p.YARN.Maps[k], p.Elastic.Maps[k])
		}
	})
	if err != nil {
		return nil, err
	}
	sensitivity, err := sensitivityTable(l, starts)
	if err != nil {
		return nil, err
	}
	f := fig5cFindings(starts, pairs)
	f.Tables, f.Data = append(f.Tables, sensitivity), []lab.Table{data}
	return f, nil
}

// ofApplication returns the gains of one application's runs, per iteration: the gain of the mean of the values that of
// returns.
func ofApplication(starts []start, pairs []pair, name string, of func(phases) []float64) []float64 {
	var all []float64
	for _, p := range pairs {
		var before, after float64
		for k, s := range starts {
			if name == "" || s.app.name == name {
				before, after = before+of(p.YARN)[k], after+of(p.Elastic)[k]
			}
		}
		all = append(all, lab.Gain(before, after))
	}
	return all
}

func fig5cFindings(starts []start, pairs []pair) *lab.Findings {
	runtimes, maps := func(p phases) []float64 { return p.Runtimes }, func(p phases) []float64 { return p.Maps }
	table := lab.NewTable("Share by which YARN-ME is faster than YARN (average of the iterations)", "application",
		"runtime",
		"map phase")
	bars := &chart.Bars{Title: "A mix of applications: YARN-ME over YARN",
		Subtitle: "simulated; average, minimum and maximum of the iterations", Y: "improvement, %",
		Series: []chart.BarSeries{{Name: "runtime"}, {Name: "map phase"}}}
	for _, name := range []string{"", pagerank.name, recommender.name, wordCount.name} {
		if name != "" && !slices.ContainsFunc(starts, func(s start) bool { return s.app.name == name }) {
			continue
		}
		title := name
		if title == "" {
			title = "all"
		}
		bars.Groups = append(bars.Groups, title)
		row := []string{title}
		for k, of := range []func(phases) []float64{runtimes, maps} {
			g := ofApplication(starts, pairs, name, of)
			s := &bars.Series[k]
			s.Values, s.Low, s.High = append(s.Values, 100*lab.Mean(g)), append(s.Low, 100*slices.Min(g)),
				append(s.High, 100*slices.Max(g))
			row = append(row, lab.Percent(lab.Mean(g)))
		}
		table.Add(row...)
	}
	overall, map5c := lab.Mean(gains(pairs, metrics[0])), lab.Mean(gains(pairs, metrics[1]))
	most := bestMap(starts, pairs, recommender.name)
	claims := []lab.Claim{
		Paper.Stated("yarn-me/fig5c", "runtime").Near(lab.Percent(overall), 0.6, overall),
		Paper.Stated("yarn-me/fig5c", "map-phase").Near(lab.Percent(map5c), 0.67, map5c),
		Paper.Stated("yarn-me/fig5c", "recommender-maps").Near("up to "+lab.Percent(most), 0.72, most),
	}
	before, after := meanMemory(pairs)
	return &lab.Findings{
		Tables: []lab.Table{table}, Claims: claims,
		Pictures: []lab.Picture{{Name: "mix",
			Caption: "Improvement of YARN-ME over YARN for a mix of applications (simulated)", Picture: bars}},
		Notes: []string{fmt.Sprintf("Memory in use: %s under YARN, %s under YARN-ME; makespan shorter by %s.",
			lab.Percent(before), lab.Percent(after), lab.Percent(lab.Mean(gains(pairs, metrics[3]))))},
	}
}

// bestMap returns the largest gain in the map phase of any run of an application, -Inf if there is none.
func bestMap(starts []start, pairs []pair, name string) float64 {
	most := math.Inf(-1)
	for _, p := range pairs {
		for k, s := range starts {
			if s.app.name == name {
				most = max(most, lab.Gain(p.YARN.Maps[k], p.Elastic.Maps[k]))
			}
		}
	}
	return most
}
