package advise

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

// The ways in which memory is reserved that are simulated beside each other.
const (
	asAsked   = "boxes as asked"
	ofPeaks   = "boxes of the peaks"
	asLearned = "learned, and grows"
)

// attempts is how often a task may run in the simulation: one whose first attempt ends for want of memory runs again.
const attempts = 4

// patience is the share of its run time for which a task may stand still before that counts.
const patience = 0.1

// course is what a way does over time.
type course struct {
	way  way
	runs []ran // one for each task that ended, in the order of their starts
}

// ran is how a task went in a simulation.
type ran struct {
	task              *task
	submitted         timeline.Time
	started, ended    timeline.Time
	reserved          resource.Amount
	failures          int
	failed, stoodLong bool
}

// way is the outcome of a way to reserve memory.
type way struct {
	Name     string  `json:"name" doc:"how memory is reserved"`
	Makespan float64 `json:"makespan_s" doc:"from the first submission to the last end"`
	Wait     float64 `json:"mean_wait_s" doc:"from submission to start, mean over the tasks"`
	AtOnce   float64 `json:"tasks_at_once" doc:"tasks that ran at a time, mean over the time in which others waited; if none ever did, the most"`
	Failures int     `json:"failed_attempts" doc:"attempts that ended for want of memory"`
	Stood    int     `json:"stood_still" doc:"tasks that stood still for more than a tenth of their run time, because others needed the memory"`
	Lost     int     `json:"failed_tasks" doc:"tasks that did not end well in any attempt"`
	Wasted   float64 `json:"wasted_gbh" doc:"memory reserved and not used × time: 1e9 bytes × hours"`
	Error    string  `json:"error,omitempty" doc:"why it cannot be simulated"`
}

// jobs returns the tasks as jobs of their own, with memory reserved in a way.
func (r *record) jobs(name string) *workload.Workload {
	w, most := &workload.Workload{Jobs: make([]workload.Job, len(r.tasks))}, r.peaks()
	for i := range r.tasks {
		t := &r.tasks[i]
		stage := cluster.Stage{Name: t.app.Stage, Tasks: 1, Duration: t.ran, Input: t.input,
			Ideal: resource.Of(t.cpus, t.needs())}
		j := workload.Job{After: -1, Part: t.part, Behind: t.behind, Job: cluster.Job{ID: cluster.JobID(i + 1),
			Name: t.app.Name, Owner: t.app.Owner, App: appName(t.app), Submitted: t.submitted, MaxAttempts: attempts}}
		switch name {
		case ofPeaks:
			stage.Ideal[resource.Memory] = most[t.app]
		case asLearned:
			stage.MaxMemory = r.limit(t)
			stage.Ideal[resource.Memory] = min(cluster.FirstReservation, stage.MaxMemory)
			j.Class, j.Reserve = cluster.Flex, cluster.ReserveLearned
			j.Truth = []workload.StageTruth{{Duration: workload.ForAll(t.ran),
				Phases: workload.ForAll(t.phasesWith(t.cpus))}}
		}
		j.Stages = []cluster.Stage{stage}
		w.Jobs[i] = j
	}
	return w
}

// appName is an application in one name, since each task is a job of one stage.
func appName(a profile.App) string {
	if a.Stage == "" {
		return a.Name
	}
	return cluster.NameFor(a.Name + ": " + a.Stage)
}

// limit is what a task may grow to: what it asked for, or the node where the record does not say that.
func (r *record) limit(t *task) resource.Amount {
	if t.asked == 0 {
		return r.machine.Node[resource.Memory]
	}
	return t.needs()
}

// phasesWith returns the phases of a task that keeps what it asked for of CPU busy.
func (t *task) phasesWith(cpus resource.Amount) []cluster.Phase {
	all := slices.Clone(t.phases)
	if len(all) == 0 {
		all = []cluster.Phase{{Duration: t.ran, Demand: resource.Vector{}.With(resource.Memory, t.peak)}}
	}
	for i := range all {
		all[i].Demand[resource.CPU] = cpus
	}
	return all
}

// peaks returns the largest peak of each application.
func (r *record) peaks() map[profile.App]resource.Amount {
	most := map[profile.App]resource.Amount{}
	for i := range r.tasks {
		t := &r.tasks[i]
		most[t.app] = max(most[t.app], t.peak)
	}
	return most
}

// simulate plays the tasks again under a policy, with memory reserved in a way.
func (r *record) simulate(c trial.Contender, name string, swap resource.Amount) course {
	out := course{way: way{Name: name}}
	config := sim.Config{Nodes: sim.Uniform(r.machine.Nodes, r.machine.Node), KeepTasks: true, Lends: true}
	if name == asLearned {
		// Run times are recorded: there is no need for regressions of them, which take longer than all the rest.
		config.History = &profile.History{Rows: []string{}}
		config.Machine, _ = sim.MachineOf("measured")
		config.Machine.Swap, config.Machine.SwapSpeed = swap, 0
	}
	t, err := c.On(config, r.jobs(name))
	var result *sim.Result
	if err == nil {
		result, err = t.Run()
	}
	if err == nil {
		if left := result.Unfinished(); len(left) > 0 {
			err = fmt.Errorf("%s: task %d does not end: %s", left[0].Name, left[0].ID, left[0].Stuck)
		}
	}
	if err != nil {
		out.way.Error = err.Error()
		return out
	}
	out.of(r, result)
	return out
}

// of takes in the result of a simulation.
func (c *course) of(r *record, result *sim.Result) {
	c.runs = make([]ran, len(r.tasks))
	for i := range result.Jobs {
		j := &result.Jobs[i]
		stood := float64(j.Suspended) > patience*float64(r.tasks[i].ran)
		c.runs[i] = ran{task: &r.tasks[i], submitted: j.Submitted, started: j.Started, ended: j.Ended,
			failures: j.OutOfMemory + j.ManagerKills, failed: j.Failed, stoodLong: stood}
	}
	for i := range result.Tasks { // of several attempts the last one counts
		t := &result.Tasks[i]
		run := &c.runs[t.ID.Job-1]
		run.started, run.reserved = t.Launched, t.Memory
	}
	w := &c.way
	w.Makespan = result.Makespan.Seconds()
	for i := range c.runs {
		run := &c.runs[i]
		w.Wait += run.started.Sub(run.submitted).Seconds() / float64(len(c.runs))
		w.Failures += run.failures
		if run.stoodLong {
			w.Stood++
		}
		if run.failed {
			w.Lost++
		}
		w.Wasted += wasted(run.task, run.reserved, run.ended.Sub(run.started))
	}
	w.AtOnce = c.atOnce()
	slices.SortStableFunc(c.runs, func(a, b ran) int { return cmp.Compare(a.started, b.started) })
}

const gigabyteHours = 1e9 * 3600 // byte-seconds

// wasted is what was reserved for a task beyond what it used, GB·h.
func wasted(t *task, reserved resource.Amount, lasted time.Duration) (gbh float64) {
	for _, p := range profile.Lasting(t.phasesWith(0), lasted) {
		gbh += float64(max(0, reserved-p.Demand[resource.Memory])) * p.Duration.Seconds() / gigabyteHours
	}
	return gbh
}

// atOnce is how many tasks ran at a time, as the mean over the time in which others waited; if none ever did, the most.
func (c *course) atOnce() float64 {
	type change struct {
		at               timeline.Time
		running, waiting int
	}
	var all []change
	for i := range c.runs {
		r := &c.runs[i]
		all = append(all, change{r.submitted, 0, 1}, change{r.started, 1, -1}, change{r.ended, -1, 0})
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	running, waiting, most := 0, 0, 0
	var area, long float64
	for i, e := range all {
		if i > 0 && waiting > 0 {
			lasted := e.at.Sub(all[i-1].at).Seconds()
			area, long = area+float64(running)*lasted, long+lasted
		}
		running, waiting = running+e.running, waiting+e.waiting
		if i+1 == len(all) || all[i+1].at != e.at {
			most = max(most, running)
		}
	}
	if long == 0 {
		return float64(most)
	}
	return area / long
}
