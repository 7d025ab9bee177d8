package sim

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// A simulated task that runs out of memory pauses before each further attempt, also when nothing else is to happen.
func TestPausesBetweenAttempts(t *testing.T) {
	w := &workload.Workload{Jobs: []workload.Job{{After: -1, Truth: []workload.StageTruth{{IdealMemory: workload.ForAll(2 * testGB)}},
		Job: cluster.Job{ID: 1, Name: "grows", MaxAttempts: 3, RetryDelay: 10 * time.Second, Stages: []cluster.Stage{{Name: "s", Tasks: 1,
			Ideal: resource.Of(resource.Core, testGB), Duration: 8 * time.Second}}}}}}
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(Config{KeepTasks: true, Nodes: Uniform(1, resource.Of(resource.Core, 4*testGB))}, w, p)
	if err != nil {
		t.Fatal(err)
	}
	var began []timeline.Time
	for i := range r.Tasks {
		began = append(began, r.Tasks[i].Launched)
	}
	if len(began) != 3 || r.Jobs[0].OutOfMemory != 3 {
		t.Fatalf("runs began at %v, %d out of memory", began, r.Jobs[0].OutOfMemory)
	}
	for i, pause := range []time.Duration{10 * time.Second, 20 * time.Second} {
		if got := began[i+1].Sub(r.Tasks[i].Finished); got != pause {
			t.Errorf("pause %d lasts %v, want %v", i+1, got, pause)
		}
	}
}
