package pufferfish

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/memory"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// yarnBoxes is YARN's capacity scheduler, which counts memory alone; the authors changed it (YARN 2.7.3).
var yarnBoxes = trial.Contender{Policy: "capacity"}

// yarnBox returns YARN with containers of one size.
func yarnBox(size resource.Amount) lab.Contender {
	c := lab.Contender{Contender: yarnBoxes, Box: size}
	c.Label = gigabytes(size)
	return c
}

// inFlex returns the policy pufferfish with FLEX containers, as flex has them, and settings of the policy.
func inFlex(name string, flex sim.Flex, settings map[string]string) lab.Contender {
	return lab.Contender{Contender: trial.Contender{Label: name, Policy: "pufferfish", Settings: settings}, Flex: flex}
}

// as returns Pufferfish with one of its policies (section 5.3); its nodes sample their containers every 2 s.
func as(variant string) lab.Contender {
	return inFlex(strings.ToUpper(variant), sim.Flex{Manager: memory.Variants()[variant], Look: interval}, nil)
}

var (
	// pufferfishPaper is Pufferfish with its default policy: earliest job first.
	pufferfishPaper = inFlex("Pufferfish", as("ejf").Flex, nil)
	// roomy starts a FLEX container only where twice MIN_CONT is available, as the authors' code does.
	roomy = inFlex("Pufferfish, room for two", pufferfishPaper.Flex, map[string]string{"pufferfish.room": "2"})
	// ours is bellows' memory manager with the same scheduler. It is notified of each change of a container
	// at once.
	ours = inFlex("bellows", sim.Flex{Manager: memory.Default()}, nil)
)

// rivals are the rivals of section 5.3, and ours.
var rivals = []lab.Contender{yarnBox(8 * resource.GB), yarnBox(16 * resource.GB), yarnBox(32 * resource.GB),
	yarnBox(64 * resource.GB), pufferfishPaper, ours}

// rivalTrial is the result of a rival with a workload.
type rivalTrial struct {
	Normal    []float64 `json:"normalised"` // run time / run time alone with 64 GB, of the jobs that succeeded
	Makespan  float64   `json:"makespan_s"`
	Succeeded float64   `json:"succeeded_s"` // end of the last job that succeeded
	Failed    int       `json:"failed"`
	Endless   int       `json:"endless"` // jobs left when containers were killed again and again without progress
	Memory    []float64 `json:"memory"`  // share of the cluster's memory in use, per memoryStep
	Kills     int       `json:"manager_kills"`
	Suspended float64   `json:"suspended_s"` // all containers together
	Lost      float64   `json:"lost_s"`      // lost runs, likewise
	Ran       float64   `json:"ran_s"`       // all runs, likewise
}

// memoryStep is the interval at which memory in use is recorded.
const memoryStep = time.Minute

func replay(o lab.Contender, nodes int, jobs []submission, attempts int) (t rivalTrial, err error) {
	c := pufferfishCluster(nodes)
	c.KeepTasks = true
	c.Series = sim.SeriesOptions{Resolution: memoryStep, Limit: 100_000}
	r, err := o.Run(c, inBoxes(jobs, o.Box, attempts))
	if err != nil {
		return t, err
	}
	t = rivalTrial{Endless: len(r.Unfinished()), Makespan: r.Makespan.Seconds(), Failed: len(r.Failures()),
		Kills: r.ManagerKills, Suspended: r.Suspended.Seconds(), Lost: r.LostWork.Seconds(), Ran: lab.Ran(r)}
	for i, j := range r.Jobs {
		if j.Done {
			t.Normal = append(t.Normal, j.Runtime().Seconds()/jobs[i].alone().Seconds())
			t.Succeeded = max(t.Succeeded, time.Duration(j.Ended).Seconds())
		}
	}
	for _, s := range r.Series.Samples {
		t.Memory = append(t.Memory, float64(s.Used[resource.Memory])/float64(s.Capacity[resource.Memory]))
	}
	return t, nil
}

// quantile returns a quantile of the normalised run times; a job that never ends counts as infinite.
func (t rivalTrial) quantile(share float64) float64 {
	return lab.Quantile(slices.Concat(t.Normal, slices.Repeat([]float64{math.Inf(1)}, t.Endless)), share)
}

// busy returns the mean share of memory in use while jobs are submitted.
func (t rivalTrial) busy() float64 {
	return lab.Mean(t.Memory[:min(len(t.Memory), int(hours/memoryStep))])
}

// vain returns the share of lost runs in all run time.
func (t rivalTrial) vain() float64 { return t.Lost / t.Ran }

// contest is the results of rivals with several workloads: by rival, then by workload.
type contest [][]rivalTrial

// hold simulates the workloads that make returns for 0 to runs-1 under every rival.
func hold(l *lab.Lab, part string, all []lab.Contender, nodes, attempts int, make func(run int) []submission) (contest,
	error) {
	return lab.EachRun(l, part, len(all), func(rival, run int) (rivalTrial, error) {
		return replay(all[rival], nodes, make(run), attempts)
	})
}

// of returns a number for each workload under a rival.
func (c contest) of(rival int, number func(rivalTrial) float64) []float64 {
	return lab.Values(c[rival], number)
}

// ratio returns, for each workload, a number under one rival divided by the number under another.
func (c contest) ratio(over, under int, number func(rivalTrial) float64) []float64 {
	return lab.Ratios(c.of(over, number), c.of(under, number))
}

// unsuccessful returns how many jobs do not succeed.
func unsuccessful(t rivalTrial) float64 { return float64(t.Failed + t.Endless) }

func medianTime(t rivalTrial) float64   { return t.quantile(0.5) }
func tailTime(t rivalTrial) float64     { return t.quantile(0.9) }
func medianMemory(t rivalTrial) float64 { return lab.Median(t.Memory) }
