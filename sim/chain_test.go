package sim_test

import (
	"io"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// A job that waits for another job is submitted when that job ends. With this many jobs, a scan of all jobs at each end
// would take minutes.
func TestManyJobsThatWaitForOthers(t *testing.T) {
	const jobs, perNode = 100_000, 100
	w := &workload.Workload{}
	for i := range jobs {
		j := workload.Job{After: i - perNode, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: "j", Stages: []cluster.Stage{
			{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, GB), Duration: time.Second}}}}
		j.After = max(j.After, -1)
		w.Jobs = append(w.Jobs, j)
	}
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, resource.Of(perNode*resource.Core, perNode*GB))}, w, p)
	if err != nil {
		t.Fatal(err)
	}
	for i := range res.Jobs {
		if want := time.Duration(i/perNode+1) * time.Second; !res.Jobs[i].Done || time.Duration(res.Jobs[i].Ended) != want {
			t.Fatalf("job %d ended at %v (%v), want %v", i, res.Jobs[i].Ended, res.Jobs[i].Done, want)
		}
	}
}

// A job that is behind parts of a recording is submitted when the last job of these parts has ended, at its own time at
// the earliest. A part without jobs holds nobody back, and neither does one whose jobs fail.
func TestPartsOfARecording(t *testing.T) {
	job := func(lasts time.Duration, at timeline.Time, part int, behind ...int) workload.Job {
		return workload.Job{After: -1, Part: part, Behind: behind, Job: cluster.Job{Name: "j", Submitted: at,
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, GB), Duration: lasts}}}}
	}
	second := timeline.Time(time.Second)
	w := &workload.Workload{Jobs: []workload.Job{
		job(time.Second, 0, 1), job(5*time.Second, 0, 1), job(2*time.Second, 0, 2), job(time.Second, 0, 3, 1, 2),
		job(time.Second, 0, 0, 2, 3), job(time.Second, 30*second, 0, 2), job(time.Second, 4*second, 0, 9)}}
	for i := range w.Jobs {
		w.Jobs[i].ID = cluster.JobID(i + 1)
	}
	failing := &w.Jobs[2] // of part 2: it needs more than it gets
	failing.Truth = []workload.StageTruth{{IdealMemory: workload.ForAll[resource.Amount](2 * GB)}}
	p, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, resource.Of(99*resource.Core, 99*GB))}, w, p)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Jobs[2].Failed {
		t.Errorf("the job that needs more than it gets: %+v", res.Jobs[2])
	}
	for i, want := range map[int]timeline.Time{0: 0, 3: 5 * second, 4: 6 * second, 5: 30 * second, 6: 4 * second} {
		if got := &res.Jobs[i]; !got.Done || got.Submitted != want || got.Started != want {
			t.Errorf("job %d is submitted at %v and starts at %v (done %v), want %v", i+1, got.Submitted, got.Started, got.Done,
				want)
		}
	}
	if err := workload.Write(io.Discard, w, workload.Header{}); err == nil {
		t.Error("a file holds what it does not have")
	}
}
