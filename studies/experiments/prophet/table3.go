package prophet

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// makespans are the makespans of Table III, in seconds.
var makespans = map[string]float64{"CS": 16604, "DRF": 18369, "Tetris": 25537, "Prophet": 11290,
	"Prophet w/o back-off": 15707}

func table3(l *lab.Lab) (*lab.Findings, error) {
	all := schedulers()
	t, err := contest(l, "schedulers", all, &usual)
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Makespan (median of the workloads, and range)", "scheduler", "ours", "paper",
		"over Prophet's, ours", "over Prophet's, ours, "+lab.InPairs, "over Prophet's, paper")
	data := lab.NewTable("makespans", "scheduler", "run", "makespan_s")
	own := lab.Place("Prophet", all)
	for i, c := range all {
		paper, over := "–", "–"
		if m, ok := makespans[c.Label]; ok {
			paper, over = lab.Decimals(m, 0)+" s", lab.Decimals(m/makespans["Prophet"], 2)
		}
		ours, prophets := lab.Values(t[i], makespan), lab.Values(t[own], makespan)
		table.Add(c.Label, lab.AcrossTraces(ours, 0)+" s", paper, lab.AcrossTraces(lab.Ratios(ours, prophets), 2),
			lab.Paired(ours, prophets), over)
		for run, one := range t[i] {
			data.Put(c.Label, run, one.Makespan)
		}
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: table3Claims(all, t)}, nil
}

func table3Claims(all []lab.Contender, t [][]prophetTrial) []lab.Claim {
	of := func(name string) []float64 { return lab.Values(t[lab.Place(name, all)], makespan) }
	saved := func(by, from string) float64 { return 1 - lab.Median(lab.Ratios(of(by), of(from))) }
	var claims []lab.Claim
	for _, c := range []struct {
		id, by, from string
		paper        float64
	}{{"cs", "Prophet", "CS", 0.32}, {"drf", "Prophet", "DRF", 0.39}, {"tetris", "Prophet", "Tetris", 0.56},
		{"backoff", "Prophet", "Prophet w/o back-off", 0.28}} {
		claims = append(claims, Paper.Stated("prophet/table3", c.id).Near(lab.Percent(saved(c.by, c.from)), c.paper,
			saved(c.by, c.from)))
	}
	plain, capacity, fair := saved("Prophet w/o back-off", "CS"), saved("Prophet", "CS"), saved("Prophet", "Fair")
	cs, drf, tetris := lab.Median(of("CS")), lab.Median(of("DRF")), lab.Median(of("Tetris"))
	return append(claims,
		Paper.Stated("prophet/table3", "fair").Near(fmt.Sprintf("%s, and %s", lab.Percent(capacity), lab.Percent(fair)), 0.39,
			max(capacity, fair)),
		Paper.Stated("prophet/table3", "placement").Judge(lab.Percent(plain), lab.Within(plain, 0.02, 0.08), plain > 0),
		Paper.Stated("prophet/table3", "order").Judge(fmt.Sprintf("CS %.0f, DRF %.0f, Tetris %.0f s", cs, drf, tetris),
			cs < drf && drf < tetris, tetris > max(cs, drf)))
}

// cdFs draws distributions of how much faster applications are.
func cdFs(title string, series ...chart.Series) *chart.Plot {
	from, to := -1.0, 1.0
	return &chart.Plot{Title: title, Subtitle: "simulated; all workloads together", X: "reduction; below 0: slower",
		Y: "share of applications", Series: series, XMin: &from, XMax: &to, Lines: []chart.Rule{{At: 0, Vertical: true}}}
}

func figure7(l *lab.Lab) (*lab.Findings, error) {
	all := schedulers()
	t, err := contest(l, "schedulers", all, &usual)
	if err != nil {
		return nil, err
	}
	trialsOf := func(name string) []prophetTrial { return t[lab.Place(name, all)] }
	rows := []string{"Prophet vs. CS", "Prophet vs. DRF", "Tetris vs. Prophet"}
	f := &lab.Findings{}
	for _, reading := range []struct {
		suffix, picture, name string
		times                 func(prophetTrial) []float64
	}{{"", "cdf", "execution times", execution},
		{"-whole", "whole", "times from the start of an application's first executor to the end of its last", whole}} {
		cs, drf := reductions(trialsOf("Prophet"), trialsOf("CS"), reading.times),
			reductions(trialsOf("Prophet"), trialsOf("DRF"), reading.times)
		tetris := reductions(trialsOf("Tetris"), trialsOf("Prophet"), reading.times)
		whose, each := rows, [][]float64{cs, drf, tetris}
		for _, c := range products {
			whose = append(whose[:len(whose):len(whose)], c.Label+" vs. CS")
			each = append(each, reductions(trialsOf(c.Label), trialsOf("CS"), reading.times))
		}
		f.Tables = append(f.Tables, quartiles("Reduction of "+reading.name, whose, l.Runs, each...))
		f.Pictures = append(f.Pictures, lab.Picture{Name: reading.picture,
			Caption: "Distribution over applications of the reduction of " +
				reading.name + " (simulated)", Picture: cdFs("Reduction of "+reading.name, chart.CDF("Prophet vs. CS", cs),
				chart.CDF("Prophet vs. DRF", drf), chart.CDF("Tetris vs. Prophet", tetris))})
		f.Claims = append(f.Claims, fig7Claims(reading.suffix, cs, drf, tetris)...)
	}
	return f, nil
}

// fig7Claims judges reductions of execution times by Prophet over CS and over DRF, and by Tetris over Prophet. suffix
// says from when on they were measured: "-whole" is from the start of an application's first executor.
func fig7Claims(suffix string, cs, drf, tetris []float64) []lab.Claim {
	lose := max(lab.ShareAtMost(cs, 0), lab.ShareAtMost(drf, 0))
	shorter := 1 - lab.ShareAtMost(tetris, -0.01)
	return []lab.Claim{
		Paper.Stated("prophet/fig7", "cs"+suffix).Near(lab.Percent(lab.Median(cs)), 0.31, lab.Median(cs)),
		Paper.Stated("prophet/fig7", "drf"+suffix).Near(lab.Percent(lab.Median(drf)), 0.40, lab.Median(drf)),
		Paper.Stated("prophet/fig7", "tetris"+suffix).Near(lab.Percent(lab.Median(tetris)), 0.18, lab.Median(tetris)),
		Paper.Stated("prophet/fig7", "few-lose"+suffix).Judge(lab.Percent(lose)+" of applications", lose > 0 && lose <= 0.1,
			lose <= 0.25),
		Paper.Stated("prophet/fig7", "tetris-shorter"+suffix).Judge("shorter, or at most 1 % longer, for "+lab.Percent(
			shorter)+
			" of applications", shorter >= 0.95, shorter >= 0.7),
	}
}

func figure8(l *lab.Lab) (*lab.Findings, error) {
	const every = "Prophet of all that wait" // and not of the half that has waited longest
	all := append(schedulers(), with(every, "window", "1"))
	t, err := contest(l, "schedulers", all, &usual)
	if err != nil {
		return nil, err
	}
	var series []chart.Series
	var names []string
	var each [][]float64
	for _, c := range rest {
		r := reductions(t[lab.Place("Prophet", all)], t[lab.Place(c.Label, all)], completion)
		names, each = append(names, "Prophet vs. "+c.Label), append(each, r)
		series = append(series, chart.CDF(names[len(names)-1], r))
	}
	of := func(name string) []float64 { return each[lab.Place(name, rest)] }
	names, each = append(names, every+" vs. Tetris"), append(each, reductions(t[lab.Place(every, all)],
		t[lab.Place("Tetris", all)], completion))
	for _, c := range products {
		for _, over := range []string{"CS", "Tetris"} {
			names, each = append(names, c.Label+" vs. "+over), append(each, reductions(t[lab.Place(c.Label, all)],
				t[lab.Place(over, all)], completion))
		}
	}
	return &lab.Findings{Tables: []lab.Table{quartiles("Reduction of completion times", names, l.Runs, each...)},
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution over applications of the reduction of completion times (simulated)",
			Picture: cdFs("Reduction of completion times", series...)}},
		Claims: fig8Claims(of("CS"), of("Fair"), of("Tetris"))}, nil
}

// fig8Claims judges reductions of completion times by Prophet.
func fig8Claims(overCS, overFair, overTetris []float64) []lab.Claim {
	cs, fair, tetris, tenth := lab.Median(overCS), lab.Median(overFair), lab.Median(overTetris), lab.Quantile(overTetris,
		0.1)
	return []lab.Claim{
		Paper.Stated("prophet/fig8", "median").Near(fmt.Sprintf("%s over CS, %s over Fair", lab.Percent(cs),
			lab.Percent(fair)), 0.23,
			min(cs, fair)),
		Paper.Stated("prophet/fig8", "tetris").Judge(lab.Percent(tetris), tetris >= 0.1, tetris > 0),
		Paper.Stated("prophet/fig8", "half").Near(lab.Percent(tetris), 0.36, tetris),
		Paper.Stated("prophet/fig8", "tenth").Near(lab.Percent(tenth), 0.12, tenth),
	}
}

func figure11(l *lab.Lab) (*lab.Findings, error) {
	all := []lab.Contender{own, plain, lab.Product("prophet")}
	t, err := contest(l, "back-off", all, &usual)
	if err != nil {
		return nil, err
	}
	ran, done := reductions(t[0], t[1], execution), reductions(t[0], t[1], completion)
	lasting, err := lasting(l)
	if err != nil {
		return nil, err
	}
	thresholds, err := thresholds(l, t[1], t[2])
	if err != nil {
		return nil, err
	}
	return &lab.Findings{Tables: []lab.Table{quartiles("Reduction by task back-off",
		[]string{"execution time", "completion time", "execution time, by default", "completion time, by default"}, l.Runs,
		ran, done, reductions(t[2], t[1], execution), reductions(t[2], t[1], completion)), lasting, thresholds},
		Pictures: []lab.Picture{{Name: "cdf",
			Caption: "Distribution over applications of the reduction of times by task back-off (simulated)",
			Picture: cdFs("Reduction by task back-off", chart.CDF("execution time", ran), chart.CDF("completion time", done))}},
		Claims: Fig11Claims(lab.Median(ran), lab.Median(done))}, nil
}

// Fig11Claims judges by how much back-off reduces the median execution and completion time.
func Fig11Claims(ran, done float64) []lab.Claim {
	return []lab.Claim{
		Paper.Stated("prophet/fig11", "execution").Judge(lab.Percent(ran), lab.Within(ran, 0.07, 0.2), ran > 0.005),
		Paper.Stated("prophet/fig11", "completion").Judge(lab.Percent(done), lab.Within(done, 0.05, 0.15), done > 0.005),
	}
}

// lasting compares how long tasks are throttled, which the paper says in rounds alone.
func lasting(l *lab.Lab) (lab.Table, error) {
	var all []lab.Contender
	for _, lasts := range []string{"0s", "1s", "2s", "5s", "10s", "30s", "2m"} {
		all = append(all, with(lasts, "backoff", lasts))
	}
	table := lab.NewTable("By how long tasks are throttled (median of the workloads, and range)", "throttled for",
		"makespan", "mean completion time", "mean execution time")
	t, err := contest(l, "lasting", all, &usual)
	if err != nil {
		return table, err
	}
	for i, c := range all {
		table.Add(timesOf(c.Label, t[i])...)
	}
	return table, nil
}

// pressedBelow are the shares of its speed below which a disk or a NIC is called pressed; the paper says
// "substantially lower than their peak one".
var pressedBelow = []float64{0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95}

// inTurns lets tasks take turns where less than a share is given, as people get it but for that share.
func inTurns(below float64) lab.Contender {
	c := lab.Product("prophet")
	c.PressedBelow = below
	return c
}

// thresholds compares from when on back-off relieves a server. plain is without back-off, where a server that
// is pressed changes nothing, wherever that begins; product is what people get.
func thresholds(l *lab.Lab, plain, product []prophetTrial) (lab.Table, error) {
	table := lab.NewTable("By the share of its speed below which a disk or a NIC is pressed (median of the workloads, "+
		"and range)", "pressed below", "at a demand of disk above", "makespan", "mean completion time", "mean execution time")
	for _, share := range pressedBelow {
		c := own
		c.PressedBelow = share
		t, err := contest(l, fmt.Sprintf("pressed below %g", share), []lab.Contender{c}, &usual)
		if err != nil {
			return table, err
		}
		row := timesOf(lab.Percent(share), t[0])
		table.Add(append([]string{row[0], lab.Decimals(1+(1/share-1)/usual.disk.Slope, 1) + "x"}, row[1:]...)...)
	}
	turns, err := contest(l, "in turns", []lab.Contender{inTurns(0.7), inTurns(lower)}, &usual)
	if err != nil {
		return table, err
	}
	for _, of := range []struct {
		name  string
		trial []prophetTrial
	}{{"no back-off", plain}, {fmt.Sprintf("%s, by default: %s, in turns", products[0].Policy,
		lab.Percent(cluster.PressedBelow)), product}, {"70 %, in turns", turns[0]},
		{lab.Percent(lower) + ", in turns", turns[1]}} {
		row := timesOf(of.name, of.trial)
		table.Add(append([]string{row[0], "–"}, row[1:]...)...)
	}
	return table, nil
}

// timesOf is a row of a table.
func timesOf(name string, t []prophetTrial) []string {
	return []string{name, lab.AcrossTraces(lab.Values(t, makespan), 0) + " s",
		lab.AcrossTraces(lab.Values(t, func(t prophetTrial) float64 { return lab.Mean(t.Completion) }), 0) + " s",
		lab.AcrossTraces(lab.Values(t, func(t prophetTrial) float64 { return lab.Mean(t.Execution) }), 0) + " s"}
}

// quartiles is a table of distributions, each over the applications of runs workloads, one workload after the other.
func quartiles(name string, rows []string, runs int, each ...[]float64) lab.Table {
	table := lab.NewTable(name+" (over applications of all workloads)", "", "10 %", "25 %", "median", "75 %", "90 %",
		"slower", "median of a workload, mean and 95 % interval")
	for i, all := range each {
		row := []string{rows[i]}
		for _, share := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
			row = append(row, lab.Percent(lab.Quantile(all, share)))
		}
		var medians []float64
		for workload := range slices.Chunk(all, len(all)/runs) {
			medians = append(medians, lab.Median(workload))
		}
		table.Add(append(row, lab.Percent(lab.ShareAtMost(all, 0)), lab.Interval(trial.Mean(lab.Scaled(medians, 100)),
			1)+" %")...)
	}
	return table
}

// etas are the weights of fragmentation in Eq. 8 that are compared; the paper uses 0.3 without a study.
var etas = []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.7", "1"}

func eta(l *lab.Lab) (*lab.Findings, error) {
	var all []lab.Contender
	for _, eta := range etas {
		all = append(all, with("η = "+eta, "eta", eta))
	}
	t, err := contest(l, "eta", all, &usual)
	if err != nil {
		return nil, err
	}
	usual := slices.Index(etas, "0.3")
	table := lab.NewTable("By the weight of fragmentation (median of the workloads, and range)", "η", "makespan",
		"mean completion time", "mean execution time", "makespan over that of 0.3, "+lab.InPairs)
	worse, better := 0, 0
	for i := range all {
		e := trial.GeometricMean(lab.Ratios(lab.Values(t[i], makespan), lab.Values(t[usual], makespan)))
		if e.Interval() && i != usual && e.Low > 1 {
			worse++
		}
		if e.Interval() && i != usual && e.High < 1 {
			better++
		}
		table.Add(append(timesOf(etas[i], t[i]), lab.Paired(lab.Values(t[i], makespan), lab.Values(t[usual], makespan)))...)
	}
	return &lab.Findings{Tables: []lab.Table{table}, Claims: EtaClaims(worse, better)}, nil
}

// EtaClaims judges with how many other weights than the paper's the makespan is longer and shorter, by the intervals of
// the pairs.
func EtaClaims(worse, better int) []lab.Claim {
	return []lab.Claim{Paper.Stated("prophet/eta", "balanced").Judge(
		fmt.Sprintf("of %d other weights %d are worse and %d better", len(etas)-1, worse, better),
		worse > 0 && better == 0, better == 0)}
}
