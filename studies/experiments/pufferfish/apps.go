package pufferfish

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// pufferfishApp is a model of an application of Table 1 with one of its inputs. One executor of a job is hot: it uses
// more memory than the others (section 2, Fig. 2). Values that the paper does not give are ours; pufferfish.yaml
// names them.
type pufferfishApp struct {
	name      string // as in Table 2
	large     bool   // the larger input of the two
	framework string
	jobs      int // in the trace (Table 2)
	executors int // Table 1; reducers of MapReduce

	duration time.Duration   // of each executor, without cost of the heap
	peak     resource.Amount // peak memory of the hot executor with a heap of 64 GB
	usage    []usagePoint    // M(t), from 0 to 1 of the duration
	cold     [2]float64      // range of the other executors' memory, live set and cache, as shares of the hot executor's

	// leastHeap is the range from which a job draws the smallest heap with which its hot executor survives, GB.
	leastHeap [2]float64
	// cache is the data that the hot executor keeps in its memory pool if they fit. Data that do not fit are written to
	// disk and read again: if none fit, the executor takes 1 + respill times as long.
	cache   resource.Amount
	respill float64

	cpu, disk resource.Amount // demand at full speed; disk in bytes/s
}

// usagePoint is a point of M(t): shares of the duration and of the peak, straight lines between.
type usagePoint struct{ time, memory float64 }

// Usage over time. For a third of the time Kmeans uses at most 64 %, Pagerank 49 % and Terasort 86 % of the heap
// (section 2); the peak of Kmeans is 61 GB, of Wordcount 24 GB (section 5.2). The rest of the curves is assumed.
var (
	usageKM = []usagePoint{{0, 0.03}, {1. / 3, 0.64 * 64 / 61}, {0.7, 1}, {1, 1}}
	usagePR = []usagePoint{{0, 0.03}, {1. / 3, 0.49 * 64 / 62}, {0.6, 0.95}, {0.75, 1}, {0.85, 0.75}, {1, 0.75}}
	usageTS = []usagePoint{{0, 0.06}, {0.12, 0.7}, {1. / 3, 0.86}, {0.6, 1}, {1, 1}}
	usageWC = []usagePoint{{0, 0.05}, {0.45, 0.8}, {0.5, 0.5}, {0.9, 1}, {1, 1}} // maps, then reduces
	usageII = []usagePoint{{0, 0.05}, {0.4, 0.8}, {1, 1}}
)

// skewed and alike are ranges of cold executors.
var skewed, alike = [2]float64{0.4, 0.6}, [2]float64{0.9, 1}

// apps are the applications of Table 1, small inputs before large ones.
var apps = []pufferfishApp{
	{name: "WC", framework: "Spark", jobs: 23, executors: 1, duration: 900 * time.Second, peak: 24 * resource.GB,
		usage: usageWC, cold: alike, leastHeap: [2]float64{1.5, 2.5}, cache: 14 * resource.GB, respill: 0.1,
		cpu: 4 * resource.Core, disk: 100 * resource.MB},
	{name: "KM", framework: "Spark", jobs: 31, executors: 1, duration: 700 * time.Second, peak: 61 * resource.GB,
		usage: usageKM, cold: skewed, leastHeap: [2]float64{4.5, 7}, cache: 38400 * resource.MB, respill: 1.75,
		cpu: 8 * resource.Core, disk: 5 * resource.MB},
	{name: "PR", framework: "Spark", jobs: 41, executors: 1, duration: 1000 * time.Second, peak: 62 * resource.GB,
		usage: usagePR, cold: skewed, leastHeap: [2]float64{6.76, 12}, cache: 19200 * resource.MB, respill: 1,
		cpu: 6 * resource.Core, disk: 20 * resource.MB},
	{name: "NW", framework: "Spark", jobs: 3, executors: 1, duration: 1000 * time.Second, peak: 62 * resource.GB,
		usage: usagePR, cold: skewed, leastHeap: [2]float64{33, 38}, cache: 19200 * resource.MB, respill: 1,
		cpu: 6 * resource.Core, disk: 20 * resource.MB},

	{name: "WC", large: true, framework: "Spark", jobs: 26, executors: 6, duration: 1500 * time.Second,
		peak: 24 * resource.GB, usage: usageWC, cold: alike, leastHeap: [2]float64{1.5, 2.5}, cache: 14 * resource.GB,
		respill: 0.1, cpu: 4 * resource.Core, disk: 100 * resource.MB},
	{name: "KM", large: true, framework: "Spark", jobs: 20, executors: 6, duration: 600 * time.Second,
		peak: 61 * resource.GB, usage: usageKM, cold: skewed, leastHeap: [2]float64{4.5, 7}, cache: 38400 * resource.MB,
		respill: 1.75, cpu: 8 * resource.Core, disk: 5 * resource.MB},
	{name: "PR", large: true, framework: "Spark", jobs: 24, executors: 8, duration: 2500 * time.Second,
		peak: 62 * resource.GB, usage: usagePR, cold: skewed, leastHeap: [2]float64{16.5, 31}, cache: 19200 * resource.MB,
		respill: 1, cpu: 6 * resource.Core, disk: 20 * resource.MB},
	{name: "NW", large: true, framework: "Spark", jobs: 5, executors: 8, duration: 2500 * time.Second,
		peak: 62 * resource.GB, usage: usagePR, cold: skewed, leastHeap: [2]float64{33, 38}, cache: 19200 * resource.MB,
		respill: 1, cpu: 6 * resource.Core, disk: 20 * resource.MB},
	{name: "TS", large: true, framework: "MapReduce", jobs: 3, executors: 25, duration: 500 * time.Second,
		peak: 18 * resource.GB, usage: usageTS, cold: alike, leastHeap: [2]float64{1, 2}, cache: 12800 * resource.MB,
		respill: 0.6, cpu: 2 * resource.Core, disk: 60 * resource.MB},
	{name: "II", large: true, framework: "MapReduce", jobs: 2, executors: 6, duration: 1200 * time.Second,
		peak: 50 * resource.GB, usage: usageII, cold: alike, leastHeap: [2]float64{1, 2}, cache: 30 * resource.GB,
		respill: 0.6, cpu: 4 * resource.Core, disk: 80 * resource.MB},
}

// app returns the model of an application, which must exist.
func app(name string, large bool) *pufferfishApp {
	for i := range apps {
		if a := &apps[i]; a.name == name && a.large == large {
			return a
		}
	}
	panic("experiments: there is no application " + name)
}

func (a *pufferfishApp) String() string {
	if a.large {
		return a.name + " large"
	}
	return a.name + " small"
}

// memoryAt returns M(t) of the hot executor with a heap of 64 GB, at a share of the duration.
func (a *pufferfishApp) memoryAt(t float64) resource.Amount {
	for i, p := range a.usage[1:] {
		if q := a.usage[i]; t <= p.time {
			return lab.PartOf(q.memory+(t-q.time)/(p.time-q.time)*(p.memory-q.memory), a.peak)
		}
	}
	return lab.PartOf(a.usage[len(a.usage)-1].memory, a.peak)
}

// usageSteps is the number of phases that represent M(t).
const usageSteps = 40

// executorPhases returns the phases of an executor that uses share of the hot executor's memory and takes slower times
// as long as with all memory, because it writes and reads data that its memory pool has no space for.
func (a *pufferfishApp) executorPhases(share, slower float64) []cluster.Phase {
	// An executor that only spills demands a quarter of the bandwidth of the node's disks.
	disk := float64(a.disk)/slower + (1-1/slower)*float64(nodeDisk)/4
	phases := make([]cluster.Phase, usageSteps)
	for i := range phases {
		phases[i] = cluster.Phase{
			Duration: time.Duration(float64(a.duration) * slower / usageSteps),
			Demand: resource.Of(a.cpu, lab.PartOf(share, a.memoryAt((float64(i)+0.5)/usageSteps))).
				With(resource.Disk, resource.Amount(math.Round(disk))),
		}
	}
	return phases
}

// poolShare is the share of a heap in which a framework keeps data: Spark's spark.memory.fraction.
const poolShare = 0.6

// spills returns how many times as long an executor takes because its share of the cache does not fit its pool.
func (a *pufferfishApp) spills(share float64, heap resource.Amount) float64 {
	missing := 1 - poolShare*float64(heap)/(share*float64(a.cache))
	return 1 + a.respill*max(0, missing)
}

// job is a job of an application, with its random values.
type job struct {
	*pufferfishApp
	live resource.Amount // the hot executor's live set at its peak
	cold []float64       // per other executor, its share of the hot executor's memory
}

// draw returns a job with random values.
func (a *pufferfishApp) draw(r *rand.Rand) job {
	least := a.leastHeap[0] * math.Pow(a.leastHeap[1]/a.leastHeap[0], r.Float64())
	j := job{pufferfishApp: a, live: lab.PartOf(least/leastOverLive(), resource.GB)}
	for range a.executors - 1 {
		j.cold = append(j.cold, a.cold[0]+(a.cold[1]-a.cold[0])*r.Float64())
	}
	return j
}

// typical returns a job with all values in the middle of their ranges.
func (a *pufferfishApp) typical() job {
	j := job{pufferfishApp: a, live: lab.PartOf(math.Sqrt(a.leastHeap[0]*a.leastHeap[1])/leastOverLive(), resource.GB)}
	for range a.executors - 1 {
		j.cold = append(j.cold, (a.cold[0]+a.cold[1])/2)
	}
	return j
}

// leastOverLive is how many times as large as its live set a heap must be, so that collection does not take nearly all
// time.
func leastOverLive() float64 {
	c := sim.JVMCollection
	return 1 + math.Sqrt(c.Cost*(1-c.GiveUp)/c.GiveUp)
}

// flex returns the job in FLEX containers, as Pufferfish runs it: a heap of 64 GB in a container that starts with 4 GB.
func (j job) flex() workload.Job { return j.flexFrom(minCont, maxHeap) }

// flexFrom is flex with other sizes of MIN_CONT and MAX_HEAP.
func (j job) flexFrom(minCont, maxHeap resource.Amount) workload.Job {
	t := j.inContainers(minCont, maxHeap)
	t.Class = cluster.Flex
	for i := range t.Stages {
		t.Stages[i].MaxMemory = maxHeap
	}
	return t
}

// regular returns the job in containers of one size, which is also the size of the heap, as on YARN.
func (j job) regular(heap resource.Amount) workload.Job { return j.inContainers(heap, heap) }

// inContainers returns the job with one stage for the hot executor and one for the other executors, which all run at
// the same time. A container is placed by its memory and one core, as on YARN; its real use of CPU and disks is in the
// truth.
func (j job) inContainers(container, heap resource.Amount) workload.Job {
	t := workload.Job{After: -1, Job: cluster.Job{Name: j.String(), MaxAttempts: 1}}
	expected := j.alone()
	add := func(name string, live resource.Amount, shares ...float64) {
		var phases [][]cluster.Phase
		for _, share := range shares {
			phases = append(phases, j.executorPhases(share, j.spills(share, heap)))
		}
		truth := workload.StageTruth{Phases: workload.ForEach(phases), Heap: &workload.Heap{Live: live, Size: heap}}
		t.Stages = append(t.Stages,
			cluster.Stage{Name: name, Tasks: len(shares), Ideal: resource.Of(resource.Core, container), Duration: expected})
		t.Truth = append(t.Truth, truth)
	}
	add("hot", j.live, 1)
	if len(j.cold) > 0 {
		add("others", lab.PartOf(lab.Mean(j.cold), j.live), j.cold...)
	}
	return t
}

// split is the run time of the job's slowest executor on a node of its own: run without garbage collection, all with
// it.
type split struct{ run, all time.Duration }

// with returns the run time with a heap of the given size and all the memory that the heap needs; ok is false if it
// fails for lack of memory.
func (j job) with(heap resource.Amount) (s split, ok bool) {
	phases := j.executorPhases(1, j.spills(1, heap))
	var most resource.Amount
	for _, p := range phases {
		most = max(most, p.Demand[resource.Memory])
	}
	for _, p := range phases {
		cost, alive := sim.JVMCollection.Slowdown(float64(heap),
			float64(j.live)*float64(p.Demand[resource.Memory])/float64(most))
		if !alive {
			return split{}, false
		}
		s.run += p.Duration
		s.all += time.Duration(cost * float64(p.Duration))
	}
	return s, true
}

// alone returns the run time in an isolated environment with a heap of 64 GB, to which run times are normalised
// (section 5.3).
func (j job) alone() time.Duration {
	s, _ := j.with(maxHeap)
	return s.all
}

// leastHeapOf returns the smallest heap with which the job survives.
func (j job) leastHeapOf() resource.Amount { return lab.PartOf(leastOverLive(), j.live) }

// submission is a job and the time of its submission.
type submission struct {
	job
	at timeline.Time
}

// inBoxes returns the jobs as a workload, in REGULAR containers of size box, or in FLEX containers if box is 0.
// attempts is how often a task may run.
func inBoxes(jobs []submission, box resource.Amount, attempts int) *workload.Workload {
	w := &workload.Workload{}
	for i, s := range jobs {
		t := s.flex()
		if box > 0 {
			t = s.regular(box)
		}
		t.ID, t.Submitted, t.MaxAttempts = cluster.JobID(i+1), s.at, attempts
		w.Jobs = append(w.Jobs, t)
	}
	return w
}
