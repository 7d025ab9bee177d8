package prophet

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// stage is a stage of a benchmark's DAG in one executor.
type stage struct {
	name          string
	disk, network float64 // bytes transferred per byte of the executor's input
	work          float64 // core-seconds per GB of the executor's input
}

// benchmark is a model of one of the ten benchmarks (sections II.A and II.B).
type benchmark struct {
	name   string
	inputs [3]float64 // GB: large, medium and small (Table I)
	before []stage
	again  []stage // repeated
	times  int
	after  []stage
}

// The stages follow what the paper says in words: map stages of learning programs use disk and CPU, and their reduce
// stages the network (section I); demands vary from almost none to about 300 MB/s of disk and 160 MB/s of network, and
// are low for more than half of some lifetimes (section II.A). All amounts per byte are assumed.
var benchmarks = []benchmark{
	{"SVM", [3]float64{38.3, 19.2, 9.6}, []stage{{"load", 1.2, 0, 9}},
		[]stage{{"map", 0.35, 0, 4}, {"reduce", 0, 0.15, 0.5}}, 7, []stage{{"write", 0.2, 0, 1}}},
	{"KMeans", [3]float64{21.9, 10.9, 5.5}, []stage{{"load", 1.2, 0, 9}},
		[]stage{{"map", 0.4, 0, 8}, {"reduce", 0, 0.17, 0.5}}, 7, []stage{{"write", 0.3, 0, 1}}},
	{"LR", [3]float64{37.1, 18.5, 9.3}, []stage{{"load", 1.2, 0, 9}},
		[]stage{{"map", 0.35, 0, 4}, {"reduce", 0, 0.15, 0.5}}, 6, []stage{{"write", 0.2, 0, 1}}},
	{"PageRank", [3]float64{4, 1.9, 0.9331}, []stage{{"load", 2, 0, 30}},
		[]stage{{"contributions", 5, 0, 30}, {"shuffle", 0.5, 8, 8}}, 6, []stage{{"write", 4, 0, 5}}},
	{"SVD++", [3]float64{0.3656, 0.1633, 0.0781}, []stage{{"load", 10, 0, 200}},
		[]stage{{"messages", 40, 5, 350}, {"shuffle", 5, 80, 60}}, 6, []stage{{"write", 20, 0, 40}}},
	{"TriangleCount", [3]float64{0.3647, 0.1672, 0.0865},
		[]stage{{"load", 10, 0, 200}, {"partition", 40, 120, 200}},
		[]stage{{"neighbours", 80, 0, 500}, {"shuffle", 10, 150, 100}}, 3, []stage{{"write", 20, 0, 40}}},
	{"Terasort", [3]float64{37.3, 18.6, 9.3}, []stage{{"map", 1, 0, 6}, {"spill", 1, 0, 2},
		{"shuffle", 0.3, 1, 2}, {"reduce", 2, 0.5, 4}}, nil, 0, nil},
	{"WordCount", [3]float64{44, 22, 11}, []stage{{"map", 1, 0, 12}, {"shuffle", 0.1, 0.1, 1},
		{"write", 0.1, 0, 0.5}}, nil, 0, nil},
	{"Sort", [3]float64{44, 22, 11}, []stage{{"map", 1, 0, 6}, {"spill", 1, 0, 2}, {"shuffle", 0.3, 1, 2},
		{"write", 1, 0, 2}}, nil, 0, nil},
	{"Grep", [3]float64{44, 22, 11}, []stage{{"scan", 1, 0, 4}, {"collect", 0, 0.05, 0.2}}, nil, 0, nil},
}

// cores are the cores of an executor (section II.B).
var cores = []int{1, 3, 5}

// The largest rates in Fig. 1 and 2 bound what one executor transfers, and below them what its cores move.
const (
	diskRate, networkRate = 300e6, 160e6 // bytes per second
	pause                 = 1.0          // seconds between the stages of a DAG: assumed
)

// stages returns all stages in the order in which they run.
func (b *benchmark) stages() []stage {
	all := append([]stage(nil), b.before...)
	for range b.times {
		all = append(all, b.again...)
	}
	return append(all, b.after...)
}

// app is an application: a benchmark with an input, in executors of some cores.
type app struct {
	*benchmark
	*assumed
	input float64 // GB, of all executors together
	cores int     // of each executor
}

func (a *app) String() string {
	return fmt.Sprintf("%s %.3g GB %d cores", a.name, a.input, a.cores)
}

// phases returns what an executor demands in each stage when nothing hinders it: a stage lasts as long as its work or
// one of its transfers takes. noise stretches the duration of a stage and its transfers; 1 for none.
func (a *app) phases(noise func(spread float64) float64) []cluster.Phase {
	share := a.amounts * a.input / float64(a.executors) // GB of one executor
	cores := float64(a.cores)
	disk, network := min(diskRate, cores*a.diskPerCore), min(networkRate, cores*a.networkPerCore)
	var all []cluster.Phase
	for _, s := range a.stages() {
		moved := noise(0.05)
		toDisk, toNetwork, work := s.disk*share*1e9*moved, s.network*share*1e9*moved, s.work*share*noise(0.03)
		lasts := max(work/cores, toDisk/disk, toNetwork/network) + pause
		all = append(all, cluster.Phase{Name: s.name, Duration: time.Duration(lasts * 1e9).Round(time.Millisecond),
			Demand: resource.Of(lab.PartOf(work/lasts, resource.Core), a.memory).
				With(resource.Disk, resource.Amount(toDisk/lasts)).With(resource.Network, resource.Amount(toNetwork/lasts))})
	}
	return all
}

// exactly is no noise.
func exactly(float64) float64 { return 1 }

// apps returns the 90 applications of section IV.B: ten benchmarks, three inputs and three numbers of cores.
func (a *assumed) apps() []app {
	var all []app
	for i := range benchmarks {
		b := &benchmarks[i]
		for _, input := range b.inputs {
			for _, cores := range cores {
				all = append(all, app{b, a, input, cores})
			}
		}
	}
	return all
}

// job returns the application as a job. forecast is what Prophet knows of an executor; the truth differs from what the
// model says by as much as two runs of one setting (Fig. 3), drawn from r.
func (a *app) job(id int, submitted timeline.Time, forecast []cluster.Phase, r *rand.Rand) workload.Job {
	stage := cluster.Stage{Name: a.name, Tasks: a.executors, Ideal: resource.Of(resource.Amount(a.cores)*resource.Core,
		a.memory), Phases: forecast, Input: lab.PartOf(a.input/float64(a.executors), resource.GB), Together: true}
	stage.Told = cluster.Provenance{Model: "given"}
	stage.Duration = stage.RunTime()
	each := make([][]cluster.Phase, a.executors)
	run := a.phases(lab.Varied(r))
	for i := range each {
		each[i] = run
	}
	return workload.Job{After: -1, Truth: []workload.StageTruth{{Phases: workload.ForEach(each)}},
		Job: cluster.Job{ID: cluster.JobID(id), Name: a.String(), App: a.name, Submitted: submitted,
			Stages: []cluster.Stage{stage}}}
}

// drawn returns the applications of a run, at most 90, in random order, and what draws the rest of the run.
func (a *assumed) drawn(l *lab.Lab, run int) ([]app, *rand.Rand) {
	r := rand.New(rand.NewPCG(l.RunSeed(run), 0x90))
	apps := a.apps()
	r.Shuffle(len(apps), func(i, k int) { apps[i], apps[k] = apps[k], apps[i] })
	return apps[:applications(l)], r
}

// workload returns the jobs of a run. told are the forecasts of an executor by the names of applications; without them,
// what the models say.
func (a *assumed) workload(l *lab.Lab, run int, told map[string][]cluster.Phase) *workload.Workload {
	apps, r := a.drawn(l, run)
	times := lab.Arrivals(len(apps), window, r)
	if a.traced {
		times = swimArrivals(run)[:len(times)]
	}
	w := &workload.Workload{}
	for i, submitted := range times {
		forecast, ok := told[apps[i].String()]
		if !ok {
			forecast = apps[i].phases(exactly)
		}
		w.Jobs = append(w.Jobs, apps[i].job(i+1, submitted, forecast, r))
	}
	return w
}

// forecasts returns what Prophet's predictor says of the applications, for each run of an experiment: no run has any
// where Prophet knows the models.
func (a *assumed) forecasts(l *lab.Lab) ([]map[string][]cluster.Phase, error) {
	all := make([]map[string][]cluster.Phase, l.Runs)
	for run := range all {
		if !a.predicted {
			continue
		}
		all[run] = map[string][]cluster.Phase{}
		histories := map[*benchmark]*profile.History{}
		for i := range benchmarks {
			b := &benchmarks[i]
			h, err := b.profiled(a, l.RunSeed(run), []string{profile.BySVR})
			if err != nil {
				return nil, err
			}
			histories[b] = h
		}
		apps, _ := a.drawn(l, run)
		for _, app := range apps {
			e, ok := histories[app.benchmark].Estimate(profile.App{Name: app.name}, featuresOf(&app))
			if !ok {
				return nil, fmt.Errorf("%s: nothing is predicted", &app)
			}
			all[run][app.String()] = e.Variants[0].Phases
		}
	}
	return all, nil
}

// swim has times of submission, a line per run; its head says whose.
//
//go:embed arrivals/swim.txt
var swim string

// swimArrivals returns the times at which 90 jobs of a trace were submitted, after the first of them.
func swimArrivals(run int) (times []timeline.Time) {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(swim), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
	for _, text := range strings.Fields(lines[run%len(lines)]) {
		seconds, err := strconv.Atoi(text)
		if err != nil {
			panic(fmt.Sprintf("experiments: arrivals/swim.txt: %v", err))
		}
		times = append(times, timeline.Seconds(float64(seconds)))
	}
	return times
}
