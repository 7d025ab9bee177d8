package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
	"github.com/bellows-rm/bellows/workload"
)

// TestPageOut: the memory of a paused task goes out at the given speed, another task runs in it, and the first task goes on when its
// memory is free again and back.
func TestPageOut(t *testing.T) {
	for _, c := range []struct {
		name    string
		pageOut bool
		speed   resource.Amount
		second  time.Duration // run time of the second job
		ends    [2]float64    // of the jobs, s
	}{
		{"without", false, testGB, 20 * time.Second, [2]float64{140, 160}},
		{"at once", true, 0, 20 * time.Second, [2]float64{140, 30}},
		{"slowly", true, testGB, 20 * time.Second, [2]float64{146, 36}},
		{"it waits for its memory", true, testGB, 60 * time.Second, [2]float64{172, 76}},
		{"it is turned round", true, testGB / 10, 20 * time.Second, [2]float64{140, 160}},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := Config{Nodes: Uniform(1, resource.Of(2*resource.Core, 8*testGB)), Lends: true, KeepTasks: true, PageOutSpeed: c.speed,
				Incidents: []Incident{{At: 10 * time.Second, Kind: JobPause, Job: 1, PageOut: c.pageOut}, {At: 50 * time.Second, Kind: JobResume, Job: 1}}}
			job := func(id cluster.JobID, lasts time.Duration) workload.Job {
				return workload.Job{After: -1, Job: cluster.Job{ID: id, Name: fmt.Sprint(id), Submitted: timeline.Time(id-1) * timeline.Seconds(5),
					Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, 6*testGB), Duration: lasts}}}}
			}
			p, err := policy.New("fifo", nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := Run(config, &workload.Workload{Jobs: []workload.Job{job(1, 100*time.Second), job(2, c.second)}}, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.ends {
				if got := res.Jobs[i].Ended; time.Duration(got-timeline.Seconds(want)).Abs() > time.Microsecond {
					t.Errorf("job %d ends at %v, want %v s", i+1, got, want)
				}
			}
		})
	}
}
