package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Tasks of 1 s take 5 s as the first of their executor, and 2 s as the first of their stage on one that has run
// others. On a single executor two jobs run one after the other, of two stages with two tasks each.
func TestWarmthOfExecutors(t *testing.T) {
	stage := cluster.Stage{Tasks: 2, Ideal: resource.Of(resource.Core, GB), Duration: time.Second}
	second := stage
	second.Parents = []int{0}
	truth := workload.StageTruth{Fresh: []time.Duration{5 * time.Second}, First: []time.Duration{2 * time.Second}}
	job := func(id cluster.JobID) workload.Job {
		return workload.Job{After: -1, Job: cluster.Job{ID: id, Stages: []cluster.Stage{stage, second}},
			Truth: []workload.StageTruth{truth, truth}}
	}
	for _, c := range []struct {
		name    string
		startup sim.Startup
		phased  bool
		ends    []int // of the tasks, seconds
	}{
		{"a process for each task", sim.Startup{}, false, []int{5, 10, 15, 20, 25, 30, 35, 40}},
		{"executors of a job", sim.Startup{Keep: time.Hour}, false, []int{5, 6, 8, 9, 14, 15, 17, 18}},
		{"executors that jobs share", sim.Startup{Keep: time.Hour, Shared: true}, false, []int{5, 6, 8, 9, 11, 12, 14, 15}},
		{"executors that jobs share, in phases", sim.Startup{Keep: time.Hour, Shared: true}, true,
			[]int{5, 6, 8, 9, 11, 12, 14, 15}},
	} {
		a, b := job(1), job(2)
		if c.phased {
			for _, j := range []*workload.Job{&a, &b} {
				for i := range j.Truth {
					j.Truth[i].Duration = workload.ForAll(time.Second)
					j.Truth[i].Phases = workload.ForAll([]cluster.Phase{{Duration: time.Minute}, {Duration: time.Minute}})
				}
			}
		}
		t.Run(c.name, func(t *testing.T) {
			wantEnds(t, simulate(t, sim.Config{Nodes: sim.Uniform(1, resource.Of(resource.Core, GB)), Startup: c.startup},
				"fifo", a, b), seconds(c.ends...)...)
		})
	}
}

// A stage stays warm on an executor while that serves another job.
func TestWarmthThatReturns(t *testing.T) {
	long := cluster.Stage{Tasks: 3, Ideal: resource.Of(resource.Core, GB), Duration: time.Second}
	truth := []workload.StageTruth{{Fresh: []time.Duration{5 * time.Second}, First: []time.Duration{2 * time.Second}}}
	a := workload.Job{After: -1, Job: cluster.Job{ID: 1, Stages: []cluster.Stage{long}}, Truth: truth}
	b := workload.Job{After: -1, Job: cluster.Job{ID: 2, Stages: []cluster.Stage{long}}, Truth: truth}
	// Under fair sharing, the executor serves job 1, 1, 2, 1, 2, 2.
	r := simulate(t, sim.Config{Nodes: sim.Uniform(1, resource.Of(resource.Core, GB)),
		Startup: sim.Startup{Keep: time.Hour, Shared: true}}, "fair", a, b)
	wantEnds(t, r, seconds(5, 6, 8, 9, 10, 11)...)
}

// A job is warm on an executor that has run another job of the same owner and App, and not on one of another owner.
func TestWarmthOfApps(t *testing.T) {
	stage := cluster.Stage{Tasks: 2, Ideal: resource.Of(resource.Core, GB), Duration: time.Second}
	truth := []workload.StageTruth{{Fresh: []time.Duration{5 * time.Second}, First: []time.Duration{2 * time.Second}}}
	job := func(id cluster.JobID, owner, app string) workload.Job {
		return workload.Job{After: -1, Job: cluster.Job{ID: id, Owner: owner, App: app, Stages: []cluster.Stage{stage}},
			Truth: truth}
	}
	r := simulate(t, sim.Config{Nodes: sim.Uniform(1, resource.Of(resource.Core, GB)),
		Startup: sim.Startup{Keep: time.Hour, Shared: true}}, "fifo", job(1, "ann", "report"), job(2, "ann", "report"),
		job(3, "bob", "report"), job(4, "ann", "other"), job(5, "ann", "report"))
	wantEnds(t, r, seconds(5, 6, 7, 8, 10, 11, 13, 14, 15, 16)...)
}

func seconds(all ...int) (d []time.Duration) {
	for _, s := range all {
		d = append(d, time.Duration(s)*time.Second)
	}
	return d
}
