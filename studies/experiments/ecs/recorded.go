package ecs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// source is recorded data, and the workloads that are made of it.
type source struct {
	name string
	// read reads the data from the folder of recorded data.
	read func(dir string) ([]workload.Job, error)
	// workload is made of what was read, with draws from r. Its forecasts are learned from what was recorded before what
	// runs, or are of what runs if oracle is set.
	workload func(recorded []workload.Job, r *rand.Rand, oracle bool) (*workload.Workload, error)
	nodes    []cluster.Node // on which it runs
	interval string         // ecs.interval
	drawn    bool           // whether draws differ
}

// ecsSources are the sources of the experiment. Memory is not scarce, since leveling moves CPU alone.
var ecsSources = []source{
	{"Bitbrains", ReadBitbrains, machines{24 * time.Hour, 7}.workload, hosts, "5m", true},
	{"Google", ReadGoogle, machines{8 * time.Hour, 3}.workload, hosts, "5m", true},
	{"Spark q72", readQ72, query, sim.Uniform(2, resource.Of(16*resource.Core, 50*resource.GiB)), "10s", false},
}

var hosts = sim.Uniform(2, resource.Of(16*resource.Core, 1000*resource.GiB))

const (
	hostsLoad     = 3 // static boxes of all machines over the cores of the hosts
	machinesOfJob = 4
	// fluctuates is the least standard deviation of CPU use over time, of the largest use, of machines that count. It
	// is the least of Table I.
	fluctuates = 0.12
)

// ReadBitbrains reads the machines of Bitbrains from the folder of recorded data.
func ReadBitbrains(dir string) ([]workload.Job, error) {
	vms, err := os.Open(filepath.Join(dir, "bitbrains", "vms.csv"))
	if err != nil {
		return nil, err
	}
	defer vms.Close()
	f := importer.DefaultBitbrains()
	f.VMs = importer.Source{Name: "vms.csv", Data: vms}
	return lab.ReadRecorded(f, filepath.Join(dir, "bitbrains", "rnd-2013-08-week1-300s.csv.gz"))
}

// ReadGoogle reads the machines of Google from the folder of recorded data.
func ReadGoogle(dir string) ([]workload.Job, error) {
	return lab.ReadRecorded(importer.DefaultGoogleVMs(), filepath.Join(dir, "google2011-vms", "vms-5min-24h.csv.gz"))
}

func readQ72(dir string) ([]workload.Job, error) {
	return lab.ReadRecorded(importer.DefaultSpark(), filepath.Join(dir, "spark-eventlogs", "original",
		"tpcds-q72-dataproc__nds_q72_dataproc_2_2.zstd"))
}

// machines makes tasks of curves of virtual machines. A curve has several periods. A task is a stretch of the last
// period, and the same stretch of the periods before has been seen.
type machines struct {
	period  time.Duration
	periods int
}

// last is when the last period begins.
func (m machines) last() time.Duration { return time.Duration(m.periods-1) * m.period }

// counts reports whether a machine is taken, from what it used before the last period: at most 0.5 to 8 cores, and
// not always the same.
func counts(before []cluster.Phase) bool {
	peak := lab.UsageOf(before).Peak[resource.CPU]
	return lab.Within(float64(peak), float64(resource.Core)/2, float64(8*resource.Core)) &&
		deviationOf(before) >= fluctuates
}

// workload draws machines until their static boxes are hostsLoad times the cores of the hosts, and makes jobs of
// some machines each.
func (m machines) workload(machines []workload.Job, r *rand.Rand, oracle bool) (*workload.Workload, error) {
	w, boxes := &workload.Workload{}, resource.Amount(0)
	for _, at := range r.Perm(len(machines)) {
		length := m.period / 4 * time.Duration(1+r.IntN(4))
		curve, _ := machines[at].Truth[0].Phases.Of(0)
		if before := Between(curve, 0, m.last()); !counts(before) {
			continue
		}
		s, truth, err := m.task(curve, length, oracle)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", machines[at].Name, err)
		}
		s.Name = machines[at].Name
		if n := len(w.Jobs); n == 0 || len(w.Jobs[n-1].Stages) == machinesOfJob {
			w.Jobs = append(w.Jobs,
				workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(n + 1), Name: fmt.Sprintf("machines %d", n+1)}})
		}
		j := &w.Jobs[len(w.Jobs)-1]
		j.Stages, j.Truth = append(j.Stages, s), append(j.Truth, workload.StageTruth{Phases: workload.ForAll(truth)})
		if boxes += s.Ideal[resource.CPU]; boxes >= hostsLoad*hosts[0].Capacity[resource.CPU]*resource.Amount(
			len(hosts)) {
			break
		}
	}
	return w, nil
}

// task is the first part of the last period of a curve. Its box is the most CPU that the machine used in all periods
// before, and the memory that covers what it uses in any. The forecast is what bellows learns from the periods
// before, or, of an oracle, the phases that it finds in what will run.
func (m machines) task(curve []cluster.Phase, length time.Duration, oracle bool) (s cluster.Stage,
	truth []cluster.Phase, err error) {
	truth = Between(curve, m.last(), m.last()+length)
	s = cluster.Stage{Tasks: 1, Duration: length,
		Ideal: resource.Of(lab.UsageOf(Between(curve, 0, m.last())).Peak[resource.CPU],
			max(lab.UsageOf(curve).Peak[resource.Memory], resource.MiB))}
	var app profile.App
	h := &profile.History{Rows: []string{profile.ByMedian}} // all runs have the same features
	for k := range m.periods {
		if from := time.Duration(k) * m.period; oracle == (k == m.periods-1) {
			run, _ := profile.Segment(usedIn(Between(curve, from, from+length)))
			if _, err := h.Observe(app, run); err != nil {
				return s, nil, err
			}
		}
	}
	e, _ := h.Estimate(app, profile.Features{})
	s.Phases, s.Told = profile.Lasting(e.Variants[0].Phases, length), e.Variants[0].Told
	return s, truth, nil
}

// Between is the part of a course of demand from one time to another.
func Between(phases []cluster.Phase, from, to time.Duration) (part []cluster.Phase) {
	at := time.Duration(0)
	for _, p := range phases {
		begins, ends := max(at, from), min(at+p.Duration, to)
		at += p.Duration
		if ends > begins {
			p.Duration = ends - begins
			part = append(part, p)
		}
	}
	return part
}

// usedIn is a course of demand as it is measured: of CPU and memory.
func usedIn(phases []cluster.Phase) (all []profile.Stretch) {
	for _, p := range phases {
		unknown := resource.KindsOf(resource.Disk, resource.Network)
		all = append(all, profile.Stretch{Length: p.Duration, Usage: unknown.In(p.Demand, 0), Unknown: unknown})
	}
	return all
}

// query is an application whose tasks were each recorded as a whole. The forecast of a stage is the mean of its
// tasks, or of the first tenth of them, in the order in which they ended.
func query(recorded []workload.Job, _ *rand.Rand, oracle bool) (*workload.Workload, error) {
	j := recorded[0]
	j.ID = 1
	j.Stages = slices.Clone(j.Stages)
	for k := range j.Stages {
		s, tasks := &j.Stages[k], j.Truth[k].Phases.Values()
		if !oracle {
			tasks = tasks[:(len(tasks)+9)/10]
		}
		p := meanOf(tasks)
		p.Demand[resource.Memory] = min(p.Demand[resource.Memory], s.Ideal[resource.Memory])
		s.Phases, s.Duration, s.Told = []cluster.Phase{p}, p.Duration,
			cluster.Provenance{Model: profile.AsMeasured, Samples: len(tasks)}
	}
	return &workload.Workload{Jobs: []workload.Job{j}}, nil
}

// meanOf is the mean of tasks of one phase each: of their durations, and of their demand over all of that time.
func meanOf(tasks [][]cluster.Phase) (p cluster.Phase) {
	var all []cluster.Phase
	for _, t := range tasks {
		all = append(all, t...)
	}
	u := lab.UsageOf(all)
	return cluster.Phase{Demand: u.Mean,
		Duration: time.Duration(u.Lasts / float64(len(tasks)) * 1e9).Round(time.Millisecond)}
}

// beyondForecast is how much of the CPU that tasks use is above what they were forecast to demand at that time, as a
// share.
func beyondForecast(w *workload.Workload) float64 {
	above, whole := 0.0, 0.0
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			s := &w.Jobs[i].Stages[k]
			for task := range s.Tasks {
				truth, _ := w.Jobs[i].Truth[k].Phases.Of(task)
				a, b := cpuAbove(truth, s.Phases)
				above, whole = above+a, whole+b
			}
		}
	}
	return above / whole
}

// cpuAbove is the area of the CPU of truth above that of a forecast, and below truth.
func cpuAbove(truth, forecast []cluster.Phase) (above, whole float64) {
	at := time.Duration(0)
	for _, p := range truth {
		whole += float64(p.Demand[resource.CPU]) * p.Duration.Seconds()
		below := 0.0
		for _, f := range Between(forecast, at, at+p.Duration) {
			below += float64(min(f.Demand[resource.CPU], p.Demand[resource.CPU])) * f.Duration.Seconds()
		}
		above += float64(p.Demand[resource.CPU])*p.Duration.Seconds() - below
		at += p.Duration
	}
	return above, whole
}
