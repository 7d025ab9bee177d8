package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// A simulated task that runs out of memory pauses before each further attempt, also when nothing else is to happen.
// With heartbeats the pause begins when the node reports the end, and nodes that have left heartbeats out report
// again when it is over.
func TestPausesBetweenAttempts(t *testing.T) {
	for _, c := range []struct {
		heartbeat, coordinator time.Duration
		want                   []timeline.Time // when the attempts begin
	}{
		{0, 0, []timeline.Time{0, timeline.Seconds(10.5), timeline.Seconds(31.5)}},
		{time.Second, 0, []timeline.Time{0, timeline.Seconds(12), timeline.Seconds(35)}},
		{time.Second, time.Second, []timeline.Time{timeline.Seconds(3), timeline.Seconds(17), timeline.Seconds(42)}},
	} {
		w := &workload.Workload{Jobs: []workload.Job{{After: -1,
			Truth: []workload.StageTruth{{IdealMemory: workload.ForAll(2 * testGB)}},
			Job: cluster.Job{ID: 1, Name: "grows", MaxAttempts: 3, RetryDelay: 10500 * time.Millisecond,
				Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, testGB),
					Duration: 8 * time.Second}}}}}}
		p, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(Config{KeepTasks: true, Nodes: Uniform(1, resource.Of(resource.Core, 4*testGB)),
			Heartbeat: c.heartbeat, CoordinatorHeartbeat: c.coordinator}, w, p)
		if err != nil {
			t.Fatal(err)
		}
		var began []timeline.Time
		for i := range r.Tasks {
			if !r.Tasks[i].Coordinator {
				began = append(began, r.Tasks[i].Launched)
			}
		}
		if !slices.Equal(began, c.want) || r.Jobs[0].OutOfMemory != 3 || !r.Jobs[0].Failed {
			t.Errorf("heartbeats %v and %v: the attempts begin at %v, want %v; %+v", c.heartbeat, c.coordinator, began, c.want,
				r.Jobs[0])
		}
	}
}
