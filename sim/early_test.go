package sim

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// Of two maps one ends at 10s and one at 30s. A reduce that starts after half of them shuffles from 10s until 15s,
// waits until 30s without using anything but its memory, and reduces for 10s. One without phases waits with its end.
// One that shuffles for long waits for nobody.
func TestTasksThatStartEarlyWait(t *testing.T) {
	phases := func(lasts ...time.Duration) (all []cluster.Phase) {
		for _, d := range lasts {
			all = append(all, cluster.Phase{Duration: d * time.Second,
				Demand: resource.Of(resource.Core, testGB).With(resource.Disk, 10*testMB)})
		}
		return all
	}
	for _, c := range []struct {
		name         string
		share        float64
		phases       []cluster.Phase
		starts, ends float64
	}{
		{"after all maps", 0, phases(5, 10), 30, 45},
		{"after half of them", 0.5, phases(5, 10), 10, 40},
		{"after more than half", 0.6, phases(5, 10), 30, 45},
		{"a long shuffle", 0.5, phases(25, 10), 10, 45},
		{"without phases", 0.5, nil, 10, 30},
	} {
		maps := cluster.Stage{Name: "map", Tasks: 2, Ideal: resource.Of(resource.Core, testGB), Duration: 20 * time.Second}
		reduce := cluster.Stage{Name: "reduce", Tasks: 1, Ideal: maps.Ideal, Parents: []int{0}, Phases: c.phases,
			StartShare: c.share}
		if c.phases == nil {
			reduce.Duration = 12 * time.Second
		}
		job := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{maps, reduce}},
			Truth: []workload.StageTruth{{Duration: workload.ForEach([]time.Duration{10 * time.Second, 30 * time.Second})}, {}}}
		fifo, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Nodes: Uniform(1, resource.Vector{4 * resource.Core, 8 * testGB, 100 * testMB}), KeepTasks: true}
		config.Series.Nodes = true
		r, err := Run(config, &workload.Workload{Jobs: []workload.Job{job}}, fifo)
		if err != nil || len(r.Unfinished())+len(r.Failures()) > 0 {
			t.Fatal(c.name, err, r)
		}
		for _, task := range r.Tasks {
			if task.ID.Stage == 1 && (task.Launched != timeline.Seconds(c.starts) || task.Finished != timeline.Seconds(c.ends)) {
				t.Errorf("%s: the reduce runs from %v to %v, want %v to %v s", c.name, task.Launched, task.Finished, c.starts,
					c.ends)
			}
		}
		if c.name != "after half of them" {
			continue
		}
		// Meanwhile it uses nothing but its memory.
		for i, step := range r.Nodes[0].Steps {
			if step.At == timeline.Seconds(15) {
				if used := step.Used; used[resource.CPU] != resource.Core || used[resource.Memory] != 2*testGB ||
					used[resource.Disk] != 0 {
					t.Errorf("%s: step %d: %v is used while it waits", c.name, i, used)
				}
			}
		}
	}
}

// A reduce that waits can be ended, and runs again when it is its turn: another one that waits goes on.
func TestTaskThatWaitsIsLost(t *testing.T) {
	maps := cluster.Stage{Name: "map", Tasks: 1, Ideal: resource.Of(resource.Core, testGB), Duration: 30 * time.Second}
	reduce := cluster.Stage{Name: "reduce", Tasks: 2, Ideal: maps.Ideal, Parents: []int{0}, StartShare: 0.001,
		Phases: []cluster.Phase{{Duration: 5 * time.Second, Demand: maps.Ideal}, {Duration: 10 * time.Second,
			Demand: maps.Ideal}}}
	maps.Tasks = 2
	job := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "j", MaxAttempts: 2,
		Stages: []cluster.Stage{maps, reduce}},
		Truth: []workload.StageTruth{{Duration: workload.ForEach([]time.Duration{5 * time.Second, 30 * time.Second})}, {}}}
	fifo, err := policy.New("fifo", nil)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Nodes: Uniform(2, resource.Of(2*resource.Core, 2*testGB)), KeepTasks: true,
		Incidents: []Incident{{At: 20 * time.Second, Kind: NodeLoss, Node: 1}}}
	r, err := Run(config, &workload.Workload{Jobs: []workload.Job{job}}, fifo)
	if err != nil || len(r.Unfinished())+len(r.Failures()) > 0 {
		t.Fatal(err, r)
	}
	last := timeline.Time(0)
	for _, task := range r.Tasks {
		last = max(last, task.Finished)
	}
	if len(r.Tasks) < 5 || last < timeline.Seconds(40) {
		t.Errorf("%d runs, the last until %v", len(r.Tasks), last)
	}
}

// A map is lost, and reduces that wait for it hold all that is left: the newest makes room, and no more than one.
func TestTaskThatWaitsMakesRoom(t *testing.T) {
	maps := cluster.Stage{Name: "map", Tasks: 2, Ideal: resource.Of(resource.Core, testGB), Duration: 30 * time.Second}
	reduce := cluster.Stage{Name: "reduce", Tasks: 3, Ideal: maps.Ideal, Parents: []int{0}, StartShare: 0.5,
		Phases: []cluster.Phase{{Duration: 5 * time.Second, Demand: maps.Ideal}, {Duration: 10 * time.Second,
			Demand: maps.Ideal}}}
	for _, name := range []string{"fifo", "fair", "drf", "ecs"} {
		job := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "j", MaxAttempts: 1,
			Stages: []cluster.Stage{maps, reduce}},
			Truth: []workload.StageTruth{{Duration: workload.ForEach([]time.Duration{5 * time.Second, 30 * time.Second})}, {}}}
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		config := Config{Nodes: Uniform(2, resource.Of(2*resource.Core, 2*testGB)), KeepTasks: true}
		preempted := 0
		config.Observe = func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
			for i := range decisions {
				if d := &decisions[i]; d.Preempt && d.Reason.Code == cluster.WaitsForRetry {
					preempted++
				}
			}
		}
		// Both maps start on the first node. When it is lost, the second has two reduces.
		config.Incidents = []Incident{{At: 20 * time.Second, Kind: NodeLoss, Node: 0}}
		r, err := Run(config, &workload.Workload{Jobs: []workload.Job{job}}, p)
		if err != nil || len(r.Unfinished())+len(r.Failures()) > 0 {
			t.Fatal(name, err, r)
		}
		if preempted != 1 {
			t.Errorf("%s: %d tasks made room", name, preempted)
		}
	}
}

// A reduce starts on a node that has not changed, when the share of the maps has ended that it needs.
func TestTaskStartsEarlyElsewhere(t *testing.T) {
	maps := cluster.Stage{Name: "map", Tasks: 2, Ideal: resource.Of(resource.Core, testGB), Duration: 30 * time.Second}
	reduce := cluster.Stage{Name: "reduce", Tasks: 1, Ideal: resource.Of(resource.Core, 3*testGB), Parents: []int{0},
		StartShare: 0.5, Duration: 10 * time.Second}
	for _, name := range policy.Names() {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		job := workload.Job{After: -1, Job: cluster.Job{ID: 1, Name: "j", Stages: []cluster.Stage{maps, reduce}},
			Truth: []workload.StageTruth{{Duration: workload.ForEach([]time.Duration{5 * time.Second, 30 * time.Second})}, {}}}
		nodes := Uniform(2, resource.Of(2*resource.Core, 2*testGB))
		nodes[1].Capacity = resource.Of(resource.Core, 3*testGB)
		r, err := Run(Config{Nodes: nodes, KeepTasks: true}, &workload.Workload{Jobs: []workload.Job{job}}, p)
		if err != nil {
			t.Fatal(name, err)
		}
		for _, task := range r.Tasks {
			// mira divides executors when what it counts of a job changes, which a share of a stage does not.
			if task.ID.Stage == 1 && task.Launched > timeline.Seconds(15) && name != "mira" {
				t.Errorf("%s: the reduce starts at %v", name, task.Launched)
			}
		}
	}
}
