package sim_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// The result of a run does not depend on whether tasks that have ended are kept: with phases and without, killed or
// not, with heartbeats and without.
func TestForgettingTasksChangesNothing(t *testing.T) {
	o := workload.DefaultGenerateOptions(workload.Uniform)
	o.Jobs, o.Tasks.Max = 40, 60
	w, err := workload.Generate(workload.Uniform, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.MaxAttempts = 3
		d := j.Stages[0].Duration
		if i%2 == 0 {
			j.Truth = []workload.StageTruth{{Phases: workload.ForAll([]cluster.Phase{
				{Duration: d / 3, Demand: resource.Of(resource.Core, j.Stages[0].Ideal[resource.Memory]/2)},
				{Duration: d, Demand: resource.Of(resource.Core, j.Stages[0].Ideal[resource.Memory]).With(resource.Disk,
					50*resource.MB)}})}}
		}
	}
	w.SetPenalty(cluster.Elasticity{Kind: cluster.SawTooth, Factor: 2, DiskRate: 20 * resource.MB},
		workload.DefaultMinShare, workload.DefaultGranularity)
	for _, name := range policy.Names() {
		for _, beats := range []struct{ node, coordinator time.Duration }{{0, 0}, {time.Second, 0},
			{time.Second, time.Second}} {
			run := func(keep bool) *sim.Result {
				p, err := policy.New(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				c := sim.Config{Nodes: sim.Uniform(5, vector(16, 32, 400, 0)), Heartbeat: beats.node,
					CoordinatorHeartbeat: beats.coordinator, KillDelay: time.Second, KeepTasks: keep,
					Machine: sim.Machine{Swap: resource.GB, Paging: sim.SSDPaging}}
				r, err := sim.Run(c, w, p)
				if err != nil {
					t.Fatal(err)
				}
				r.Tasks = nil
				return r
			}
			if forgotten, kept := run(false), run(true); !reflect.DeepEqual(forgotten, kept) {
				t.Errorf("%s, heartbeats %v: %+v, with tasks kept %+v", name, beats, forgotten, kept)
			}
		}
	}
}
