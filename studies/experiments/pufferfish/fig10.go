package pufferfish

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Constants of the mixed workload of Fig. 10.
const (
	mixedFlex    = 38
	mixedQueries = 576
)

// query is a TPC-H job.
type query struct {
	takes time.Duration
	at    timeline.Time
}

// job returns the query as a job.
func (q query) job() workload.Job {
	phase := cluster.Phase{Duration: q.takes, Demand: resource.Of(4*resource.Core, 8*resource.GB)}
	return workload.Job{After: -1, Truth: []workload.StageTruth{{Phases: workload.ForAll([]cluster.Phase{phase})}},
		Job: cluster.Job{Name: "TPC-H", Submitted: q.at, MaxAttempts: sparkAttempts,
			Stages: []cluster.Stage{{Name: "query", Tasks: 4, Ideal: resource.Of(resource.Core, 8*resource.GB),
				Duration: q.takes}}}}
}

// mixedTrace returns a share of the data-intensive jobs and queries of Fig. 10, submitted denser times as densely.
func mixedTrace(seed uint64, share, denser float64) ([]submission, []query) {
	jobs := productionTrace(seed, share*mixedFlex/178)
	for i := range jobs {
		jobs[i].at = timeline.Time(float64(jobs[i].at) / denser)
	}
	r := rand.New(rand.NewPCG(seed, 0x10))
	queries := make([]query, int(share*mixedQueries))
	for i, at := range lab.Arrivals(len(queries), time.Duration(share*float64(mixedTime)/denser), r) {
		queries[i] = query{time.Duration(8 * math.Pow(60./8, r.Float64()) * float64(time.Second)), at}
	}
	return jobs, queries
}

// mixedTime is the period in which jobs are submitted.
const mixedTime = hours * mixedFlex / 178

// mixedTrial is the result of a mixed workload.
type mixedTrial struct {
	Queries   []float64 `json:"query_s"`    // from submission to end
	Data      []float64 `json:"normalised"` // of data-intensive jobs, run time / run time alone with 64 GB
	Kills     int       `json:"manager_kills"`
	Suspended float64   `json:"suspended_s"` // sum over containers
	Swapped   float64   `json:"swapped_gb"`
}

// mixed is a way to run the workload: with the data-intensive jobs, or without.
type mixed struct {
	lab.Contender
	alone bool
}

func (m mixed) trial(nodes int, jobs []submission, queries []query) (t mixedTrial, err error) {
	if m.alone {
		jobs = nil
	}
	w := inBoxes(jobs, m.Box, sparkAttempts)
	for _, q := range queries {
		j := q.job()
		j.ID = cluster.JobID(len(w.Jobs) + 1)
		w.Jobs = append(w.Jobs, j)
	}
	r, err := m.ToTheEnd(pufferfishCluster(nodes), w)
	if err != nil {
		return t, err
	}
	for _, j := range r.Failures() {
		return t, fmt.Errorf("%s: %s failed: %s", m.Label, j.Name, j.Failure)
	}
	for i := range r.Jobs {
		took := r.Jobs[i].Runtime().Seconds()
		if i < len(jobs) {
			t.Data = append(t.Data, took/jobs[i].alone().Seconds())
		} else {
			t.Queries = append(t.Queries, took)
		}
	}
	t.Kills, t.Suspended, t.Swapped = r.ManagerKills, r.Suspended.Seconds(), float64(r.SwappedBytes)/1e9
	return t, nil
}

func figure10(l *lab.Lab) (*lab.Findings, error) {
	box := yarnBox(maxHeap)
	box.Label = "YARN"
	alone := mixed{box, true}
	alone.Label = "YARN, TPC-H alone"
	all := []mixed{alone, {Contender: box}, {Contender: pufferfishPaper}, {Contender: ours}}
	var f *lab.Findings
	dense := lab.NewTable("The same, more densely submitted (median over the traces, and range)", "submitted within",
		"99th percentile of TPC-H over that alone on YARN: Pufferfish", "bellows",
		"80th percentile of data-intensive jobs, YARN over Pufferfish", "over bellows",
		"95th over 1st percentile, Pufferfish", "bellows")
	for _, denser := range []float64{1, 2, 3} {
		trials, err := mixedTrials(l, all, denser)
		if err != nil {
			return nil, err
		}
		if f == nil {
			f = fig10Findings(all, trials)
		}
		dense.Add(fmt.Sprintf("%.0f min", mixedTime.Minutes()/denser),
			lab.AcrossTraces(mixedRatio(trials, mixedPaper, mixedAlone, ofQueries, 0.99), 2),
			lab.AcrossTraces(mixedRatio(trials, mixedOurs, mixedAlone, ofQueries, 0.99), 2),
			lab.AcrossTraces(mixedRatio(trials, mixedYARN, mixedPaper, ofData, 0.8), 1),
			lab.AcrossTraces(mixedRatio(trials, mixedYARN, mixedOurs, ofData, 0.8), 1),
			lab.AcrossTraces(mixedSpread(trials[mixedPaper]), 1), lab.AcrossTraces(mixedSpread(trials[mixedOurs]), 1))
	}
	f.Tables = append(f.Tables, dense)
	return f, nil
}

// The ways of figure10.
const (
	mixedAlone = iota
	mixedYARN
	mixedPaper
	mixedOurs
)

// mixedTrials returns the result of each trace in each way.
func mixedTrials(l *lab.Lab, all []mixed, denser float64) ([][]mixedTrial, error) {
	nodes, share := nodes, 1.
	if l.Quick {
		nodes, share = 4, 0.1
	}
	return lab.EachRun(l, fmt.Sprintf("%g times as dense", denser), len(all), func(way, run int) (mixedTrial, error) {
		jobs, queries := mixedTrace(l.RunSeed(run), share, denser)
		return all[way].trial(nodes, jobs, queries)
	})
}

// percentiles returns a percentile of each trace in one way.
func percentiles(trials []mixedTrial, of func(mixedTrial) []float64, share float64) []float64 {
	return lab.Values(trials, func(t mixedTrial) float64 { return lab.Quantile(of(t), share) })
}

func ofQueries(t mixedTrial) []float64 { return t.Queries }
func ofData(t mixedTrial) []float64    { return t.Data }

func fig10Findings(all []mixed, trials [][]mixedTrial) *lab.Findings {
	queries := lab.NewTable("Latency of TPC-H queries, s (median over the traces, and range)", "", "median",
		"90th percentile", "99th percentile", "longest")
	data := lab.NewTable("Normalised run time of data-intensive jobs (median over the traces, and range)", "",
		"1st percentile", "median", "80th percentile", "95th percentile", "killed for memory's sake", "suspended, h",
		"swapped, GB")
	rows := lab.NewTable("runtimes", "way", "run", "kind", "value")
	latency := &chart.Plot{Title: "Latency of TPC-H queries", Subtitle: "simulated; all traces together", X: "s",
		Y: "share of queries", LogX: true}
	runtime := &chart.Plot{Title: "Run times of data-intensive jobs",
		Subtitle: "simulated; all traces together; over those alone with a heap of 64 GB", X: "normalised run time",
		Y: "share of jobs", LogX: true}
	for i, m := range all {
		q := func(share float64) string { return lab.AcrossTraces(percentiles(trials[i], ofQueries, share), 0) }
		queries.Add(m.Label, q(0.5), q(0.9), q(0.99), q(1))
		for run, t := range trials[i] {
			for _, v := range t.Queries {
				rows.Put(m.Label, run, "TPC-H, s", v)
			}
			for _, v := range t.Data {
				rows.Put(m.Label, run, "data-intensive, normalised", v)
			}
		}
		latency.Series = append(latency.Series, chart.CDF(m.Label, lab.Pooled(trials[i], ofQueries)))
		if m.alone {
			continue
		}
		d := func(share float64) string { return lab.AcrossTraces(percentiles(trials[i], ofData, share), 2) }
		number := func(of func(mixedTrial) float64) string { return lab.AcrossTraces(lab.Values(trials[i], of), 0) }
		data.Add(m.Label, d(0.01), d(0.5), d(0.8), d(0.95), number(func(t mixedTrial) float64 { return float64(t.Kills) }),
			number(func(t mixedTrial) float64 { return t.Suspended / 3600 }),
			number(func(t mixedTrial) float64 { return t.Swapped }))
		s := chart.CDF(m.Label, lab.Pooled(trials[i], ofData))
		s.Color = i + 1
		runtime.Series = append(runtime.Series, s)
	}
	return &lab.Findings{Tables: []lab.Table{queries, data}, Data: []lab.Table{rows}, Claims: fig10Claims(trials),
		Pictures: []lab.Picture{{Name: "queries",
			Caption: "Distribution of the latency of TPC-H queries (simulated; Fig. 10a)", Picture: latency},
			{Name: "data", Caption: "Distribution of normalised run times of data-intensive jobs (simulated; Fig. 10b)",
				Picture: runtime}}}
}

// mixedRatio returns, for each trace, a percentile in one way divided by the same percentile in another.
func mixedRatio(trials [][]mixedTrial, over, under int, of func(mixedTrial) []float64, share float64) []float64 {
	return lab.Ratios(percentiles(trials[over], of, share), percentiles(trials[under], of, share))
}

// mixedSpread returns, for each trace, how much longer the slowest data-intensive jobs take than the fastest: 95th /
// 1st percentile.
func mixedSpread(trials []mixedTrial) []float64 {
	return lab.Ratios(percentiles(trials, ofData, 0.95), percentiles(trials, ofData, 0.01))
}

func fig10Claims(trials [][]mixedTrial) []lab.Claim {
	const alone, yarn, paper, ours = mixedAlone, mixedYARN, mixedPaper, mixedOurs
	ratio := func(over, under int, of func(mixedTrial) []float64, share float64) []float64 {
		return mixedRatio(trials, over, under, of, share)
	}
	middle, tail := ratio(paper, alone, ofQueries, 0.5), ratio(paper, alone, ofQueries, 0.99)
	blocked := ratio(yarn, paper, ofQueries, 0.99)
	eighty := ratio(yarn, paper, ofData, 0.8)
	spread, spreadOurs := mixedSpread(trials[paper]), mixedSpread(trials[ours])
	return []lab.Claim{
		Paper.Stated("pufferfish/fig10", "similar").
			Judge("median "+lab.AcrossTraces(middle, 2)+"x, bellows "+lab.AcrossTraces(ratio(ours, alone, ofQueries, 0.5),
				2)+"x",
				lab.Median(middle) <= 1.1, lab.Median(middle) <= 1.25),
		Paper.Stated("pufferfish/fig10", "tail").
			Judge(lab.AcrossTraces(tail, 2)+"x, bellows "+lab.AcrossTraces(ratio(ours, alone, ofQueries, 0.99), 2)+"x",
				lab.Median(tail) <= 1.74, lab.Median(tail) <= 3),
		Paper.Stated("pufferfish/fig10", "fairness").
			Judge("99th percentile of TPC-H under YARN with both "+lab.AcrossTraces(blocked, 1)+"x that under Pufferfish",
				lab.Median(blocked) >= 2, lab.Median(blocked) > 1),
		Paper.Stated("pufferfish/fig10", "data-intensive").
			Judge(lab.AcrossTraces(eighty, 1)+"x, bellows "+lab.AcrossTraces(ratio(yarn, ours, ofData, 0.8), 1)+"x",
				lab.Median(eighty) >= 2, lab.Median(eighty) >= 1.3),
		Paper.Stated("pufferfish/fig10", "spread").
			Judge(lab.AcrossTraces(spread, 1)+"x, bellows "+lab.AcrossTraces(spreadOurs, 1)+"x",
				slices.Max(spread) <= 8, lab.Median(spread) <= 8),
	}
}
