package experiments

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// prophetStage is a stage of a benchmark's DAG in one executor.
type prophetStage struct {
	name          string
	disk, network float64 // bytes transferred per byte of the executor's input
	work          float64 // core-seconds per GB of the executor's input
}

// prophetBenchmark is a model of one of the ten benchmarks (sections II.A and II.B).
type prophetBenchmark struct {
	name   string
	large  float64 // input in GB (Table I); the medium input is half of it, the small input a quarter
	before []prophetStage
	again  []prophetStage // repeated
	times  int
	after  []prophetStage
}

// The stages follow what the paper says in words: map stages of learning programs use disk and CPU, and their reduce
// stages the network (section I); demands vary from almost none to about 300 MB/s of disk and 160 MB/s of network, and
// are low for more than half of some lifetimes (section II.A). All amounts per byte are assumed.
var prophetBenchmarks = []prophetBenchmark{
	{"SVM", 38.3, []prophetStage{{"load", 1.2, 0, 9}},
		[]prophetStage{{"map", 0.35, 0, 4}, {"reduce", 0, 0.15, 0.5}}, 7, []prophetStage{{"write", 0.2, 0, 1}}},
	{"KMeans", 21.9, []prophetStage{{"load", 1.2, 0, 9}},
		[]prophetStage{{"map", 0.4, 0, 8}, {"reduce", 0, 0.17, 0.5}}, 7, []prophetStage{{"write", 0.3, 0, 1}}},
	{"LR", 37.1, []prophetStage{{"load", 1.2, 0, 9}},
		[]prophetStage{{"map", 0.35, 0, 4}, {"reduce", 0, 0.15, 0.5}}, 6, []prophetStage{{"write", 0.2, 0, 1}}},
	{"PageRank", 4, []prophetStage{{"load", 2, 0, 30}},
		[]prophetStage{{"contributions", 5, 0, 30}, {"shuffle", 0.5, 8, 8}}, 6, []prophetStage{{"write", 4, 0, 5}}},
	{"SVD++", 0.3656, []prophetStage{{"load", 10, 0, 200}},
		[]prophetStage{{"messages", 40, 5, 350}, {"shuffle", 5, 80, 60}}, 6, []prophetStage{{"write", 20, 0, 40}}},
	{"TriangleCount", 0.3647, []prophetStage{{"load", 10, 0, 200}, {"partition", 40, 120, 200}},
		[]prophetStage{{"neighbours", 80, 0, 500}, {"shuffle", 10, 150, 100}}, 3, []prophetStage{{"write", 20, 0, 40}}},
	{"Terasort", 37.3, []prophetStage{{"map", 1, 0, 6}, {"spill", 1, 0, 2}, {"shuffle", 0.3, 1, 2}, {"reduce", 2, 0.5, 4}}, nil, 0, nil},
	{"WordCount", 44, []prophetStage{{"map", 1, 0, 12}, {"shuffle", 0.1, 0.1, 1}, {"write", 0.1, 0, 0.5}}, nil, 0, nil},
	{"Sort", 44, []prophetStage{{"map", 1, 0, 6}, {"spill", 1, 0, 2}, {"shuffle", 0.3, 1, 2}, {"write", 1, 0, 2}}, nil, 0, nil},
	{"Grep", 44, []prophetStage{{"scan", 1, 0, 4}, {"collect", 0, 0.05, 0.2}}, nil, 0, nil},
}

// prophetSizes are the input sizes of Table I as shares of the large one. The table's medium and small inputs are 49 to
// 51 %, and 21 to 25 %, of it.
var prophetSizes = []float64{1, 0.5, 0.25}

// prophetCores are the cores of an executor (section II.B).
var prophetCores = []int{1, 3, 5}

// prophetRates bound what one executor transfers: the largest rates in Fig. 1 and 2, and below them what a core moves,
// which is assumed.
const (
	prophetDiskRate, prophetDiskPerCore       = 300e6, 110e6 // bytes per second
	prophetNetworkRate, prophetNetworkPerCore = 160e6, 60e6
	prophetPause                              = 1.0 // seconds between the stages of a DAG: assumed
)

// prophetScale is a factor for all amounts. It is fitted: the makespan under CS is that of Table III.
const prophetScale = 7.2

// stages returns all stages in the order in which they run.
func (b *prophetBenchmark) stages() []prophetStage {
	all := append([]prophetStage(nil), b.before...)
	for range b.times {
		all = append(all, b.again...)
	}
	return append(all, b.after...)
}

// prophetApp is an application: a benchmark with an input, in executors of some cores.
type prophetApp struct {
	*prophetBenchmark
	input     float64 // GB, of all executors together
	cores     int     // of each executor
	executors int
}

func (a *prophetApp) String() string {
	return fmt.Sprintf("%s %.3g GB %d cores", a.name, a.input, a.cores)
}

// phases returns what an executor demands in each stage when nothing hinders it: a stage lasts as long as its work or
// one of its transfers takes. noise stretches the duration of a stage and its transfers; 1 for none.
func (a *prophetApp) phases(noise func(spread float64) float64) []cluster.Phase {
	share := prophetScale * a.input / float64(a.executors) // GB of one executor
	cores := float64(a.cores)
	disk, network := min(prophetDiskRate, cores*prophetDiskPerCore), min(prophetNetworkRate, cores*prophetNetworkPerCore)
	var all []cluster.Phase
	for _, s := range a.stages() {
		moved := noise(0.05)
		toDisk, toNetwork, work := s.disk*share*1e9*moved, s.network*share*1e9*moved, s.work*share*noise(0.03)
		lasts := max(work/cores, toDisk/disk, toNetwork/network) + prophetPause
		all = append(all, cluster.Phase{Name: s.name, Duration: time.Duration(lasts * 1e9).Round(time.Millisecond),
			Demand: resource.Of(at(work/lasts, resource.Core), prophetMemory).
				With(resource.Disk, resource.Amount(toDisk/lasts)).With(resource.Network, resource.Amount(toNetwork/lasts))})
	}
	return all
}

// exactly is no noise.
func exactly(float64) float64 { return 1 }

// prophetMemory is what each executor reserves: a quarter of a server. The paper does not say what it gave executors.
const prophetMemory = 8 * resource.GB

// prophetApps returns the 90 applications of section IV.B: ten benchmarks, three inputs and three numbers of cores.
func prophetApps(executors int) []prophetApp {
	var all []prophetApp
	for i := range prophetBenchmarks {
		for _, size := range prophetSizes {
			for _, cores := range prophetCores {
				b := &prophetBenchmarks[i]
				all = append(all, prophetApp{b, b.large * size, cores, executors})
			}
		}
	}
	return all
}

// job returns the application as a job. Its forecast is what the model says; the truth differs by as much as two runs
// of one setting (Fig. 3), drawn from r.
func (a *prophetApp) job(id int, submitted timeline.Time, r *rand.Rand) workload.Job {
	stage := cluster.Stage{Name: a.name, Tasks: a.executors, Ideal: resource.Of(resource.Amount(a.cores)*resource.Core, prophetMemory),
		Phases: a.phases(exactly), Input: at(a.input/float64(a.executors), resource.GB), Together: true}
	stage.Told = cluster.Provenance{Model: "given"}
	stage.Duration = stage.RunTime()
	each := make([][]cluster.Phase, a.executors)
	run := a.phases(varied(r))
	for i := range each {
		each[i] = run
	}
	return workload.Job{After: -1, Truth: []workload.StageTruth{{Phases: workload.ForEach(each)}},
		Job: cluster.Job{ID: cluster.JobID(id), Name: a.String(), App: a.name, Submitted: submitted, Stages: []cluster.Stage{stage}}}
}

// prophetWorkload returns the first applications, at most 90, in random order, each submitted at a random time in the window.
func prophetWorkload(executors int, seed uint64, count int) *workload.Workload {
	r := rand.New(rand.NewPCG(seed, 0x90))
	apps := prophetApps(executors)
	r.Shuffle(len(apps), func(i, k int) { apps[i], apps[k] = apps[k], apps[i] })
	times := arrivals(count, prophetWindow, r)
	w := &workload.Workload{}
	for i, submitted := range times {
		w.Jobs = append(w.Jobs, apps[i].job(i+1, submitted, r))
	}
	return w
}
