package bellows

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/ecs"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

const headlineName = "bellows/headline"

// Ways to reserve memory. A box of the peak is as large as the most that the machine uses in any period, which is not
// known before.
const (
	asAsked = "boxes as asked"
	ofPeak  = "boxes of the peaks"
	learned = "learned, and grows"
)

// headliner runs a workload with memory reserved in a way. What runs teach is known of CPU, too, if history is set.
type headliner struct {
	label, way, policy string
	swap, history      bool
}

// headliners begin with what the others are compared with. Where no use is recorded, only boxes as asked run.
var headliners = []headliner{
	{"boxes as asked, drf", asAsked, "drf", true, false},
	{"boxes as asked, bellows", asAsked, "bellows", true, false},
	{"boxes of the peaks, drf", ofPeak, "drf", true, false},
	{"memory as asked, CPU learned, bellows", asAsked, "bellows", true, true},
	{"bellows", learned, "bellows", true, true},
	{"bellows, no swap", learned, "bellows", false, true},
}

// headlineSource is recorded work, and the nodes on which it runs.
type headlineSource struct {
	name  string
	nodes []cluster.Node
	// make returns the jobs of a run, which ask for the memory that they state. Jobs whose use is not recorded use what
	// they ask for.
	make     func(l *lab.Lab, run int) ([]workload.Job, error)
	recorded bool // whether use is
}

func headlineSources() []headlineSource {
	of := func(ground func(*lab.Lab, int) (sim.Config, *workload.Workload, error)) func(*lab.Lab, int) ([]workload.Job,
		error) {
		return func(l *lab.Lab, run int) ([]workload.Job, error) {
			_, w, err := ground(l, run)
			if err != nil {
				return nil, err
			}
			lab.Apart(w)
			for i := range w.Jobs {
				w.Jobs[i].Submitted = 0
			}
			return w.Jobs, nil
		}
	}
	return []headlineSource{
		{"Bitbrains", sim.Uniform(2, importer.DefaultBitbrains().Node()),
			shifts{ecs.ReadBitbrains, 24 * time.Hour, 7, 60, importer.DefaultBitbrains().Node()}.jobs, true},
		{"Google", sim.Uniform(2, importer.DefaultGoogleVMs().Node()),
			shifts{ecs.ReadGoogle, 6 * time.Hour, 4, 60, importer.DefaultGoogleVMs().Node()}.jobs, true},
		{"SWIM", sim.Uniform(5, importer.DefaultSWIM().Node()), of(swim), false},
		{"Alibaba", sim.Uniform(1, importer.DefaultAlibaba().Node()), of(alibaba), false},
	}
}

// shifts makes jobs of virtual machines: each period of a machine is a run of the same application.
type shifts struct {
	read     func(dir string) ([]workload.Job, error)
	period   time.Duration
	periods  int
	machines int             // that are drawn
	most     resource.Vector // machines that are provisioned with more are left out
}

// jobs are those of machines that are drawn, the first period of all machines first.
func (s shifts) jobs(l *lab.Lab, run int) (all []workload.Job, err error) {
	machines, err := s.read(l.Data)
	if err != nil {
		return nil, fmt.Errorf("read the recorded data: %w", err)
	}
	machines = slices.DeleteFunc(machines, func(j workload.Job) bool { return !j.Stages[0].Ideal.FitsIn(s.most) })
	r := rand.New(rand.NewPCG(l.RunSeed(run), 0x4ead))
	drawn := r.Perm(len(machines))[:s.machines]
	if l.Quick {
		drawn = drawn[:10]
	}
	for k := range s.periods {
		for _, at := range drawn {
			m := &machines[at]
			curve, _ := m.Truth[0].Phases.Of(0)
			truth := ecs.Between(curve, time.Duration(k)*s.period, time.Duration(k+1)*s.period)
			all = append(all, workload.Job{After: -1, Job: cluster.Job{Name: m.Name, App: m.Name, MaxAttempts: 4,
				Stages: []cluster.Stage{{Name: "vm", Tasks: 1, Duration: s.period, Ideal: m.Stages[0].Ideal}}},
				Truth: []workload.StageTruth{{Phases: workload.ForAll(truth)}}})
		}
	}
	return all, nil
}

// headliners are those that can run the work of s.
func (s *headlineSource) headliners() []headliner {
	if s.recorded {
		return headliners
	}
	return slices.DeleteFunc(slices.Clone(headliners), func(h headliner) bool { return h.way != asAsked || h.history })
}

// reserve returns the jobs with their memory reserved in a way. A job that used more than it had asked for has a box as
// large as its peak.
func (s *headlineSource) reserve(jobs []workload.Job, way string) *workload.Workload {
	w := &workload.Workload{Jobs: slices.Clone(jobs)}
	peaks := map[string]resource.Amount{}
	peak := func(j *workload.Job) resource.Amount {
		truth, _ := j.Truth[0].Phases.Of(0)
		return lab.UsageOf(truth).Peak[resource.Memory]
	}
	lab.Number(w)
	if !s.recorded {
		return w
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		peaks[j.App] = max(peaks[j.App], peak(j), resource.MiB)
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.Stages = slices.Clone(j.Stages)
		ideal := &j.Stages[0].Ideal[resource.Memory]
		switch way {
		case asAsked:
			*ideal = max(*ideal, peak(j))
		case ofPeak:
			*ideal = peaks[j.App]
		case learned:
			*ideal = max(*ideal, peaks[j.App])
			j.Class = cluster.Flex
			j.Learn()
		}
	}
	return w
}

// headlineOutcome is how work went while most of it was done: until a share of all task time, as recorded, had ended.
// Shares are of the memory of the nodes in that time.
type headlineOutcome struct {
	Rate     float64 `json:"rate"` // recorded task time that ended in that time, over that time
	Asked    float64 `json:"asked"`
	Reserved float64 `json:"reserved"`
	Used     float64 `json:"used"`
	CPU      float64 `json:"cpu"`     // used of that of the nodes
	Slowed   float64 `json:"slowed"`  // run time of tasks over the recorded
	Retried  int     `json:"retried"` // attempts that ended for want of memory
	Failed   int     `json:"failed"`  // jobs
}

// most is the share of the work after whose end the outcome is taken: the last jobs leave nodes empty under all.
const most = 0.8

func (h *headliner) measure(s *headlineSource, jobs []workload.Job) (o headlineOutcome, err error) {
	w := s.reserve(jobs, h.way)
	config := sim.Config{Nodes: s.nodes, KeepTasks: true, Lends: true}
	config.Series.Nodes = true
	c := lab.Contender{Contender: trial.Contender{Label: h.label, Policy: h.policy}}
	if config.Machine, err = sim.MachineOf("measured"); err != nil {
		return o, err
	}
	if h.swap {
		config.Machine.Swap = s.nodes[0].Capacity[resource.Memory]
	}
	if h.history {
		// Run times are recorded: there is no need for regressions of them.
		config.History = &profile.History{Rows: []string{}}
	}
	if h.way == learned {
		c.Flex = sim.Flex{Manager: memory.Default()}
	}
	r, err := c.ToTheEnd(config, w)
	if err != nil {
		return o, err
	}
	o.Failed = len(r.Failures())
	work, whole := make([]float64, len(w.Jobs)), 0.0
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			stage := &w.Jobs[i].Stages[k]
			work[i] += float64(stage.Tasks) * stage.RunTime().Seconds()
		}
		whole += work[i]
		o.Retried += r.Jobs[i].OutOfMemory + r.Jobs[i].ManagerKills
	}
	until := endOfMost(r, work, most*whole)
	o.Rate = most * whole / until.Sub(0).Seconds()
	o.Slowed = lab.Ran(r) / whole
	o.shares(r, jobs, until)
	return o, nil
}

// endOfMost is when jobs with the given work together had ended.
func endOfMost(r *sim.Result, work []float64, enough float64) timeline.Time {
	order := make([]int, len(r.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.Jobs[a].Ended, r.Jobs[b].Ended) })
	done := 0.0
	for _, i := range order {
		if done += work[i]; done >= enough {
			return r.Jobs[i].Ended
		}
	}
	return r.Jobs[order[len(order)-1]].Ended
}

// shares fills in what was asked for, reserved and used until a time. Jobs are numbered from 1, in their order.
func (o *headlineOutcome) shares(r *sim.Result, jobs []workload.Job, until timeline.Time) {
	var has, hasCPU float64
	for i := range r.Nodes {
		n := &r.Nodes[i]
		has += float64(n.Steps[0].Capacity[resource.Memory]) * until.Sub(0).Seconds()
		hasCPU += float64(n.Steps[0].Capacity[resource.CPU]) * until.Sub(0).Seconds()
		for k, step := range n.Steps {
			end := until
			if k+1 < len(n.Steps) {
				end = min(end, n.Steps[k+1].At)
			}
			lasts := max(0, end.Sub(step.At).Seconds())
			o.Reserved += float64(step.Granted[resource.Memory]) * lasts
			o.Used += float64(step.Used[resource.Memory]) * lasts
			o.CPU += float64(step.Used[resource.CPU]) * lasts
		}
	}
	for i := range r.Tasks {
		t := &r.Tasks[i]
		stage := &jobs[t.ID.Job-1].Stages[t.ID.Stage]
		o.Asked += float64(stage.Ideal[resource.Memory]) * max(0, min(until, t.Finished).Sub(t.Launched).Seconds())
	}
	o.Asked, o.Reserved, o.Used, o.CPU = o.Asked/has, o.Reserved/has, o.Used/has, o.CPU/hasCPU
}

func rate(o headlineOutcome) float64 { return o.Rate }

func headline(l *lab.Lab) (*lab.Findings, error) {
	sources := headlineSources()
	if l.Quick || l.Part {
		sources = sources[1:2]
	}
	table := lab.NewTable("The same machines under each way, while four fifths of the work were done (means of the runs; "+
		"work per time over boxes as asked under drf: "+lab.InPairs+")", "work", "way", "work per time", "memory asked for",
		"reserved", "used", "CPU used", "run time over recorded", "attempts that lacked memory", "jobs failed")
	data := lab.NewTable("outcomes", "source", "contender", "run", "rate", "asked", "reserved", "used", "cpu", "slowed",
		"retried", "failed")
	var v headlineVerdict
	for i := range sources {
		s := &sources[i]
		list := s.headliners()
		t, err := lab.EachRun(l, s.name, len(list), func(point, run int) (headlineOutcome, error) {
			jobs, err := s.make(l, run)
			if err != nil {
				return headlineOutcome{}, err
			}
			return list[point].measure(s, jobs)
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		for k, h := range list {
			of := func(number func(headlineOutcome) float64) float64 { return lab.Mean(lab.Values(t[k], number)) }
			more := trial.GeometricMean(lab.Ratios(lab.Values(t[k], rate), lab.Values(t[0], rate)))
			lacked := of(func(o headlineOutcome) float64 { return float64(o.Retried) })
			failed := of(func(o headlineOutcome) float64 { return float64(o.Failed) })
			table.Add(s.name, h.label, lab.Interval(more, 2),
				lab.Percent(of(func(o headlineOutcome) float64 { return o.Asked })),
				lab.Percent(of(func(o headlineOutcome) float64 { return o.Reserved })),
				lab.Percent(of(func(o headlineOutcome) float64 { return o.Used })),
				lab.Percent(of(func(o headlineOutcome) float64 { return o.CPU })),
				lab.Decimals(of(func(o headlineOutcome) float64 { return o.Slowed }), 2), lab.Decimals(lacked, 1),
				lab.Decimals(failed, 1))
			if h.way == learned && s.recorded {
				v.take(more, lacked+failed)
			}
			for run, o := range t[k] {
				data.Put(s.name, h.label, run, o.Rate, o.Asked, o.Reserved, o.Used, o.CPU, o.Slowed, o.Retried, o.Failed)
			}
		}
	}
	return &lab.Findings{Tables: []lab.Table{table}, Data: []lab.Table{data}, Claims: v.claims()}, nil
}

// headlineVerdict is what the claims are judged by.
type headlineVerdict struct {
	rows, more int     // rows of bellows on recorded work, and those with enough more work
	failures   float64 // attempts that lacked memory, and jobs that failed, in all rows
}

// moreWork is by what factor bellows is to do more work on the same machines.
const moreWork = 1.25

func (v *headlineVerdict) take(more trial.Estimate, failures float64) {
	if v.rows++; more.Mean >= moreWork && more.Low > 1 {
		v.more++
	}
	v.failures += failures
}

func (v *headlineVerdict) claims() []lab.Claim {
	return []lab.Claim{MoreWork(v.more, v.rows), NoFailure(v.failures)}
}

// MoreWork judges on how many rows bellows does enough more work.
func MoreWork(more, of int) lab.Claim {
	return Paper.Stated(headlineName, "more").Judge(fmt.Sprintf("%d of %d", more, of), of > 0 && more == of, 2*more >= of)
}

// NoFailure judges how many attempts and jobs failed, in the mean of the runs.
func NoFailure(failures float64) lab.Claim {
	return Paper.Stated(headlineName, "whole").Judge(lab.Decimals(failures, 1), failures == 0, failures <= 1)
}
