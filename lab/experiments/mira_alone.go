package experiments

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/workload"
)

// miraRounds is how often all queries run, one after the other, on executors that stay warm.
const miraRounds = 5

// sequence runs queries one after the other without a background, and returns how long each took, with its driver.
func (s *miraSystem) sequence(queries []workload.Job, keep bool) (seconds []float64, rows []miraRow, err error) {
	w := &workload.Workload{}
	for i := range queries {
		j := miraJob(i+2, queries[i].Name, i-1, s.driver, queries[i].Stages, queries[i].Truth)
		w.Jobs = append(w.Jobs, j)
	}
	m := &miraMeter{fair: miraExecutors, last: cluster.JobID(len(queries) + 1), keep: keep}
	r, err := s.run(w, m)
	if err != nil {
		return nil, nil, err
	}
	for _, j := range r.Jobs {
		if !j.Done {
			return nil, nil, fmt.Errorf("%s: %s did not end: %s", s.name, j.Name, j.Stuck)
		}
		seconds = append(seconds, j.Runtime().Seconds())
	}
	return seconds, m.rows, nil
}

// cold runs each query on executors that have run nothing.
func (s *miraSystem) cold(queries []workload.Job) (seconds []float64, err error) {
	alone := s.newly()
	for i := range queries {
		one, _, err := alone.sequence(queries[i:i+1], false)
		if err != nil {
			return nil, err
		}
		seconds = append(seconds, one...)
	}
	return seconds, nil
}

// newly is s for the first application of new executors. On Mira the driver waits for one of them too, which is part of its time.
func (s *miraSystem) newly() miraSystem {
	first := *s
	if s.spark == nil {
		first.driver -= miraCold
	}
	return first
}

// warm runs all queries again and again, and returns the means: the first round is the only one in which executors are new.
func (s *miraSystem) warm(queries []workload.Job) ([]float64, error) {
	var again []workload.Job
	for range miraRounds {
		again = append(again, queries...)
	}
	all, _, err := s.sequence(again, false)
	if err != nil {
		return nil, err
	}
	seconds := make([]float64, len(queries))
	for i, v := range all {
		seconds[i%len(queries)] += v / miraRounds
	}
	return seconds, nil
}

// miraCase is a way to run the queries alone.
type miraCase struct {
	name string
	run  func([]workload.Job) ([]float64, error)
}

// miraAloneCases are the baselines in the order of miraRivals, and then Mira on new executors and on warm ones.
func miraAloneCases() (all []miraCase) {
	for _, s := range miraRivals(false) {
		all = append(all, miraCase{s.name, s.cold})
	}
	return append(all, miraCase{"Mira, cold", miraOwn.cold}, miraCase{"Mira, warm", miraOwn.warm})
}

func miraAlone(l *lab) (*Findings, error) {
	queries, err := miraQueries(l, miraSize)
	if err != nil {
		return nil, err
	}
	if l.quick {
		queries = queries[:3]
	}
	cases := miraAloneCases()
	times := make([][]float64, len(cases))
	err = each(l, "queries", len(cases), func(i int) ([]float64, error) { return cases[i].run(queries) }, func(i int, t []float64) { times[i] = t })
	if err != nil {
		return nil, err
	}
	sizes, err := miraSizes(l)
	if err != nil {
		return nil, err
	}
	table := newTable("Run time of each query alone (Fig. 9), s", "query")
	for _, c := range cases {
		table.Heads = append(table.Heads, c.name)
	}
	for q := range queries {
		row := []string{queries[q].Name}
		for i := range cases {
			row = append(row, decimals(times[i][q], 1))
		}
		table.add(row...)
	}
	plot := &chart.Plot{Title: "Speed-up by Mira of each query alone", Subtitle: "simulated", X: "run time on Spark+YARN / run time on Mira", Y: "share of queries"}
	for _, c := range miraSpeedups(times) {
		plot.Series = append(plot.Series, chart.CDF(c.name, c.of))
	}
	query, err := miraFigureTwelve(l)
	if err != nil {
		return nil, err
	}
	return &Findings{Tables: []Table{miraFigureEleven(times), table, sizes}, Claims: miraAloneClaims(times),
		Pictures: []Picture{{"speedup", "Speed-up of queries alone, the four cases (Fig. 11; simulated)", plot}, {"query7", "Query 7 over time (Fig. 12; simulated)", query}}}, nil
}

// miraSpeedup is one of the four cases of Fig. 11: a baseline, and what Mira gains over it for each query.
type miraSpeedup struct {
	name string
	of   []float64
}

// miraSpeedups are the cases of Fig. 11, from times by miraAloneCases.
func miraSpeedups(times [][]float64) []miraSpeedup {
	cold, warm := times[4], times[5]
	return []miraSpeedup{{"60 s idle, cold", ratios(times[1], cold)}, {"1 s idle, cold", ratios(times[0], cold)},
		{"60 s idle, warm", ratios(times[1], warm)}, {"1 s idle, warm", ratios(times[0], warm)}}
}

// miraFigureEleven has quantiles of all speed-ups, over the standalone manager too.
func miraFigureEleven(times [][]float64) Table {
	t := newTable("Speed-up of the queries by Mira (Fig. 11)", "over", "Mira on", "a quarter at least", "half", "three quarters", "all")
	for k, on := range []string{"new executors", "warm executors"} {
		for i, s := range miraRivals(false) {
			v := ratios(times[i], times[4+k])
			row := []string{s.name, on}
			for _, share := range []float64{0.75, 0.5, 0.25} { // a share of the queries is at least as fast as the quantile of the rest
				row = append(row, decimals(quantile(v, share), 2)+"×")
			}
			t.add(append(row, decimals(slices.Min(v), 2)+"×")...)
		}
	}
	return t
}

// miraSizes is the median speed-up by size of the data.
func miraSizes(l *lab) (Table, error) {
	t := newTable("Median speed-up over Spark+YARN with 1 s, by size of the data", "size", "median run time on Spark+YARN", "Mira, cold", "Mira, warm")
	sizes := []string{"2g", "10g", "50g"}
	if l.quick {
		sizes = sizes[:1]
	}
	cases := miraAloneCases()
	cases = []miraCase{cases[0], cases[4], cases[5]}
	times := make([][]float64, len(sizes)*len(cases))
	err := each(l, "sizes", len(times), func(i int) ([]float64, error) {
		queries, err := miraQueries(l, sizes[i/len(cases)])
		if err != nil {
			return nil, err
		}
		if l.quick {
			queries = queries[:2]
		}
		return cases[i%len(cases)].run(queries)
	}, func(i int, s []float64) { times[i] = s })
	if err != nil {
		return t, err
	}
	for i, size := range sizes {
		of := times[i*len(cases):]
		t.add(size, decimals(median(of[0]), 1)+" s", decimals(median(ratios(of[0], of[1])), 2)+"×", decimals(median(ratios(of[0], of[2])), 2)+"×")
	}
	return t, nil
}

// miraFigureTwelve is query 7 on YARN, on new executors of Mira, and on warm ones.
func miraFigureTwelve(l *lab) (*chart.Tracks, error) {
	queries, err := miraQueries(l, miraSize)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(queries, func(j workload.Job) bool { return j.Name == "q7-"+miraSize })
	t := &chart.Tracks{Title: "Query 7 of TPC-H: executors, and how many it could use", Subtitle: "simulated", X: "time since its submission, s", To: 30}
	return t, miraOnThree(t, queries[at])
}

// miraAloneClaims judges the claims about Fig. 9, 11 and 12. The verdict is against the best baseline with the idle time-out of the claim.
func miraAloneClaims(times [][]float64) (claims []Claim) {
	const experiment = "mira/fig9-12"
	for _, c := range []struct {
		id         string
		yarn, mira int // indexes of times
		paper      float64
	}{{"cold-60", 1, 4, 1.5}, {"cold-1", 0, 4, 2.1}, {"warm-60", 1, 5, 2.1}, {"warm-1", 0, 5, 3}} {
		yarn, alone := median(ratios(times[c.yarn], times[c.mira])), median(ratios(times[c.yarn+2], times[c.mira]))
		best := min(yarn, alone)
		claims = append(claims, stated(experiment, c.id).judge(fmt.Sprintf("%s× over Spark+YARN, %s× over Spark standalone", decimals(yarn, 2), decimals(alone, 2)), best >= c.paper, best > 1))
	}
	most := quantile(ratios(times[1], times[5]), 0.25)
	return append(claims, stated(experiment, "most").judge(fmt.Sprintf("three quarters of the queries are at least %s× as fast, over Spark+YARN with 60 s", decimals(most, 2)), most >= 2, most > 1.2))
}
