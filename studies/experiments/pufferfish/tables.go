package pufferfish

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// hours is the period in which the jobs of the trace are submitted (section 5.1).
const hours = 5 * time.Hour

// productionTrace returns the 178 jobs of Table 2, submitted over 5 hours; with share below 1, that share of the jobs
// over that share of the time.
func productionTrace(seed uint64, share float64) []submission {
	r := rand.New(rand.NewPCG(seed, 0x178))
	var jobs []submission
	for i := range apps {
		for range apps[i].jobs {
			jobs = append(jobs, submission{job: apps[i].draw(r)})
		}
	}
	r.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
	jobs = jobs[:int(math.Ceil(share*float64(len(jobs))))]
	for i, at := range lab.Arrivals(len(jobs), time.Duration(share*float64(hours)), r) {
		jobs[i].at = at
	}
	return jobs
}

// share returns the share of the trace that is run.
func share(l *lab.Lab) float64 {
	if l.Quick {
		return 0.1
	}
	return 1
}

func mix(l *lab.Lab) (*lab.Findings, error) {
	table := lab.NewTable("Applications", "application", "framework", "jobs", "executors each",
		"duration alone with 64 GB, s", "peak of the hot executor, GB", "smallest heap it survives with, GB")
	data := lab.NewTable("jobs", "run", "application", "submitted_s", "executors", "least_heap_gb", "alone_s")
	for i := range apps {
		a := &apps[i]
		table.Put(a.String(), a.framework, a.jobs, a.executors, lab.Decimals(a.typical().alone().Seconds(), 0),
			int64(a.peak/resource.GB), fmt.Sprintf("%.1f to %.1f", a.leastHeap[0], a.leastHeap[1]))
	}
	var work, used, longestGap []float64
	count, containers := 0, 0
	for run := range l.Runs {
		jobs := productionTrace(l.RunSeed(run), 1)
		count, containers = len(jobs), 0
		demand, held, gap := 0.0, 0.0, 0.0
		for i, j := range jobs {
			containers += 1 + len(j.cold)
			alone := j.alone().Seconds()
			shares := 1 + float64(len(j.cold))
			if len(j.cold) > 0 {
				shares = 1 + lab.Mean(j.cold)*float64(len(j.cold))
			}
			demand += alone * float64(1+len(j.cold))
			held += alone * shares * j.meanMemory()
			if i > 0 {
				gap = max(gap, jobs[i].at.Sub(jobs[i-1].at).Seconds())
			}
			data.Put(run, j.String(), time.Duration(j.at).Seconds(), 1+len(j.cold),
				float64(j.leastHeapOf())/1e9, alone)
		}
		work = append(work, demand/(nodes*hours.Seconds()))
		used = append(used, held/(demand*float64(maxHeap)))
		longestGap = append(longestGap, gap)
	}
	summary := lab.NewTable("The trace", "what", "value (range over the traces)")
	summary.Put("jobs", count)
	summary.Put("executors and reducers", containers)
	summary.Add("work over what 26 nodes do in 5 hours with one container of 64 GB each", lab.AcrossTraces(work, 2))
	summary.Add("memory in use over that of 64 GB containers", lab.AcrossTraces(used, 2))
	summary.Add("longest time between two submissions, s", lab.AcrossTraces(longestGap, 0))
	return &lab.Findings{Tables: []lab.Table{table, summary}, Data: []lab.Table{data},
		Claims: []lab.Claim{Paper.Stated("pufferfish/table1-2", "count").MadeSo(strconv.Itoa(count), count == 178)}}, nil
}

// meanMemory is the hot executor's memory, averaged over its time, with a heap of 64 GB, bytes.
func (a *pufferfishApp) meanMemory() float64 {
	sum := 0.0
	for i := range usageSteps {
		sum += float64(a.memoryAt((float64(i) + 0.5) / usageSteps))
	}
	return sum / usageSteps
}

// tableThree is the paper's share of jobs that fail, by heap; with 4 GB it is more than that.
var tableThree = map[resource.Amount]float64{64 * resource.GB: 0, 32 * resource.GB: 0.051, 16 * resource.GB: 0.173,
	8 * resource.GB: 0.341, 4 * resource.GB: 0.6}

// oomTrial is the failures of a trace with a heap.
type oomTrial struct {
	Failed map[string]int `json:"failed"` // jobs, by application
	Jobs   int            `json:"jobs"`
	Lost   float64        `json:"lost"` // run time of failed runs, as a share of all run time
}

func outOfMemory(l *lab.Lab) (*lab.Findings, error) {
	sizes := slices.Clone(heaps)
	slices.Reverse(sizes)
	failed, lost := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	byApp := make([]map[string]int, len(sizes))
	data := lab.NewTable("failures", "heap_gb", "run", "jobs", "failed", "lost_share")
	err := lab.Each(l, "heaps", len(sizes)*l.Runs, func(i int) (oomTrial, error) {
		return oomOf(yarnBox(sizes[i/l.Runs]), productionTrace(l.RunSeed(i%l.Runs), share(l)))
	}, func(i int, t oomTrial) {
		k, n := i/l.Runs, 0
		if byApp[k] == nil {
			byApp[k] = map[string]int{}
		}
		for name, count := range t.Failed {
			n += count
			byApp[k][name] += count
		}
		failed[k], lost[k] = append(failed[k], float64(n)/float64(t.Jobs)), append(lost[k], t.Lost)
		data.Put(float64(sizes[k]/resource.GB), i%l.Runs, t.Jobs, n, t.Lost)
	})
	if err != nil {
		return nil, err
	}
	table := lab.NewTable("Jobs that run out of memory, by heap (range over the traces)", "heap", "the paper",
		"ours, %", "time of containers lost with runs that failed, %", "who (mean number of jobs)")
	for k, h := range sizes {
		paper := map[bool]string{true: "> "}[h == 4*resource.GB] + percent1(tableThree[h])
		table.Add(gigabytes(h), paper, lab.AcrossTraces(lab.Scaled(failed[k], 100), 1), lab.AcrossTraces(lab.Scaled(lost[k],
			100), 0),
			meanCounts(byApp[k], l.Runs))
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: []lab.Claim{oomClaim(sizes,
		failed)}}, nil
}

// oomOf simulates jobs in containers of a fixed size and counts failures.
func oomOf(o lab.Contender, jobs []submission) (oomTrial, error) {
	c := pufferfishCluster(nodes)
	c.KeepTasks = true
	r, err := o.ToTheEnd(c, inBoxes(jobs, o.Box, sparkAttempts))
	if err != nil {
		return oomTrial{}, err
	}
	t := oomTrial{Failed: map[string]int{}, Jobs: len(r.Jobs)}
	for _, j := range r.Failures() {
		t.Failed[j.Name]++
	}
	t.Lost = r.LostWork.Seconds() / lab.Ran(r)
	return t, nil
}

// sparkAttempts is how often Spark runs a task that fails (section 5.2: its default).
const sparkAttempts = 4

// oomClaim compares the rates with Table 3.
func oomClaim(sizes []resource.Amount, failed [][]float64) lab.Claim {
	worst, ours := 0.0, ""
	for k, h := range sizes {
		rate := lab.Median(failed[k])
		if off := math.Abs(rate - tableThree[h]); h > 4*resource.GB {
			worst = max(worst, off)
		} else {
			worst = max(worst, tableThree[h]-rate)
		}
		if k > 0 {
			ours += ", "
		}
		ours += percent1(rate)
	}
	return Paper.Stated("pufferfish/table3", "rates").MadeSo(ours, worst <= 0.03)
}

// percent1 prints a share in percent with one digit after the point.
func percent1(share float64) string { return lab.Decimals(100*share, 1) + " %" }

// meanCounts prints the mean counts per run, by name.
func meanCounts(counts map[string]int, runs int) string {
	if len(counts) == 0 {
		return "nobody"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %s", name, lab.Decimals(float64(counts[name])/float64(runs), 1)))
	}
	return strings.Join(parts, ", ")
}
