package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// waits returns how long the tasks of a stage waited after the stage became ready, ascending. The workload is Mira's
// micro-benchmark: n concurrent tasks of 10 s on 14 nodes with room for eight tasks each.
func waits(t *testing.T, a sim.Acquisition, n int, stage int32) []time.Duration {
	t.Helper()
	wave := func(name string) cluster.Stage {
		return cluster.Stage{Name: name, Tasks: n, Ideal: resource.Of(resource.Core, GB), Duration: 10 * time.Second}
	}
	first, second := wave("first"), wave("second")
	second.Parents = []int{0}
	c := sim.Config{Nodes: sim.Uniform(14, resource.Of(8*resource.Core, 8*GB)), KeepTasks: true}
	a.Apply(&c)
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := sim.Run(c,
		&workload.Workload{Jobs: []workload.Job{{After: -1,
			Job: cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{first, second}}}}}, p)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Jobs[0].Done {
		t.Fatalf("the job does not end: %+v", res.Jobs[0])
	}
	var all []time.Duration
	ready := time.Duration(0)
	if a.CoordinatorHeartbeat > 0 {
		stage++
	}
	for _, task := range res.Tasks {
		switch {
		case task.Coordinator && stage == 1:
			ready = time.Duration(task.Launched)
		case task.ID.Stage == stage-1 && !task.Coordinator:
			ready = max(ready, time.Duration(task.Finished))
		}
	}
	for _, task := range res.Tasks {
		if task.ID.Stage == stage {
			all = append(all, time.Duration(task.Launched)-ready)
		}
	}
	slices.Sort(all)
	return all
}

// The presets are compared with Mira's measurements (section II.A, Fig. 3; IV.B, Fig. 10). On YARN the last of 110
// executors comes too early: there Spark requests the next executors only later, and waits for their heartbeats one
// after the other.
func TestAcquisitionPresetsBesideMira(t *testing.T) {
	for _, c := range []struct {
		preset                    sim.Acquisition
		name                      string
		first, lastOf2, lastOf110 float64 // seconds, measured
		within                    float64 // share
	}{
		{sim.YARN(), "yarn", 3.2, 5.3, 15.6, 0.3},
		{sim.SparkStandalone(), "spark-standalone", 2.46, 3.2, 9.6, 0.15},
		{sim.Bellows(), "bellows", 1.1, 1.1, 1.1, 0.01},
	} {
		two, many := waits(t, c.preset, 2, 0), waits(t, c.preset, 110, 0)
		for _, m := range []struct {
			what     string
			is       time.Duration
			measured float64
		}{{"first", two[0], c.first}, {"last of 2", two[1], c.lastOf2}, {"last of 110", many[109], c.lastOf110}} {
			t.Logf("%s: %s after %.2f s, measured %.2f s", c.name, m.what, m.is.Seconds(), m.measured)
			if off := m.is.Seconds()/m.measured - 1; off < -c.within || off > c.within {
				t.Errorf("%s: %s after %v, measured %v s", c.name, m.what, m.is, m.measured)
			}
		}
	}
}

// Executors of the first wave serve the second: on bellows within 36 ms, on Spark without a restart.
func TestWarmExecutors(t *testing.T) {
	if w := waits(t, sim.Bellows(), 110, 1); w[0] != 36*time.Millisecond || w[109] != 36*time.Millisecond {
		t.Errorf("on warm executors tasks wait %v to %v", w[0], w[109])
	}
	if w := waits(t, sim.SparkStandalone(), 110, 1); w[109] != 10*time.Millisecond {
		t.Errorf("on the job's own executors tasks wait up to %v", w[109])
	}
	cold := sim.Bellows()
	cold.Startup.Keep = 0
	if w := waits(t, cold, 110, 1); w[0] != 1100*time.Millisecond {
		t.Errorf("without idle executors tasks wait %v", w[0])
	}
}

// An executor that is given back is handed over before it serves again, also if the same job gets it back.
func TestHandover(t *testing.T) {
	stage := cluster.Stage{Tasks: 2, Ideal: resource.Of(resource.Core, GB), Duration: 10 * time.Second}
	after := stage
	after.Parents = []int{0}
	wide := stage
	wide.Tasks = 3
	c := sim.Config{Nodes: sim.Uniform(2, resource.Of(resource.Core, GB)),
		Startup: sim.Startup{Executor: 5 * time.Second, Handover: time.Second, Keep: time.Hour, Shared: true}}
	// The third task of the first stage and one of the second go on at once, on the first executor. The other one is
	// given back in between.
	r := simulate(t, c, "mira", workload.Job{After: -1, Job: cluster.Job{ID: 1, Stages: []cluster.Stage{wide, after}}})
	wantEnds(t, r, seconds(15, 15, 25, 35, 36)...)
}

// Jobs share executors only where they may, and idle executors end after a while.
func TestWhoseExecutors(t *testing.T) {
	node := sim.Uniform(1, vector(1, 8, 0, 0))
	a := sim.Acquisition{Startup: sim.Startup{Container: time.Second, Executor: 4 * time.Second, Warm: time.Second,
		Keep: 30 * time.Second}}
	run := func(shared bool, keep time.Duration) *sim.Result {
		c := sim.Config{Nodes: node}
		a.Startup.Shared, a.Startup.Keep = shared, keep
		a.Apply(&c)
		return simulate(t, c, "fifo", oneStage(1, 2, workload.StageTruth{}), oneStage(2, 1, workload.StageTruth{}))
	}
	wantEnds(t, run(false, 30*time.Second), 105*time.Second, 206*time.Second, 311*time.Second)
	wantEnds(t, run(true, 30*time.Second), 105*time.Second, 206*time.Second, 307*time.Second)
	wantEnds(t, run(true, 0), 105*time.Second, 210*time.Second, 315*time.Second)
}

// Two jobs of one task each, 10 s and 1 GB, are submitted at 0 s and at 20 s on one node. The executor of the first
// holds its memory until it ends, or until the second job takes it over; that of the second holds its memory to the
// end of the simulation, which is at once.
func TestIdleExecutorsHoldMemory(t *testing.T) {
	stage := cluster.Stage{Tasks: 1, Ideal: resource.Of(resource.Core, GB), Duration: 10 * time.Second}
	job := func(id cluster.JobID, at time.Duration) workload.Job {
		return workload.Job{After: -1, Job: cluster.Job{ID: id, Submitted: timeline.Time(at), Stages: []cluster.Stage{stage}}}
	}
	for _, c := range []struct {
		name   string
		keep   time.Duration
		shared bool
		lost   time.Duration // of the node; another one joins
		idle   float64       // GB-seconds
	}{
		{"they end with their tasks", 0, true, 0, 0},
		{"it ends before the second job comes", 5 * time.Second, true, 0, 5},
		{"the second job takes it over", time.Minute, true, 0, 10},
		{"the second job has its own", time.Minute, false, 0, 20},
		{"its node is lost", time.Minute, true, 14 * time.Second, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := sim.Config{Nodes: sim.Uniform(1, resource.Of(4*resource.Core, 4*GB)),
				Startup: sim.Startup{Keep: c.keep, Shared: c.shared}}
			if c.lost > 0 {
				config.Incidents = []sim.Incident{{At: c.lost, Kind: sim.NodeLoss},
					{At: c.lost, Kind: sim.NodeJoin, New: cluster.Node{Name: "other", Capacity: resource.Of(4*resource.Core, 4*GB)}}}
			}
			r := simulate(t, config, "fifo", job(1, 0), job(2, 20*time.Second))
			if got := r.IdleExecutors / float64(GB); got != c.idle {
				t.Errorf("idle executors held %v GB-seconds, want %v", got, c.idle)
			}
		})
	}
}
