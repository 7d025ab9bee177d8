package yarnme

import (
	"fmt"
	"math"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
	"github.com/bellows-rm/bellows/studies/framework"
	"github.com/bellows-rm/bellows/studies/paging"
)

// fitted returns the model of a framework's task with the given slowdown at a share of its ideal memory.
func fitted(f framework.Task, share, slowdown float64) (framework.Model, resource.Amount, error) {
	const well = 100 * time.Second
	ideal, ok := framework.IdealMemory(f)
	if !ok {
		return framework.Model{}, 0, fmt.Errorf("%s: spills at every size", f.Name())
	}
	m, err := framework.Fit(f, framework.Run{Memory: ideal, Duration: well},
		framework.Run{Memory: lab.PartOf(share, ideal), Duration: time.Duration(slowdown * float64(well))})
	return m, ideal, err
}

// profileSeries draws slowdown over memory, from 10 to 110 % of the ideal.
func profileSeries(name string, m framework.Model, ideal resource.Amount, data *lab.Table) chart.Series {
	s := chart.Series{Name: name}
	for k := 100; k <= 1100; k += 5 {
		share := float64(k) / 1000
		s.X, s.Y = append(s.X, 100*share), append(s.Y, m.Slowdown(lab.PartOf(share, ideal)))
		data.Put(name, share, s.Y[len(s.Y)-1])
	}
	return s
}

func profilePlot(title string) *chart.Plot {
	return &chart.Plot{Title: title, Subtitle: "computed from a model of the framework", X: "memory, % of the ideal",
		Y: "slowdown"}
}

func fig1a(*lab.Lab) (*lab.Findings, error) {
	const output, records = 256 * resource.MB, 2_560_000
	plot, data := profilePlot("Mappers: slowdown with less memory"),
		lab.NewTable("profiles", "task", "memory_share", "slowdown")
	worst := 0.0
	for _, c := range []struct {
		name    string
		penalty float64
	}{{"WordCount with combiner", 1.15}, {"WordCount", 1.35}, {"largest", 1.5}} {
		m, ideal, err := fitted(framework.HadoopMapperPaper(output, records), 0.5, c.penalty)
		if err != nil {
			return nil, err
		}
		plot.Series = append(plot.Series, profileSeries(c.name, m, ideal, &data))
	}
	m, ideal, err := fitted(framework.HadoopMapperDefaults(output, records), 0.5, 1.5)
	if err != nil {
		return nil, err
	}
	s := profileSeries("largest, Hadoop's defaults", m, ideal, &data)
	s.Dashed = true
	plot.Series = append(plot.Series, s)
	near, sizes := 0, 0
	for k := 100; k < 1000; k += 5 {
		slower := m.Slowdown(lab.PartOf(float64(k)/1000, ideal))
		worst = math.Max(worst, slower)
		sizes++
		if math.Abs(slower/1.5-1) <= 0.05 {
			near++
		}
	}
	share := float64(near) / float64(sizes)
	return &lab.Findings{
		Data: []lab.Table{data}, Pictures: []lab.Picture{{Name: "profiles",
			Caption: "Slowdown of mappers over memory (computed)", Picture: plot}},
		Claims: []lab.Claim{Paper.Stated("yarn-me/fig1a", "step").
			Judge(fmt.Sprintf("with Hadoop's defaults %s of the sizes from 10 %% on are within 5 %% of the step; at "+
				"worst %.2fx instead of 1.5x", lab.Percent(share), worst), share >= 0.9, share >= 0.5)},
	}, nil
}

func fig1b(*lab.Lab) (*lab.Findings, error) {
	reducer := framework.HadoopReducerPaper(10*resource.GB, 10*resource.MB)
	plot, data := profilePlot("Reducers: slowdown with less memory"),
		lab.NewTable("profiles", "task", "memory_share", "slowdown")
	for _, c := range []struct {
		name    string
		penalty float64 // Table 1 and the introduction
	}{{"Pagerank job 1", 1.22}, {"Pagerank job 2", 1.75}, {"NutchIndexing", 1.08}, {"WordCount", 1.9},
		{"Recommender job 1", 2.6}, {"Recommender job 2", 3.3}} {
		m, ideal, err := fitted(reducer, 0.999, c.penalty)
		if err != nil {
			return nil, err
		}
		plot.Series = append(plot.Series, profileSeries(c.name, m, ideal, &data))
	}
	words, ideal, err := fitted(reducer, 0.83, 1.84)
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("WordCount's reducer: the paper's measurements and the model fitted to the first", "memory",
		"paper", "model", "error")
	worst := 0.0
	for _, p := range []struct{ share, slower float64 }{{0.83, 1.84}, {0.41, 1.83}, {0.1, 1.82}} {
		says := words.Slowdown(lab.PartOf(p.share, ideal))
		worst = math.Max(worst, math.Abs(says/p.slower-1))
		table.Add(lab.Percent(p.share), lab.Decimals(p.slower, 2), lab.Decimals(says, 2), lab.Decimals(100*(says/p.slower-1),
			1)+" %")
	}
	example := framework.HadoopReducerPaper(2010*resource.MB, 10*resource.MB)
	spills := func(buffer resource.Amount) float64 {
		return float64(example.SpilledBytes(lab.PartOf(1/example.InputBufferPercent, buffer)+1)) / 1e9
	}
	half, one5, two := spills(500*resource.MB), spills(1500*resource.MB), spills(2000*resource.MB)
	exactly := math.Abs(half-2) < 0.005 && math.Abs(one5-1.5) < 0.005 && math.Abs(two-2) < 0.005
	low, high := words.Slowdown(lab.PartOf(0.52, ideal)), words.Slowdown(lab.PartOf(0.83, ideal))
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "profiles", Caption: "Slowdown of reducers over memory (computed)", Picture: plot}},
		Claims: []lab.Claim{
			Paper.Stated("yarn-me/fig1b", "word-count").Because(words.Slowdown(lab.PartOf(0.101, ideal))).
				Judge(fmt.Sprintf("%.2f and %.2f, predicted", words.Slowdown(lab.PartOf(0.41, ideal)),
					words.Slowdown(lab.PartOf(0.1, ideal))),
					worst <= 0.05, worst <= 0.1),
			Paper.Stated("yarn-me/fig1b", "spills").Judge(fmt.Sprintf("%.2f, %.2f and %.2f GB", half, two, one5),
				exactly, false),
			Paper.Stated("yarn-me/fig1b", "less-is-better").Judge(fmt.Sprintf("%.2f and %.2f", low, high),
				low < high, false),
		},
	}, nil
}

func fig1c(*lab.Lab) (*lab.Findings, error) {
	measured := paging.Measured()
	table := lab.NewTable("Errors of the model at sizes it was not fitted to", "memory", "merge", "sort")
	data := lab.NewTable("predictions", "program", "memory_share", "measured_s", "predicted_s", "written_bytes",
		"computed_bytes")
	plot := &chart.Plot{Title: "Error of the two-run model",
		Subtitle: "measured here with small programs; fitted at 50 and 100 %", X: "memory, % of the ideal",
		Y: "predicted over measured, % off", Lines: []chart.Rule{{At: 5}, {At: -5}}}
	var errors, spills []float64
	rows := map[float64][]string{}
	var shares []float64
	for _, pattern := range []string{"merge", "sort"} {
		curve, ok := measured.Curve(pattern)
		if !ok {
			return nil, fmt.Errorf("program %s was not measured", pattern)
		}
		m := fitTwoRuns(curve)
		s := chart.Series{Name: pattern, Points: true}
		for _, p := range curve.Points {
			if p.Share == 0.5 || p.Share == 1 {
				continue
			}
			fastest, _ := p.Spill.Range()
			predicted := m.seconds(lab.PartOf(p.Share, curve.Ideal))
			off := predicted/fastest - 1
			errors = append(errors, math.Abs(off))
			s.X, s.Y = append(s.X, 100*p.Share), append(s.Y, 100*off)
			computed := float64(m.spilled(lab.PartOf(p.Share, curve.Ideal)))
			spills = append(spills, math.Abs(computed/float64(p.Spill.Written)-1))
			data.Put(pattern, p.Share, fastest, predicted, float64(p.Spill.Written), computed)
			if rows[p.Share] == nil {
				shares = append(shares, p.Share)
			}
			rows[p.Share] = append(rows[p.Share], lab.Decimals(100*off, 1)+" %")
		}
		plot.Series = append(plot.Series, s)
	}
	for _, share := range shares {
		table.Add(append([]string{lab.Percent(share)}, rows[share]...)...)
	}
	bytesOff := lab.Quantile(spills, 1)
	five, ten := lab.ShareAtMost(errors, profile.Near), lab.ShareAtMost(errors, profile.Far)
	return &lab.Findings{
		Tables: []lab.Table{table}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "errors", Caption: "Errors of the two-run model (measured)", Picture: plot}},
		Claims: []lab.Claim{Paper.Stated("yarn-me/fig1c",
			"computable").Judge(fmt.Sprintf("at most %.1f %% off what was written",
			100*bytesOff), bytesOff <= 0.05, bytesOff <= 0.1), Paper.Stated("yarn-me/fig1c", "accuracy").
			Judge(fmt.Sprintf("%s within 5 %%, %s within 10 %%, the worst is off by %s", lab.Percent(five), lab.Percent(ten),
				lab.Percent(lab.Quantile(errors, 1))), five > 0.5, ten > 0.5)},
	}, nil
}

// twoRuns is the paper's model, T = well + spilled bytes / rate, fitted to a run with all memory and one with half of
// it.
type twoRuns struct {
	input resource.Amount
	well  float64 // seconds
	rate  float64 // bytes per second
}

// spilled returns the bytes that a measured program spills at a size. It keeps data in seven eighths of its container
// less 16 MiB for itself, and reads spills through the other eighth.
func (t *twoRuns) spilled(memory resource.Amount) resource.Amount {
	return profile.SpilledWhole(t.input, (memory-programItself)*7/8)
}

// programItself is the memory of the measured programs besides their data.
const programItself = 16 * resource.MiB

func (t *twoRuns) seconds(memory resource.Amount) float64 {
	return t.well + float64(t.spilled(memory))/t.rate
}

func fitTwoRuns(c *paging.Curve) twoRuns {
	t := twoRuns{input: c.Ideal - programItself}
	under, memory := 0.0, resource.Amount(0)
	for _, p := range c.Points {
		fastest, _ := p.Spill.Range()
		switch p.Share {
		case 1:
			t.well = fastest
		case 0.5:
			under, memory = fastest, lab.PartOf(p.Share, c.Ideal)
		}
	}
	t.rate = float64(t.spilled(memory)) / (under - t.well)
	return t
}
