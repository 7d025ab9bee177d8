package sim_test

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
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
