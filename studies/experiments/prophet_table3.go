package experiments

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

// prophetMakespans are the makespans of Table III, in seconds.
var prophetMakespans = map[string]float64{"CS": 16604, "DRF": 18369, "Tetris": 25537, "Prophet": 11290,
	"Prophet w/o back-off": 15707}

func prophetTable3(l *lab) (*Findings, error) {
	all := prophetSchedulers()
	t, err := prophetContest(l, "schedulers", all, &prophetUsual)
	if err != nil {
		return nil, err
	}
	table := newTable("Makespan (median of the workloads, and range)", "scheduler", "ours", "paper",
		"over Prophet's, ours", "over Prophet's, ours, "+inPairs, "over Prophet's, paper")
	data := newTable("makespans", "scheduler", "run", "makespan_s")
	own := place("Prophet", all)
	for i, c := range all {
		paper, over := "–", "–"
		if m, ok := prophetMakespans[c.Label]; ok {
			paper, over = decimals(m, 0)+" s", decimals(m/prophetMakespans["Prophet"], 2)
		}
		ours, prophets := values(t[i], makespan), values(t[own], makespan)
		table.add(c.Label, acrossTraces(ours, 0)+" s", paper, acrossTraces(ratios(ours, prophets), 2),
			paired(ours, prophets), over)
		for run, one := range t[i] {
			data.put(c.Label, run, one.Makespan)
		}
	}
	return &Findings{Tables: []Table{table}, Data: []Table{data}, Claims: table3Claims(all, t)}, nil
}

func table3Claims(all []contender, t [][]prophetTrial) []Claim {
	of := func(name string) []float64 { return values(t[place(name, all)], makespan) }
	saved := func(by, from string) float64 { return 1 - median(ratios(of(by), of(from))) }
	var claims []Claim
	for _, c := range []struct {
		id, by, from string
		paper        float64
	}{{"cs", "Prophet", "CS", 0.32}, {"drf", "Prophet", "DRF", 0.39}, {"tetris", "Prophet", "Tetris", 0.56},
		{"backoff", "Prophet", "Prophet w/o back-off", 0.28}} {
		claims = append(claims, stated("prophet/table3", c.id).near(percent(saved(c.by, c.from)), c.paper,
			saved(c.by, c.from)))
	}
	plain, capacity, fair := saved("Prophet w/o back-off", "CS"), saved("Prophet", "CS"), saved("Prophet", "Fair")
	cs, drf, tetris := median(of("CS")), median(of("DRF")), median(of("Tetris"))
	return append(claims,
		stated("prophet/table3", "fair").near(fmt.Sprintf("%s, and %s", percent(capacity), percent(fair)), 0.39,
			max(capacity, fair)),
		stated("prophet/table3", "placement").judge(percent(plain), within(plain, 0.02, 0.08), plain > 0),
		stated("prophet/table3", "order").judge(fmt.Sprintf("CS %.0f, DRF %.0f, Tetris %.0f s", cs, drf, tetris),
			cs < drf && drf < tetris, tetris > max(cs, drf)))
}

// prophetCDFs draws distributions of how much faster applications are.
func prophetCDFs(title string, series ...chart.Series) *chart.Plot {
	from, to := -1.0, 1.0
	return &chart.Plot{Title: title, Subtitle: "simulated; all workloads together", X: "reduction; below 0: slower",
		Y: "share of applications", Series: series, XMin: &from, XMax: &to, Lines: []chart.Rule{{At: 0, Vertical: true}}}
}

func prophetFigure7(l *lab) (*Findings, error) {
	all := prophetSchedulers()
	t, err := prophetContest(l, "schedulers", all, &prophetUsual)
	if err != nil {
		return nil, err
	}
	trialsOf := func(name string) []prophetTrial { return t[place(name, all)] }
	rows := []string{"Prophet vs. CS", "Prophet vs. DRF", "Tetris vs. Prophet"}
	f := &Findings{}
	for _, reading := range []struct {
		suffix, picture, name string
		times                 func(prophetTrial) []float64
	}{{"", "cdf", "execution times", execution},
		{"-whole", "whole", "times from the start of an application's first executor to the end of its last", whole}} {
		cs, drf := reductions(trialsOf("Prophet"), trialsOf("CS"), reading.times),
			reductions(trialsOf("Prophet"), trialsOf("DRF"), reading.times)
		tetris := reductions(trialsOf("Tetris"), trialsOf("Prophet"), reading.times)
		f.Tables = append(f.Tables, quartiles("Reduction of "+reading.name, rows, l.Runs, cs, drf, tetris))
		f.Pictures = append(f.Pictures, Picture{reading.picture, "Distribution over applications of the reduction of " +
			reading.name + " (simulated)", prophetCDFs("Reduction of "+reading.name, chart.CDF("Prophet vs. CS", cs),
			chart.CDF("Prophet vs. DRF", drf), chart.CDF("Tetris vs. Prophet", tetris))})
		f.Claims = append(f.Claims, fig7Claims(reading.suffix, cs, drf, tetris)...)
	}
	return f, nil
}

// fig7Claims judges reductions of execution times by Prophet over CS and over DRF, and by Tetris over Prophet. suffix
// says from when on they were measured: "-whole" is from the start of an application's first executor.
func fig7Claims(suffix string, cs, drf, tetris []float64) []Claim {
	lose := max(shareAtMost(cs, 0), shareAtMost(drf, 0))
	shorter := 1 - shareAtMost(tetris, -0.01)
	return []Claim{
		stated("prophet/fig7", "cs"+suffix).near(percent(median(cs)), 0.31, median(cs)),
		stated("prophet/fig7", "drf"+suffix).near(percent(median(drf)), 0.40, median(drf)),
		stated("prophet/fig7", "tetris"+suffix).near(percent(median(tetris)), 0.18, median(tetris)),
		stated("prophet/fig7", "few-lose"+suffix).judge(percent(lose)+" of applications", lose > 0 && lose <= 0.1,
			lose <= 0.25),
		stated("prophet/fig7", "tetris-shorter"+suffix).judge("shorter, or at most 1 % longer, for "+percent(shorter)+
			" of applications", shorter >= 0.95, shorter >= 0.7),
	}
}

func prophetFigure8(l *lab) (*Findings, error) {
	all := prophetSchedulers()
	t, err := prophetContest(l, "schedulers", all, &prophetUsual)
	if err != nil {
		return nil, err
	}
	var series []chart.Series
	var names []string
	var each [][]float64
	for _, c := range prophetRest {
		r := reductions(t[place("Prophet", all)], t[place(c.Label, all)], completion)
		names, each = append(names, "Prophet vs. "+c.Label), append(each, r)
		series = append(series, chart.CDF(names[len(names)-1], r))
	}
	of := func(name string) []float64 { return each[place(name, prophetRest)] }
	return &Findings{Tables: []Table{quartiles("Reduction of completion times", names, l.Runs, each...)},
		Pictures: []Picture{{"cdf", "Distribution over applications of the reduction of completion times (simulated)",
			prophetCDFs("Reduction of completion times", series...)}},
		Claims: fig8Claims(of("CS"), of("Fair"), of("Tetris"))}, nil
}

// fig8Claims judges reductions of completion times by Prophet.
func fig8Claims(overCS, overFair, overTetris []float64) []Claim {
	cs, fair, tetris, tenth := median(overCS), median(overFair), median(overTetris), quantile(overTetris, 0.1)
	return []Claim{
		stated("prophet/fig8", "median").near(fmt.Sprintf("%s over CS, %s over Fair", percent(cs), percent(fair)), 0.23,
			min(cs, fair)),
		stated("prophet/fig8", "tetris").judge(percent(tetris), tetris >= 0.1, tetris > 0),
		stated("prophet/fig8", "half").near(percent(tetris), 0.36, tetris),
		stated("prophet/fig8", "tenth").near(percent(tenth), 0.12, tenth),
	}
}

func prophetFigure11(l *lab) (*Findings, error) {
	all := []contender{prophetOwn, prophetPlain}
	t, err := prophetContest(l, "back-off", all, &prophetUsual)
	if err != nil {
		return nil, err
	}
	ran, done := reductions(t[0], t[1], execution), reductions(t[0], t[1], completion)
	lasting, err := prophetLasting(l)
	if err != nil {
		return nil, err
	}
	thresholds, err := prophetThresholds(l, t[1])
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: []Table{quartiles("Reduction by task back-off",
		[]string{"execution time", "completion time"}, l.Runs, ran, done), lasting, thresholds},
		Pictures: []Picture{{"cdf", "Distribution over applications of the reduction of times by task back-off (simulated)",
			prophetCDFs("Reduction by task back-off", chart.CDF("execution time", ran), chart.CDF("completion time", done))}},
		Claims: fig11Claims(median(ran), median(done))}, nil
}

// fig11Claims judges by how much back-off reduces the median execution and completion time.
func fig11Claims(ran, done float64) []Claim {
	return []Claim{
		stated("prophet/fig11", "execution").judge(percent(ran), within(ran, 0.07, 0.2), ran > 0.005),
		stated("prophet/fig11", "completion").judge(percent(done), within(done, 0.05, 0.15), done > 0.005),
	}
}

// prophetLasting compares how long tasks are throttled, which the paper says in rounds alone.
func prophetLasting(l *lab) (Table, error) {
	var all []contender
	for _, lasts := range []string{"0s", "1s", "2s", "5s", "10s", "30s", "2m"} {
		all = append(all, prophetWith(lasts, "backoff", lasts))
	}
	all = append(all, prophetWith("5s, in turns", "backoff", "5s", "relief", "turns"))
	table := newTable("By how long tasks are throttled (median of the workloads, and range)", "throttled for",
		"makespan", "mean completion time", "mean execution time")
	t, err := prophetContest(l, "lasting", all, &prophetUsual)
	if err != nil {
		return table, err
	}
	for i, c := range all {
		table.add(timesOf(c.Label, t[i])...)
	}
	return table, nil
}

// prophetPressedBelow are the shares of its speed below which a disk or a NIC is called pressed; the paper says
// "substantially lower than their peak one".
var prophetPressedBelow = []float64{0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95}

// prophetThresholds compares from when on back-off relieves a server. plain is without back-off, where a server that
// is pressed changes nothing, wherever that begins.
func prophetThresholds(l *lab, plain []prophetTrial) (Table, error) {
	table := newTable("By the share of its speed below which a disk or a NIC is pressed (median of the workloads, "+
		"and range)", "pressed below", "at a demand of disk above", "makespan", "mean completion time", "mean execution time")
	for _, share := range prophetPressedBelow {
		a := prophetUsual
		a.pressedBelow = share
		t, err := prophetContest(l, fmt.Sprintf("pressed below %g", share), []contender{prophetOwn}, &a)
		if err != nil {
			return table, err
		}
		row := timesOf(percent(share), t[0])
		table.add(append([]string{row[0], decimals(1+(1/share-1)/a.disk.Slope, 1) + "x"}, row[1:]...)...)
	}
	row := timesOf("no back-off", plain)
	table.add(append([]string{row[0], "–"}, row[1:]...)...)
	return table, nil
}

// timesOf is a row of a table.
func timesOf(name string, t []prophetTrial) []string {
	return []string{name, acrossTraces(values(t, makespan), 0) + " s",
		acrossTraces(values(t, func(t prophetTrial) float64 { return mean(t.Completion) }), 0) + " s",
		acrossTraces(values(t, func(t prophetTrial) float64 { return mean(t.Execution) }), 0) + " s"}
}

// quartiles is a table of distributions, each over the applications of runs workloads, one workload after the other.
func quartiles(name string, rows []string, runs int, each ...[]float64) Table {
	table := newTable(name+" (over applications of all workloads)", "", "10 %", "25 %", "median", "75 %", "90 %",
		"slower", "median of a workload, mean and 95 % interval")
	for i, all := range each {
		row := []string{rows[i]}
		for _, share := range []float64{0.1, 0.25, 0.5, 0.75, 0.9} {
			row = append(row, percent(quantile(all, share)))
		}
		var medians []float64
		for workload := range slices.Chunk(all, len(all)/runs) {
			medians = append(medians, median(workload))
		}
		table.add(append(row, percent(shareAtMost(all, 0)), interval(trial.Mean(scaled(medians, 100)), 1)+" %")...)
	}
	return table
}

// prophetEtas are the weights of fragmentation in Eq. 8 that are compared; the paper uses 0.3 without a study.
var prophetEtas = []string{"0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.7", "1"}

func prophetEta(l *lab) (*Findings, error) {
	var all []contender
	for _, eta := range prophetEtas {
		all = append(all, prophetWith("η = "+eta, "eta", eta))
	}
	t, err := prophetContest(l, "eta", all, &prophetUsual)
	if err != nil {
		return nil, err
	}
	usual := slices.Index(prophetEtas, "0.3")
	table := newTable("By the weight of fragmentation (median of the workloads, and range)", "η", "makespan",
		"mean completion time", "mean execution time", "makespan over that of 0.3, "+inPairs)
	spans := make([]float64, len(all))
	for i := range all {
		spans[i] = median(values(t[i], makespan))
		table.add(append(timesOf(prophetEtas[i], t[i]), paired(values(t[i], makespan), values(t[usual], makespan)))...)
	}
	return &Findings{Tables: []Table{table}, Claims: etaClaims(spans[usual]/slices.Min(spans) - 1)}, nil
}

// etaClaims judges by how much the makespan with the paper's η exceeds the best of all, as a share of the best.
func etaClaims(over float64) []Claim {
	return []Claim{stated("prophet/eta", "balanced").judge(decimals(100*over, 1)+" % above the best makespan",
		over <= 0.02, over <= 0.05)}
}
