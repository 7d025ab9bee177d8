package pufferfish

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

func fig6aPuff(*lab.Lab) (*lab.Findings, error) {
	var jobs []submission
	for i, a := range []*pufferfishApp{app("PR", false), app("KM", false), app("KM", false)} {
		jobs = append(jobs, submission{a.typical(), timeline.Time(i) * timeline.Time(2*time.Minute)})
	}
	f := &lab.Findings{}
	table := lab.NewTable("What became of the containers (simulated)", "manager and placement", "container",
		"ends at, s", "suspended for, s", "killed at, s", "starts again after, s")
	var paper, authors *memoryWatch
	// The authors' code starts a FLEX container where twice its size is free in 80 % of the node.
	placed := inFlex("Pufferfish, the authors' placement", pufferfishPaper.Flex,
		map[string]string{"pufferfish.room": "2", "pufferfish.stop": "0.8"})
	for _, o := range []lab.Contender{pufferfishPaper, placed, ours} {
		r, w, err := watched(o, inBoxes(jobs, 0, sparkAttempts))
		if err != nil {
			return nil, err
		}
		for i := range r.Jobs {
			j := &r.Jobs[i]
			var kills, back []string
			for _, k := range w.kills(j.ID) {
				kills, back = append(kills, lab.Decimals(k, 0)), append(back, lab.Decimals(w.back(j.ID, k), 0))
			}
			table.Put(o.Label, i+1, lab.Decimals(time.Duration(j.Ended).Seconds(), 0),
				lab.Decimals(j.Suspended.Seconds(), 0), strings.Join(kills, ", "), strings.Join(back, ", "))
		}
		switch o.Label {
		case placed.Label:
			authors = w
			continue
		case pufferfishPaper.Label:
			paper = w
		}
		plot := &chart.Plot{Title: "One Pagerank and two Kmeans, " + o.Label,
			Subtitle: "simulated; solid: memory that they hold, dashed: that they may hold", X: "time, s", Y: "GB",
			YMin: new(float64), XMin: new(float64)}
		data := lab.NewTable("memory-"+lab.FileName(o.Label), "container", "time_s", "limit_bytes", "resident_bytes",
			"swapped_bytes", "suspended")
		for _, j := range r.Jobs {
			plot.Series = append(plot.Series, w.lines(fmt.Sprintf("container %d", j.ID), int(j.ID), ofJob(j.ID))...)
		}
		for _, m := range w.states {
			if m.Class == cluster.Flex {
				data.Put(int(m.Container.Task.Job), time.Duration(m.At).Seconds(), float64(m.Limit), float64(m.Resident),
					float64(m.Swapped), m.Suspended)
			}
		}
		f.Data = append(f.Data, data)
		f.Pictures = append(f.Pictures, lab.Picture{Name: lab.FileName(o.Label), Caption: "Memory of the three containers, " +
			o.Label +
			" (simulated)", Picture: plot})
	}
	f.Tables = []lab.Table{table}
	f.Claims = puffClaims(paper, authors)
	return f, nil
}

func puffClaims(paper, authors *memoryWatch) []lab.Claim {
	third, second := paper.kills(3), paper.kills(2)
	longest := func(w *memoryWatch) float64 {
		most := 0.0
		for _, k := range w.kills(3) {
			most = max(most, w.back(3, k))
		}
		return most
	}
	shrunk, given := paper.slackOf(1)
	first := math.NaN()
	if len(third) > 0 {
		first = third[0]
	}
	return []lab.Claim{
		Paper.Stated("pufferfish/fig6a", "killed").
			Judge(fmt.Sprintf("%d times, first at %s s; container 2 %d times", len(third), lab.Decimals(first, 0), len(second)),
				len(third) == 1 && lab.Within(first, 500, 700) && len(second) == 0, len(third) > 0),
		Paper.Stated("pufferfish/fig6a", "blocked").
			Judge(fmt.Sprintf("at most %s s; with the authors' placement %s s", lab.Decimals(longest(paper), 0),
				lab.Decimals(longest(authors), 0)), longest(paper) >= 60, longest(authors) >= 60),
		Paper.Stated("pufferfish/fig6a", "slack").
			Judge(fmt.Sprintf("shrunk first at %s s; another container grows %s s later", lab.Decimals(shrunk, 0),
				lab.Decimals(given, 0)), given <= 10, !math.IsNaN(shrunk)),
	}
}

// The memory of TPC-H queries on average if none waits. With queryLoad Kmeans yields at least as much as in Fig. 6b;
// heavyLoad is more than Kmeans leaves to the queries on YARN.
const (
	queryLoad = 24 * resource.GB
	heavyLoad = 64 * resource.GB
)

// shortQueries returns a stream of TPC-H queries, as in Fig. 10, over 15 minutes, that uses load on average.
func shortQueries(seed uint64, load resource.Amount) []workload.Job {
	const shortest, longest, over = 8.0, 60.0, 15 * time.Minute // seconds
	r := rand.New(rand.NewPCG(seed, 6))
	one := query{}.job().Stages[0]
	// byte-seconds
	each := float64(one.Tasks) * float64(one.Ideal[resource.Memory]) * (longest - shortest) / math.Log(longest/shortest)
	var all []workload.Job
	for i, at := range lab.Arrivals(int(math.Round(float64(load)*over.Seconds()/each)), over, r) {
		q := query{time.Duration(shortest * math.Pow(longest/shortest, r.Float64()) * float64(time.Second)), at}.job()
		q.ID = cluster.JobID(i + 2)
		all = append(all, q)
	}
	return all
}

// besideQueries is the result of Kmeans and the queries.
type besideQueries struct {
	Kmeans  float64   `json:"kmeans_s"` // run time of Kmeans
	Queries []float64 `json:"queries_s"`
	Swapped float64   `json:"swapped_bytes"`
}

// kmeansAndQueries simulates the queries, with Kmeans if kmeans is set.
func kmeansAndQueries(o lab.Contender, kmeans bool, queries []workload.Job) (besideQueries, *memoryWatch, error) {
	w := &workload.Workload{}
	if kmeans {
		w = inBoxes([]submission{{app("KM", false).typical(), 0}}, o.Box, sparkAttempts)
	}
	w.Jobs = append(w.Jobs, queries...)
	r, watch, err := watched(o, w)
	if err != nil {
		return besideQueries{}, nil, err
	}
	if failed := r.Failures(); len(failed) > 0 {
		return besideQueries{}, nil, fmt.Errorf("%s: %s failed: %s", o.Label, failed[0].Name, failed[0].Failure)
	}
	out := besideQueries{Swapped: float64(r.SwappedBytes)}
	for i := range r.Jobs {
		if j := &r.Jobs[i]; j.ID == 1 {
			out.Kmeans = j.Runtime().Seconds()
		} else {
			out.Queries = append(out.Queries, j.Runtime().Seconds())
		}
	}
	return out, watch, nil
}

// mixWay is a line of Fig. 6c.
type mixWay struct {
	name   string
	rival  lab.Contender
	kmeans bool
}

var mixWays = []mixWay{{"mix-YARN", largeHeap, true}, {"mix-PF", pufferfishPaper, true},
	{"mix-bellows", ours, true}, {"TPC-H alone", largeHeap, false}}

// runMixes simulates all ways at a load, and returns the results of the runs per way.
func runMixes(l *lab.Lab, load resource.Amount) (map[string][]besideQueries, error) {
	all := map[string][]besideQueries{}
	err := lab.Each(l, "load of "+gigabytes(load), l.Runs*len(mixWays), func(i int) (besideQueries, error) {
		w := mixWays[i%len(mixWays)]
		out, _, err := kmeansAndQueries(w.rival, w.kmeans, shortQueries(l.RunSeed(i/len(mixWays)), load))
		return out, err
	}, func(i int, m besideQueries) {
		w := mixWays[i%len(mixWays)]
		all[w.name] = append(all[w.name], m)
	})
	return all, err
}

// kmeansOver returns the median of Kmeans' run time divided by its run time alone with a heap of 64 GB.
func kmeansOver(runs []besideQueries, alone float64) float64 {
	return lab.Median(lab.Values(runs, func(m besideQueries) float64 { return m.Kmeans / alone }))
}

func allQueries(m besideQueries) []float64 { return m.Queries }

// latency returns a quantile of all queries of all runs.
func latency(runs []besideQueries, share float64) float64 {
	return lab.Quantile(lab.Pooled(runs, allQueries), share)
}

// queryLoads returns the loads of the tables; the paper's load is unknown.
func queryLoads(l *lab.Lab) []resource.Amount {
	if l.Quick {
		return []resource.Amount{queryLoad, heavyLoad}
	}
	return []resource.Amount{16 * resource.GB, queryLoad, 32 * resource.GB, 48 * resource.GB, heavyLoad}
}

// kmeansAlone returns the run time of Kmeans alone on YARN, seconds.
func kmeansAlone() (float64, error) {
	m, _, err := kmeansAndQueries(largeHeap, true, nil)
	return m.Kmeans, err
}

func fig6bReclaim(l *lab.Lab) (*lab.Findings, error) {
	f := &lab.Findings{}
	alone, err := kmeansAlone()
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Run time of Kmeans over that alone with 64 GB, by what the queries would hold on average "+
		"(simulated, medians)", "load", "mix-YARN", "mix-PF", "mix-bellows", "to swap, GB: mix-PF", "mix-bellows")
	var base map[string][]besideQueries
	for _, load := range queryLoads(l) {
		all, err := runMixes(l, load)
		if err != nil {
			return nil, err
		}
		if load == queryLoad {
			base = all
		}
		row := []string{gigabytes(load)}
		for _, w := range mixWays[:3] {
			row = append(row, lab.Decimals(kmeansOver(all[w.name], alone), 2)+"x")
		}
		for _, w := range mixWays[1:3] {
			row = append(row, lab.Decimals(lab.Median(lab.Values(all[w.name], func(m besideQueries) float64 {
				return m.Swapped / float64(resource.GB)
			})), 0))
		}
		table.Add(row...)
	}
	f.Tables = []lab.Table{table}
	var lowest, squeezed [2]float64
	for i, m := range flexRivals {
		var lows, times []float64
		for run := range l.Runs {
			_, w, err := kmeansAndQueries(m, true, shortQueries(l.RunSeed(run), queryLoad))
			if err != nil {
				return nil, err
			}
			low, n := w.squeezed(1)
			lows, times = append(lows, low), append(times, n)
			if run == 0 {
				showMix(f, m.Label, w)
			}
		}
		lowest[i], squeezed[i] = lab.Median(lows), lab.Median(times)
	}
	slower := [2]float64{kmeansOver(base["mix-PF"], alone), kmeansOver(base["mix-bellows"], alone)}
	f.Claims = []lab.Claim{
		Paper.Stated("pufferfish/fig6b", "reclaimed").
			Judge(fmt.Sprintf("%s times for queries, down to %s GB (bellows: %s times, to %s GB); medians",
				lab.Decimals(squeezed[0], 0), lab.Decimals(lowest[0], 0), lab.Decimals(squeezed[1], 0), lab.Decimals(lowest[1], 0)),
				squeezed[0] >= 2 && lowest[0] <= 48, squeezed[0] > 0),
		Paper.Stated("pufferfish/fig6b", "slowdown").
			Judge(fmt.Sprintf("%sx (bellows %sx)", lab.Decimals(slower[0], 2), lab.Decimals(slower[1], 2)),
				lab.Within(slower[0], 1.1, 1.3), lab.Within(slower[0], 1.05, 1.6)),
	}
	return f, nil
}

// showMix adds the picture and the data of a run of Kmeans and queries.
func showMix(f *lab.Findings, name string, w *memoryWatch) {
	regular := func(m sim.ContainerMemory) bool { return m.Class == cluster.Regular }
	plot := &chart.Plot{Title: "Kmeans beside short jobs, " + name,
		Subtitle: "simulated; solid: memory that they hold, dashed: that they may hold", X: "time, s", Y: "GB",
		YMin: new(float64), XMin: new(float64)}
	short := chart.Series{Name: "REGULAR containers", Color: 3, Step: true}
	short.X, short.Y = w.over(regular, limitOf)
	plot.Series = append(w.lines("Kmeans (FLEX)", 1, ofJob(1)), short)
	f.Pictures = append(f.Pictures, lab.Picture{Name: lab.FileName(name), Caption: "Memory of Kmeans and of short jobs, " +
		name +
		" (simulated)", Picture: plot})
	data := lab.NewTable("memory-"+lab.FileName(name), "what", "time_s", "bytes")
	for _, s := range []struct {
		name  string
		which func(sim.ContainerMemory) bool
		of    func(sim.ContainerMemory) resource.Amount
	}{{"flex limit", ofJob(1), limitOf}, {"flex resident", ofJob(1), residentOf}, {"regular", regular, limitOf}} {
		x, y := w.over(s.which, s.of)
		for k := range x {
			data.Put(s.name, x[k], y[k]*float64(resource.GB))
		}
	}
	f.Data = append(f.Data, data)
}

func fig6cLatency(l *lab.Lab) (*lab.Findings, error) {
	f := &lab.Findings{}
	table := lab.NewTable("Latency of queries, s (simulated): 50th, 95th and 99th percentile of all runs, by what they "+
		"would hold on average", "load", "mix-YARN", "mix-PF", "mix-bellows", "TPC-H alone", "99th: PF better by",
		"bellows better by")
	data := lab.NewTable("latencies", "load_bytes", "way", "run", "latency_s")
	all := map[resource.Amount]map[string][]besideQueries{}
	for _, load := range queryLoads(l) {
		runs, err := runMixes(l, load)
		if err != nil {
			return nil, err
		}
		all[load] = runs
		row := []string{gigabytes(load)}
		for _, w := range mixWays {
			row = append(row, fmt.Sprintf("%s / %s / %s", lab.Decimals(latency(runs[w.name], 0.5), 0),
				lab.Decimals(latency(runs[w.name], 0.95), 0), lab.Decimals(latency(runs[w.name], 0.99), 0)))
			for run, m := range runs[w.name] {
				for _, q := range m.Queries {
					data.Put(int64(load), w.name, run, q)
				}
			}
		}
		for _, w := range mixWays[1:3] {
			row = append(row, lab.Percent(lab.Gain(latency(runs["mix-YARN"], 0.99), latency(runs[w.name], 0.99))))
		}
		table.Add(row...)
	}
	yarn, better := func(load resource.Amount, share float64) float64 { return latency(all[load]["mix-YARN"], share) }, 0.0
	most, at := 0.0, resource.Amount(0)
	for _, load := range queryLoads(l) {
		g := lab.Gain(yarn(load, 0.99), latency(all[load]["mix-PF"], 0.99))
		if load == queryLoad {
			better = g
		}
		if g > most {
			most, at = g, load
		}
	}
	f.Tables, f.Data = []lab.Table{table}, []lab.Table{data}
	f.Pictures = []lab.Picture{latencyPicture("light", queryLoad, all[queryLoad]),
		latencyPicture("heavy", heavyLoad, all[heavyLoad])}
	alone := func(load resource.Amount) float64 { return latency(all[load]["TPC-H alone"], 0.99) }
	f.Claims = []lab.Claim{
		Paper.Stated("pufferfish/fig6c", "improvement").
			Because(gigabytes(heavyLoad), lab.Percent(lab.Gain(yarn(heavyLoad, 0.99), alone(heavyLoad)))).
			Judge(fmt.Sprintf("%s with a load of %s, %s with %s", lab.Percent(better), gigabytes(queryLoad), lab.Percent(most),
				gigabytes(at)), lab.Within(better, 0.7, 0.9), most >= 0.4),
		Paper.Stated("pufferfish/fig6c", "queuing").
			Judge(fmt.Sprintf("99th percentile: %s s, and %s s without Kmeans; with %s: %s and %s s",
				lab.Decimals(yarn(queryLoad, 0.99), 0), lab.Decimals(alone(queryLoad), 0),
				gigabytes(heavyLoad), lab.Decimals(yarn(heavyLoad, 0.99), 0), lab.Decimals(alone(heavyLoad), 0)),
				yarn(queryLoad, 0.99) >= 2*alone(queryLoad), yarn(heavyLoad, 0.99) >= 2*alone(heavyLoad)),
	}
	return f, nil
}

// latencyPicture is Fig. 6c at one load.
func latencyPicture(name string, load resource.Amount, runs map[string][]besideQueries) lab.Picture {
	plot := &chart.Plot{Title: "Latency of queries beside Kmeans, load of " + gigabytes(load),
		Subtitle: "simulated; all runs", X: "seconds from submission to end", Y: "share of the queries, %", LogX: true}
	for _, w := range mixWays {
		s := chart.CDF(w.name, lab.Pooled(runs[w.name], allQueries))
		for i := range s.Y {
			s.Y[i] *= 100
		}
		plot.Series = append(plot.Series, s)
	}
	return lab.Picture{Name: name, Caption: "Distribution of the latency of queries, load of " + gigabytes(load) +
		" (simulated)", Picture: plot}
}
