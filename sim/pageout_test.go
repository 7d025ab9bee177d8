package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// TestMemoryByPhase: two tasks that need 2 GB at first and 6 GB later, and one of 4 GB, on 9 GB. By their largest
// phases one runs after the other. By phase they begin together, and the second of them stops before its second
// phase, with its memory in swap. Free of charge that takes no time.
func TestMemoryByPhase(t *testing.T) {
	ends := map[string]timeline.Time{}
	for _, mode := range []string{"ideal", "phase", "paper"} {
		config := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 9*testGB)), Lends: true, KeepTasks: true}
		machine, err := MachineOf("ssd")
		if err != nil {
			t.Fatal(err)
		}
		config.Machine = machine
		config.Machine.Swap = 64 * testGB
		w := &workload.Workload{}
		for i, phases := range [][]cluster.Phase{
			{{Duration: 20 * time.Second, Demand: resource.Of(1000, 2*testGB)},
				{Duration: 20 * time.Second, Demand: resource.Of(1000, 6*testGB)}},
			{{Duration: 25 * time.Second, Demand: resource.Of(1000, 2*testGB)},
				{Duration: 20 * time.Second, Demand: resource.Of(1000, 6*testGB)}},
			{{Duration: 30 * time.Second, Demand: resource.Of(1000, 4*testGB)}},
		} {
			s := cluster.Stage{Name: "s", Tasks: 1, Ideal: resource.Of(1000, 0), Phases: phases}
			for _, p := range phases {
				s.Ideal[resource.Memory] = max(s.Ideal[resource.Memory], p.Demand[resource.Memory])
			}
			s.MaxMemory = s.Ideal[resource.Memory]
			w.Jobs = append(w.Jobs,
				workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint(i), Class: cluster.Flex,
					Stages: []cluster.Stage{s}}})
		}
		p, err := policy.New("ecs", map[string]string{"ecs.memory": mode, "ecs.short": "false"})
		if err != nil {
			t.Fatal(err)
		}
		res, err := Run(config, w, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range res.Jobs {
			if !j.Done {
				t.Errorf("%s: job %d does not succeed", mode, j.ID)
			}
			ends[mode] = max(ends[mode], j.Ended)
		}
		if mode == "phase" && res.SwappedBytes < 2*testGB || mode == "ideal" && res.SwappedBytes > 0 {
			t.Errorf("%s: %d bytes went to swap", mode, res.SwappedBytes)
		}
	}
	if !(ends["paper"] <= ends["phase"] && ends["phase"] < ends["ideal"]) {
		t.Errorf("the last job ends at %v", ends)
	}
}

// TestPageOut: the memory of a paused task goes out at the given speed, another task runs in it, and the first task
// goes on when its memory is free again and back.
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
			config := Config{Nodes: Uniform(1, resource.Of(2*resource.Core, 8*testGB)), Lends: true, KeepTasks: true,
				PageOutSpeed: c.speed, Incidents: []Incident{{At: 10 * time.Second, Kind: JobPause, Job: 1, PageOut: c.pageOut},
					{At: 50 * time.Second, Kind: JobResume, Job: 1}}}
			job := func(id cluster.JobID, lasts time.Duration) workload.Job {
				return workload.Job{After: -1,
					Job: cluster.Job{ID: id, Name: fmt.Sprint(id), Submitted: timeline.Time(id-1) * timeline.Seconds(5),
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
