package pufferfish

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/chart"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// parallelRivals are the bars of Fig. 7, and bellows.
func parallelRivals() []lab.Contender {
	var all []lab.Contender
	for _, heap := range heaps {
		all = append(all, yarnBox(heap))
	}
	return append(all, flexRivals...)
}

// largeHeap is YARN with the heap that suits every application.
var largeHeap = yarnBox(maxHeap)

// oneNode is the result of jobs on the node. Times are in seconds.
type oneNode struct {
	Makespan  float64 `json:"makespan_s"`
	Jobs      int     `json:"jobs"`
	Done      int     `json:"done"`
	Kills     int     `json:"kills"`     // by the memory manager
	OOM       int     `json:"oom"`       // runs of tasks that ended out of memory
	Suspended float64 `json:"suspended"` // container-seconds
	Swapped   float64 `json:"swapped"`   // bytes
	// Together is how many tasks ran at a time on average, suspended tasks included.
	Together float64 `json:"together"`
}

// onOneNode runs jobs on the node of config.
func onOneNode(o lab.Contender, config sim.Config, jobs []submission) (oneNode, error) {
	config.KeepTasks = true
	r, err := o.ToTheEnd(config, inBoxes(jobs, o.Box, sparkAttempts))
	if err != nil {
		return oneNode{}, err
	}
	n := oneNode{Makespan: r.Makespan.Seconds(), Jobs: len(r.Jobs), Kills: r.ManagerKills, OOM: r.OutOfMemory,
		Suspended: r.Suspended.Seconds(), Swapped: float64(r.SwappedBytes)}
	for _, j := range r.Jobs {
		if j.Done {
			n.Done++
		}
	}
	for _, t := range r.Tasks {
		if !t.Coordinator {
			n.Together += t.Finished.Sub(t.Launched).Seconds() / n.Makespan
		}
	}
	return n, nil
}

// everyTwoMinutes submits jobs 120 s apart, each with random values of its own.
func everyTwoMinutes(seed uint64, apps ...*pufferfishApp) []submission {
	r := rand.New(rand.NewPCG(seed, 7))
	var all []submission
	for i, a := range apps {
		all = append(all, submission{a.draw(r), timeline.Time(i) * timeline.Time(120*time.Second)})
	}
	return all
}

// copies returns n times the same application.
func copies(a *pufferfishApp, n int) []*pufferfishApp { return slices.Repeat([]*pufferfishApp{a}, n) }

// parallelCase is a bar group of Fig. 7: some jobs, run under all rivals.
type parallelCase struct {
	name  string
	apps  []*pufferfishApp
	other *otherOneNode        // if not nil, a changed assumption
	runs  map[string][]oneNode // per rival
}

// runParallel runs all cases under all rivals.
func runParallel(l *lab.Lab, cases []parallelCase, data *lab.Table) error {
	rivals := parallelRivals()
	for k := range cases {
		c := &cases[k]
		c.runs = map[string][]oneNode{}
		err := lab.Each(l, c.name, l.Runs*len(rivals), func(i int) (oneNode, error) {
			config, seed := pufferfishCluster(1), l.RunSeed(i/len(rivals))
			jobs := everyTwoMinutes(seed, c.apps...)
			if c.other != nil {
				c.other.apply(&config, jobs, seed)
			}
			return onOneNode(rivals[i%len(rivals)], config, jobs)
		}, func(i int, o oneNode) {
			w := rivals[i%len(rivals)]
			c.runs[w.Label] = append(c.runs[w.Label], o)
			data.Put(c.name, w.Label, i/len(rivals), o.Makespan, o.Done, o.Jobs, o.Kills,
				o.OOM, o.Suspended, o.Swapped, o.Together)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func parallelData() lab.Table {
	return lab.NewTable("runs", "jobs", "rival", "run", "makespan_s", "done", "submitted", "kills", "out_of_memory",
		"suspended_s", "swapped_bytes", "together")
}

// makespan returns the median over the runs; NaN if a job failed in one of them.
func (c *parallelCase) makespan(w lab.Contender) float64 {
	if slices.ContainsFunc(c.runs[w.Label], func(o oneNode) bool { return o.Done < o.Jobs }) {
		return math.NaN()
	}
	return c.over(w, ends)
}

// over returns the median of a number over the runs.
func (c *parallelCase) over(w lab.Contender, of func(oneNode) float64) float64 {
	return lab.Median(lab.Values(c.runs[w.Label], of))
}

// better returns by which share of another rival's makespan Pufferfish, or bellows, is faster.
func (c *parallelCase) better(than, w lab.Contender) float64 {
	return lab.Gain(c.makespan(than), c.makespan(w))
}

// parallelFindings shows the makespans of all cases divided by the makespan of a single run of Pufferfish, or in
// seconds if single is nil.
func parallelFindings(title string, cases []parallelCase, single *parallelCase, data lab.Table) *lab.Findings {
	unit, y, scale := "over that of one run of Pufferfish", "makespan, single run of Pufferfish = 1", 1.0
	if single == nil {
		unit, y = "in minutes", "makespan, minutes"
		scale = 60
	} else {
		scale = single.makespan(pufferfishPaper)
	}
	heads, behind := []string{"jobs"},
		lab.NewTable("What stands behind it: tasks at a time; kills by the manager; hours suspended; GB to swap (medians)",
			"jobs", "64 GB", "Pufferfish", "bellows")
	bars := &chart.Bars{Title: title, Subtitle: "simulated; medians of the runs, bars their ends; no bar: a job failed",
		Y: y}
	for _, w := range parallelRivals() {
		heads = append(heads, w.Label)
		bars.Series = append(bars.Series, chart.BarSeries{Name: w.Label})
	}
	table := lab.NewTable("Makespan "+unit+"; in brackets how many jobs failed (simulated)", heads...)
	for k := range cases {
		c := &cases[k]
		bars.Groups = append(bars.Groups, c.name)
		row := []string{c.name}
		for i, w := range parallelRivals() {
			b, low, high := &bars.Series[i], math.NaN(), math.NaN()
			middle := c.makespan(w) / scale
			if failed := c.over(w, failures); math.IsNaN(middle) {
				row = append(row, fmt.Sprintf("%s (%s)", lab.Decimals(c.over(w, ends)/scale, 2), lab.Decimals(failed, 0)))
			} else {
				row = append(row, lab.Decimals(middle, 2))
				all := lab.Values(c.runs[w.Label], ends)
				low, high = slices.Min(all)/scale, slices.Max(all)/scale
			}
			b.Values, b.Low, b.High = append(b.Values, middle), append(b.Low, low), append(b.High, high)
		}
		table.Add(row...)
		row = []string{c.name}
		for _, w := range []lab.Contender{largeHeap, pufferfishPaper, ours} {
			row = append(row, fmt.Sprintf("%s; %s; %s; %s", lab.Decimals(c.over(w, together), 1),
				lab.Decimals(c.over(w, func(o oneNode) float64 { return float64(o.Kills) }), 0),
				lab.Decimals(c.over(w, func(o oneNode) float64 { return o.Suspended / 3600 }), 2),
				lab.Decimals(c.over(w, func(o oneNode) float64 { return o.Swapped / float64(resource.GB) }), 0)))
		}
		behind.Add(row...)
	}
	return &lab.Findings{Tables: []lab.Table{table, behind}, Data: []lab.Table{data},
		Pictures: []lab.Picture{{Name: "makespan", Caption: title + " (simulated)", Picture: bars}}}
}

// concurrentCases returns cases of 1, 2, 4 and 8 jobs of an application.
func concurrentCases(l *lab.Lab, a *pufferfishApp) []parallelCase {
	var all []parallelCase
	for _, n := range []int{1, 2, 4, 8} {
		if l.Quick && n > 2 {
			break
		}
		all = append(all, parallelCase{name: strconv.Itoa(n), apps: copies(a, n)})
	}
	return all
}

// otherOneNode is the node, or its jobs, with one assumption changed.
type otherOneNode struct {
	name    string
	change  func(*sim.Config)
	jobs    func(jobs []submission, seed uint64)
	manager func(*sim.Flex)
}

func othersOneNode() []otherOneNode {
	return []otherOneNode{
		{name: "as above"},
		{name: "programs hold their peak from a tenth of their time on", jobs: soonFull},
		{name: "disks of 1 GB/s instead of 400 MB/s", change: fastDisks},
		{name: "swap device of 200 MB/s instead of 2 GB/s", change: func(c *sim.Config) {
			c.Machine.SwapSpeed = 200 * resource.MB
		}},
		{name: "paging as measured here for a program that merges", change: func(c *sim.Config) {
			c.Machine.Paging = slices.Clone(sim.MeasuredPaging)
		}},
		{name: "containers start at once, not with heartbeats",
			change: func(c *sim.Config) { c.Heartbeat, c.StartsPerHeartbeat, c.CoordinatorHeartbeat = 0, 0, 0 }},
		{name: "all jobs submitted at once", jobs: allAtOnce},
		{name: "jobs in another order, drawn per run", jobs: func(jobs []submission, seed uint64) {
			rand.New(rand.NewPCG(seed, 8)).Shuffle(len(jobs), func(i, k int) {
				jobs[i].job, jobs[k].job = jobs[k].job, jobs[i].job
			})
		}},
		{name: "Pufferfish kills after a suspension of half the expected duration (EJF+S)", manager: func(f *sim.Flex) {
			if f.Manager.Strategy != memory.InOrder {
				f.Manager = memory.Variants()["ejf+s"]
			}
		}},
		{name: "φ of 0.2", manager: func(f *sim.Flex) { f.Manager.PuffRatio = 0.2 }},
	}
}

func (o *otherOneNode) apply(config *sim.Config, jobs []submission, seed uint64) {
	if o.change != nil {
		o.change(config)
	}
	if o.jobs != nil {
		o.jobs(jobs, seed)
	}
}

func allAtOnce(jobs []submission, _ uint64) {
	for i := range jobs {
		jobs[i].at = 0
	}
}

// fastDisks gives the node disks that several Wordcounts do not exhaust.
func fastDisks(c *sim.Config) { c.Nodes[0].Capacity[resource.Disk] = resource.GB }

// soonFull makes the jobs' programs use their peak memory from a tenth of their time on.
func soonFull(jobs []submission, _ uint64) {
	for i := range jobs {
		a := *jobs[i].pufferfishApp
		a.usage = []usagePoint{{0, 0.03}, {0.1, 1}, {1, 1}}
		jobs[i].pufferfishApp = &a
	}
}

// oneNodeTrio is the makespans of the same jobs with a heap of 64 GB, under Pufferfish, and under bellows; seconds.
type oneNodeTrio [3]float64

// oneNodeSensitivity returns by how much Pufferfish and bellows are faster than a heap of 64 GB under other
// assumptions.
func oneNodeSensitivity(l *lab.Lab, apps []*pufferfishApp) (lab.Table, error) {
	t := lab.NewTable("Makespan less than with 64 GB under other assumptions (medians, simulated)", "assumption",
		"Pufferfish", "bellows")
	others := othersOneNode()
	gains := make([][2][]float64, len(others))
	err := lab.Each(l, "other assumptions", len(others)*l.Runs, func(i int) (trio oneNodeTrio, err error) {
		o, seed := others[i/l.Runs], l.RunSeed(i%l.Runs)
		for k, r := range []lab.Contender{largeHeap, pufferfishPaper, ours} {
			config, jobs := pufferfishCluster(1), everyTwoMinutes(seed, apps...)
			o.apply(&config, jobs, seed)
			if o.manager != nil {
				o.manager(&r.Flex)
			}
			n, err := onOneNode(r, config, jobs)
			if err == nil && n.Done < n.Jobs {
				err = fmt.Errorf("%s, %s: %d of %d jobs failed", o.name, r.Label, n.Jobs-n.Done, n.Jobs)
			}
			if err != nil {
				return trio, err
			}
			trio[k] = n.Makespan
		}
		return trio, nil
	}, func(i int, trio oneNodeTrio) {
		g := &gains[i/l.Runs]
		g[0], g[1] = append(g[0], lab.Gain(trio[0], trio[1])), append(g[1], lab.Gain(trio[0], trio[2]))
	})
	for i, o := range others {
		t.Add(o.name, lab.Percent(lab.Median(gains[i][0])), lab.Percent(lab.Median(gains[i][1])))
	}
	return t, err
}

func fig7aKmeans(l *lab.Lab) (*lab.Findings, error) {
	cases, data := concurrentCases(l, app("KM", false)), parallelData()
	if err := runParallel(l, cases, &data); err != nil {
		return nil, err
	}
	f := parallelFindings("Concurrent Kmeans", cases, &cases[0], data)
	last := &cases[len(cases)-1]
	four := &cases[min(2, len(cases)-1)]
	sensitivity, err := oneNodeSensitivity(l, four.apps)
	if err != nil {
		return nil, err
	}
	sensitivity.Name = strconv.Itoa(len(four.apps)) + " Kmeans: " + sensitivity.Name
	f.Tables = append(f.Tables, sensitivity)
	gains := func(c *parallelCase) string {
		return fmt.Sprintf("%s (bellows %s)", lab.Percent(c.better(largeHeap, pufferfishPaper)),
			lab.Percent(c.better(largeHeap, ours)))
	}
	sooner, tried := 0, 0
	for k := range cases[1:] {
		for _, heap := range []lab.Contender{yarnBox(8 * resource.GB), yarnBox(16 * resource.GB), yarnBox(32 * resource.GB)} {
			if m := cases[k+1].makespan(heap); !math.IsNaN(m) {
				tried++
				if cases[k+1].makespan(largeHeap) < m {
					sooner++
				}
			}
		}
	}
	f.Claims = []lab.Claim{
		Paper.Stated("pufferfish/fig7a", "two-runs").Near(gains(&cases[1]), 0.336, cases[1].better(largeHeap,
			pufferfishPaper)),
		Paper.Stated("pufferfish/fig7a", "four-runs").Near(gains(four), 0.356, four.better(largeHeap, pufferfishPaper)),
		Paper.Stated("pufferfish/fig7a", "parallelism").
			Judge(lab.Decimals(four.over(pufferfishPaper, together), 1)+" tasks at a time on average with 4 jobs",
				lab.Within(four.over(pufferfishPaper, together), 1.7, 2.3), four.over(pufferfishPaper, together) > 1),
		Paper.Stated("pufferfish/fig7a", "fails-with-4").
			Judge(fmt.Sprintf("%s of %d", lab.Decimals(last.over(yarnBox(4*resource.GB), failures), 0), len(last.apps)),
				last.over(yarnBox(4*resource.GB), failures) == float64(len(last.apps)), false),
		Paper.Stated("pufferfish/fig7a", "large-heap-wins").Judge(fmt.Sprintf("in %d of %d cases", sooner, tried),
			sooner == tried, 2*sooner > tried),
	}
	f.Notes = []string{versus(cases)}
	return f, nil
}

func ends(n oneNode) float64     { return n.Makespan }
func failures(n oneNode) float64 { return float64(n.Jobs - n.Done) }
func together(n oneNode) float64 { return n.Together }

// versus compares bellows with Pufferfish.
func versus(cases []parallelCase) string {
	text := "bellows against Pufferfish, makespan less by:"
	for i := range cases {
		c := &cases[i]
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s (%s)", lab.Percent(c.better(pufferfishPaper, ours)), c.name)
	}
	return text + "."
}

func fig7bWordcount(l *lab.Lab) (*lab.Findings, error) {
	cases, data := concurrentCases(l, app("WC", false)), parallelData()
	most := cases[len(cases)-1]
	most.name, most.other = most.name+" at once, fast disks", &otherOneNode{change: fastDisks, jobs: allAtOnce}
	cases = append(cases, most)
	if err := runParallel(l, cases, &data); err != nil {
		return nil, err
	}
	f := parallelFindings("Concurrent Wordcount", cases, &cases[0], data)
	fast := &cases[len(cases)-1]
	least, greatest, tried, won, text := math.Inf(1), 0.0, 0, 0, ""
	for i := range cases[1 : len(cases)-1] {
		c := &cases[i+1]
		times := c.makespan(largeHeap) / c.makespan(pufferfishPaper)
		least, greatest = min(least, times), max(greatest, times)
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%sx with %s", lab.Decimals(times, 2), c.name)
		for _, heap := range []lab.Contender{yarnBox(8 * resource.GB), yarnBox(16 * resource.GB)} {
			tried++
			if c.makespan(heap) < c.makespan(pufferfishPaper) {
				won++
			}
		}
	}
	f.Claims = []lab.Claim{
		Paper.Stated("pufferfish/fig7b", "outperforms-64").Judge(text, least >= 1.6 && greatest <= 2.75, least >= 1.5),
		Paper.Stated("pufferfish/fig7b", "small-heaps-win").
			Judge(fmt.Sprintf("in %d of %d cases; if the most come at once, with fast disks, by %s and %s", won,
				tried, lab.Percent(fast.better(pufferfishPaper, yarnBox(8*resource.GB))),
				lab.Percent(fast.better(pufferfishPaper, yarnBox(16*resource.GB)))),
				won == tried, won > 0 || fast.better(pufferfishPaper, yarnBox(8*resource.GB)) > 0 &&
					fast.better(pufferfishPaper, yarnBox(16*resource.GB)) > 0),
	}
	f.Notes = []string{versus(cases)}
	return f, nil
}

// mixedApps returns two of each application, in the order of section 5.2.
func mixedApps() []*pufferfishApp {
	var all []*pufferfishApp
	for _, name := range []string{"WC", "KM", "PR", "NW"} {
		all = append(all, copies(app(name, false), 2)...)
	}
	return all
}

// mixedPicture has one bar for each rival; a heap with which jobs fail is marked.
func mixedPicture(c *parallelCase) *chart.Bars {
	bars := &chart.Bars{Title: "Two Wordcount, Kmeans, Pagerank and NWeight jobs",
		Subtitle: "simulated; medians of the runs", Y: "makespan, minutes",
		Series: []chart.BarSeries{{Name: "all jobs succeed"}, {Name: "jobs fail for lack of memory"}}}
	for _, r := range parallelRivals() {
		bars.Groups = append(bars.Groups, r.Label)
		well, failed := c.makespan(r)/60, math.NaN()
		if math.IsNaN(well) {
			failed = c.over(r, ends) / 60
		}
		bars.Series[0].Values, bars.Series[1].Values = append(bars.Series[0].Values, well),
			append(bars.Series[1].Values, failed)
	}
	return bars
}

func fig7cMixed(l *lab.Lab) (*lab.Findings, error) {
	cases, data := []parallelCase{{name: "mixed", apps: mixedApps()}}, parallelData()
	if err := runParallel(l, cases, &data); err != nil {
		return nil, err
	}
	f := parallelFindings("Mixed jobs", cases, nil, data)
	f.Pictures = []lab.Picture{{Name: "makespan", Caption: "Makespan of the mixed jobs (simulated)",
		Picture: mixedPicture(&cases[0])}}
	sensitivity, err := oneNodeSensitivity(l, mixedApps())
	if err != nil {
		return nil, err
	}
	f.Tables = append(f.Tables, sensitivity)
	c := &cases[0]
	finish := ""
	finished := map[string]bool{}
	for _, r := range parallelRivals() {
		if finished[r.Label] = !math.IsNaN(c.makespan(r)); finished[r.Label] {
			finish += r.Label + ", "
		}
	}
	better := c.better(largeHeap, pufferfishPaper)
	all := func(r lab.Contender) float64 { return c.over(r, ends) }
	thirtyTwo, sixteen := all(yarnBox(32*resource.GB)), all(yarnBox(16*resource.GB))
	f.Claims = []lab.Claim{
		Paper.Stated("pufferfish/fig7c", "finish").Judge(finish[:len(finish)-2],
			finished["64 GB"] && finished["Pufferfish"] && !finished["32 GB"] && !finished["16 GB"] && !finished["8 GB"], false),
		Paper.Stated("pufferfish/fig7c", "outperforms-64").Near(fmt.Sprintf("%s (bellows %s)", lab.Percent(better),
			lab.Percent(c.better(largeHeap, ours))), 0.26, better),
		Paper.Stated("pufferfish/fig7c", "fails-with-4").
			Judge(fmt.Sprintf("%s of 8 fail", lab.Decimals(c.over(yarnBox(4*resource.GB), failures), 0)),
				c.over(yarnBox(4*resource.GB), failures) == 6, false),
		Paper.Stated("pufferfish/fig7c", "heap-32").
			Judge(fmt.Sprintf("%s against %s minutes", lab.Decimals(thirtyTwo/60, 0), lab.Decimals(sixteen/60, 0)),
				thirtyTwo > sixteen, false),
	}
	f.Notes = []string{versus(cases)}
	return f, nil
}
