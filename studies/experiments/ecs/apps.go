package ecs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// benchmark is a model of one of the seven benchmarks (section V.B).
type benchmark struct {
	name, kind string
	// deviations are the standard deviations over time of the CPU use of a map task and of a reduce task, of the largest
	// use.
	deviations [2]float64
	listed     bool // in Table I
}

// The deviations are those of Table I. It lists neither inverted-index nor join: these have the deviations of the
// first benchmark of their kind.
var benchmarks = []benchmark{
	{"wordcount", "I/O", [2]float64{0.22, 0.29}, true},
	{"terasort", "I/O", [2]float64{0.21, 0.28}, true},
	{"inverted-index", "I/O", [2]float64{0.22, 0.29}, false},
	{"k-means", "CPU", [2]float64{0.14, 0.27}, true},
	{"bayes", "CPU", [2]float64{0.12, 0.25}, true},
	{"pagerank", "hybrid", [2]float64{0.19, 0.33}, true},
	{"join", "hybrid", [2]float64{0.19, 0.33}, false},
}

func benchmarkOf(name string) *benchmark {
	for i := range benchmarks {
		if benchmarks[i].name == name {
			return &benchmarks[i]
		}
	}
	panic("experiments: there is no benchmark " + name)
}

// assumed is what the paper leaves out of its jobs.
type assumed struct {
	native              resource.Vector // a static container
	maps, reduces       int             // tasks of a job
	mapTime, reduceTime time.Duration   // of a task with the CPU that it demands
	sorting             float64         // the share of a reduce task's time that it sorts
	// by which the work of a task differs from the mean: standard deviation of its logarithm
	skew float64
}

// usual is what we take. A static container has the largest demands of Table IV. The times are those of Fig. 2,
// the maps of a job read 96 GB in blocks of 128 MB, and its reduces are 1.75 times the containers of the cluster, as
// Hadoop's manual says.
var usual = assumed{native: demand(1, 2), maps: 750, reduces: 440, mapTime: 50 * time.Second,
	reduceTime: 210 * time.Second, sorting: 0.1, skew: 0.2}

// demand is a demand of cores and of GB of memory.
func demand(cores, gb float64) resource.Vector {
	return resource.Of(lab.PartOf(cores, resource.Core), lab.PartOf(gb, resource.GB))
}

// shuffling is the CPU that a reduce task demands while it shuffles, in cores (Table IV). The other demands of Table
// IV are the same for all kinds of benchmarks.
func (b *benchmark) shuffling() float64 {
	if b.kind == "CPU" {
		return 0.2
	}
	return 0.3
}

// mapping is the share of its time in which a map task maps, and then demands one core; it sorts for the rest, with
// half a core. The share follows from the deviation. Of the two shares that do, programs that do not compute have the
// lower one: their use is low for more than half of the time (section II.A).
func (b *benchmark) mapping() float64 {
	return b.root(0.25, 0.25, b.deviations[0]*b.deviations[0])
}

// reducing is the share of its time in which a reduce task reduces, found like mapping. It sorts for a given share,
// and shuffles for the rest.
func (b *benchmark) reducing(sorting float64) float64 {
	low, variance := b.shuffling(), b.deviations[1]*b.deviations[1]
	least := (1-sorting)*low + 0.5*sorting // its mean use if it never reduced
	rest := (1-sorting)*low*low + 0.25*sorting - least*least
	return b.root((1-low)*(1-low), 1-low*low-2*least*(1-low), variance-rest)
}

// root solves a·x² - c·x + rest = 0.
func (b *benchmark) root(a, c, rest float64) float64 {
	apart := math.Sqrt(c*c - 4*a*rest)
	if b.kind == "CPU" {
		return (c + apart) / (2 * a)
	}
	return (c - apart) / (2 * a)
}

// phasesOfMap returns what a map task demands with the CPU that it demands; work is its work over that of the mean
// task.
func (a *assumed) phasesOfMap(b *benchmark, work float64) []cluster.Phase {
	whole, maps := a.mapTime.Seconds()*work, b.mapping()
	return []cluster.Phase{phase("map", whole*maps, demand(1, 1.5)),
		phase("sort", whole*(1-maps), demand(0.5, 2))}
}

// phasesOfReduce is phasesOfMap for a reduce task.
func (a *assumed) phasesOfReduce(b *benchmark, work float64) []cluster.Phase {
	whole, reduces := a.reduceTime.Seconds()*work, b.reducing(a.sorting)
	return []cluster.Phase{phase("shuffle", whole*(1-a.sorting-reduces), demand(b.shuffling(), 1)),
		phase("sort", whole*a.sorting, demand(0.5, 1.5)), phase("reduce", whole*reduces, demand(1, 2))}
}

func phase(name string, seconds float64, demand resource.Vector) cluster.Phase {
	return cluster.Phase{Name: name, Duration: time.Duration(seconds * 1e9).Round(time.Millisecond), Demand: demand}
}

// job returns a job of a benchmark. Policies know the phases of the mean task; the work of each task differs from it,
// drawn from r.
func (a *assumed) job(b *benchmark, id int, submitted timeline.Time, r *rand.Rand) workload.Job {
	j := workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(id), Name: fmt.Sprintf("%s %d", b.name, id),
		App: b.name, Submitted: submitted}}
	add := func(name string, tasks int, parents []int, phases func(*benchmark, float64) []cluster.Phase) {
		s := cluster.Stage{Name: name, Tasks: tasks, Parents: parents, Ideal: a.native, Phases: phases(b, 1),
			Told: cluster.Provenance{Model: "given"}}
		s.Duration = s.RunTime()
		truth := make([][]cluster.Phase, tasks)
		for i := range truth {
			truth[i] = phases(b, lab.Varied(r)(a.skew))
		}
		j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, workload.StageTruth{Phases: workload.ForEach(truth)})
	}
	add("map", a.maps, nil, a.phasesOfMap)
	add("reduce", a.reduces, []int{0}, a.phasesOfReduce)
	return j
}

// deviationOf is the standard deviation over time of the CPU that phases demand, of the largest demand.
func deviationOf(phases []cluster.Phase) float64 {
	u := lab.UsageOf(phases)
	peak, mean := float64(u.Peak[resource.CPU]), 0.0
	for _, p := range phases {
		mean += float64(p.Demand[resource.CPU]) / peak * p.Duration.Seconds() / u.Lasts
	}
	squares := 0.0
	for _, p := range phases {
		apart := float64(p.Demand[resource.CPU])/peak - mean
		squares += apart * apart * p.Duration.Seconds() / u.Lasts
	}
	return math.Sqrt(squares)
}
