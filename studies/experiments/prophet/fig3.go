package prophet

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// misses are relative errors, or relative standard errors: of stage start times, and of peak bandwidths by stage.
type misses struct {
	Start   []float64 `json:"start"`
	Disk    []float64 `json:"disk"`
	Network []float64 `json:"network"`
}

func (m *misses) add(more misses) {
	m.Start, m.Disk, m.Network = append(m.Start, more.Start...), append(m.Disk, more.Disk...),
		append(m.Network, more.Network...)
}

func (m *misses) all() []float64 {
	return append(append(append([]float64(nil), m.Start...), m.Disk...), m.Network...)
}

// spreadOf runs an application five times and returns the relative standard errors (section II.B).
func spreadOf(a *app, r *rand.Rand) (m misses) {
	const runs = 5
	stages := len(a.stages())
	starts, disk, network := make([][]float64, stages), make([][]float64, stages), make([][]float64, stages)
	for range runs {
		begins := 0.0
		for k, p := range a.phases(lab.Varied(r)) {
			starts[k] = append(starts[k], begins)
			disk[k] = append(disk[k], float64(p.Demand[resource.Disk]))
			network[k] = append(network[k], float64(p.Demand[resource.Network]))
			begins += p.Duration.Seconds()
		}
	}
	relative := func(to []float64, of [][]float64) []float64 {
		for _, values := range of {
			if average := lab.Mean(values); average > 0 {
				squares := 0.0
				for _, v := range values {
					squares += (v - average) * (v - average)
				}
				to = append(to, math.Sqrt(squares/(runs-1)/runs)/average)
			}
		}
		return to
	}
	m.Start, m.Disk, m.Network = relative(nil, starts), relative(nil, disk), relative(nil, network)
	return m
}

// predicted compares what a history says of an application with what the application's model says.
func predicted(h *profile.History, a *app) (m misses) {
	e, ok := h.Estimate(profile.App{Name: a.name}, featuresOf(a))
	truth := a.phases(exactly)
	if !ok || len(e.Variants[0].Phases) != len(truth) {
		return misses{Start: []float64{math.Inf(1)}}
	}
	at, begins := 0.0, 0.0
	miss := func(to []float64, k resource.Kind, is, was *cluster.Phase) []float64 {
		if was.Demand[k] == 0 {
			return to
		}
		return append(to, math.Abs(float64(is.Demand[k])/float64(was.Demand[k])-1))
	}
	for i := range truth {
		is, was := &e.Variants[0].Phases[i], &truth[i]
		if begins > 0 {
			m.Start = append(m.Start, math.Abs(at/begins-1))
		}
		m.Disk, m.Network = miss(m.Disk, resource.Disk, is, was), miss(m.Network, resource.Network, is, was)
		at, begins = at+is.Duration.Seconds(), begins+was.Duration.Seconds()
	}
	return m
}

func featuresOf(a *app) profile.Features {
	return profile.Features{Cores: resource.Amount(a.cores) * resource.Core,
		Input: lab.PartOf(a.input/float64(a.executors), resource.GB), Memory: a.memory}
}

// The 25 profiled settings, and new ones: within the profiled range, and beyond it.
var (
	profiledCores, profiledShares = []int{1, 2, 3, 4, 5}, []float64{0.2, 0.4, 0.6, 0.8, 1}
	insideCores, insideShares     = []int{1, 2, 3, 4, 5}, []float64{0.3, 0.5, 0.7, 0.9}
	outsideCores, outsideShares   = []int{3, 5, 8}, []float64{1.5, 2}
)

// predictions are the errors at new settings of one benchmark, by the models that History may use.
type predictions struct {
	Inside, Outside misses
}

// profiled returns the history of 25 runs of a benchmark. rows are the models that it may use; nil is all.
func (b *benchmark) profiled(assumed *assumed, seed uint64, rows []string) (*profile.History, error) {
	r := rand.New(rand.NewPCG(seed, 0x25))
	h := &profile.History{Rows: rows}
	for _, cores := range profiledCores {
		for _, share := range profiledShares {
			a := app{b, assumed, b.inputs[0] * share, cores}
			if _, err := h.Observe(profile.App{Name: b.name},
				profile.Run{Features: featuresOf(&a), Phases: a.phases(lab.Varied(r))}); err != nil {
				return nil, err
			}
		}
	}
	return h, nil
}

// predict profiles a benchmark in 25 settings and predicts new ones.
func (b *benchmark) predict(seed uint64, rows []string) (p predictions, err error) {
	h, err := b.profiled(&usual, seed, rows)
	if err != nil {
		return p, err
	}
	each := func(to *misses, cores []int, shares []float64) {
		for _, c := range cores {
			for _, share := range shares {
				to.add(predicted(h, &app{b, &usual, b.inputs[0] * share, c}))
			}
		}
	}
	each(&p.Inside, insideCores, insideShares)
	each(&p.Outside, outsideCores, outsideShares)
	return p, nil
}

func figure3(l *lab.Lab) (*lab.Findings, error) {
	var spread misses
	r := rand.New(rand.NewPCG(l.RunSeed(0), 3))
	for _, a := range usual.apps() {
		spread.add(spreadOf(&a, r))
	}
	predictors := []struct {
		name string
		rows []string
	}{{"Prophet's: linear SVR", []string{profile.BySVR}}, {"ours: the best model of each number", nil}}
	benchmarks := benchmarks
	if l.Quick {
		benchmarks = benchmarks[len(benchmarks)-2:]
	}
	results := make([]predictions, len(predictors))
	err := lab.Each(l, "benchmarks", len(predictors)*len(benchmarks), func(i int) (predictions, error) {
		return benchmarks[i%len(benchmarks)].predict(l.RunSeed(0), predictors[i/len(benchmarks)].rows)
	}, func(i int, p predictions) {
		of := &results[i/len(benchmarks)]
		of.Inside.add(p.Inside)
		of.Outside.add(p.Outside)
	})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Errors of predictions from 25 runs (medians, and shares below 10 %)", "predictor", "settings",
		"stage start", "disk", "network", "all")
	plot := &chart.Plot{Title: "Errors of predictions from 25 runs",
		Subtitle: "models of benchmarks, with the spread of repeated runs", X: "relative error, %",
		Y: "share of predictions", XMin: new(float64), XMax: to(50.0)}
	below := func(v []float64) string {
		return lab.Percent(lab.Median(v)) + ", " + lab.Percent(lab.ShareAtMost(v, 0.1))
	}
	for i, p := range predictors {
		for _, s := range []struct {
			name string
			*misses
		}{{"between profiled ones", &results[i].Inside}, {"beyond them", &results[i].Outside}} {
			table.Add(p.name, s.name, below(s.Start), below(s.Disk), below(s.Network), below(s.all()))
			plot.Series = append(plot.Series, chart.CDF(p.name+", "+s.name, lab.Scaled(s.all(), 100)))
		}
	}
	return &lab.Findings{Tables: []lab.Table{table},
		Pictures: []lab.Picture{
			{Name: "spread", Caption: "Relative standard errors over five runs of each setting (models)",
				Picture: &chart.Plot{Title: "Spread of five runs", Subtitle: "models", X: "relative standard error, %",
					Y: "share of stages", Series: []chart.Series{chart.CDF("stage start", lab.Scaled(spread.Start, 100)),
						chart.CDF("disk bandwidth", lab.Scaled(spread.Disk, 100)),
						chart.CDF("network bandwidth", lab.Scaled(spread.Network, 100))}}},
			{Name: "predictions", Caption: "Errors of predictions of new settings from 25 profiled ones (models)",
				Picture: plot}},
		Claims: fig3Claims(&spread, &results[0], &results[1])}, nil
}

// fig3Claims judges the spread of repeated runs, and the errors of the paper's predictor. The errors of our models
// are only printed.
func fig3Claims(spread *misses, paper, ours *predictions) []lab.Claim {
	judged := func(id string, paper, ours *misses) lab.Claim {
		good := lab.ShareAtMost(paper.all(), 0.1)
		return Paper.Stated("prophet/fig3",
			id).Judge(fmt.Sprintf(
			"below 10 %% for %s of the predictions (stage starts %s), and for %s with the best model of each number",
			lab.Percent(good), lab.Percent(lab.ShareAtMost(paper.Start, 0.1)), lab.Percent(lab.ShareAtMost(ours.all(), 0.1))),
			good >= 0.8,
			good >= 0.5)
	}
	all, starts := lab.ShareAtMost(spread.all(), 0.1), lab.ShareAtMost(spread.Start, 0.05)
	return []lab.Claim{
		Paper.Stated("prophet/fig3", "stable").MadeSo(fmt.Sprintf("below 10 %% for %s, stage starts below 5 %% for %s",
			lab.Percent(all), lab.Percent(starts)), all > 0.9 && starts > 0.9),
		judged("predicted", &paper.Inside, &ours.Inside), judged("extrapolated", &paper.Outside, &ours.Outside),
	}
}

func to[T any](v T) *T { return &v }
