package policy_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
)

// extremes are jobs at the bounds of what a job may request.
func extremes() []*cluster.Job {
	var jobs []*cluster.Job
	least := resource.Of(cluster.LeastRunCPU, cluster.LeastRunMemory)
	most := resource.Vector{resource.MostCPU, resource.MostMemory, resource.MostMemory, resource.MostMemory}
	for _, ideal := range []resource.Vector{least, least.With(resource.Memory, resource.MostMemory),
		least.With(resource.CPU, most[resource.CPU]), most} {
		for _, tasks := range []int{1, cluster.MostRunTasks} {
			for _, duration := range []time.Duration{0, 1, cluster.LongestTime} {
				for _, e := range []cluster.Elasticity{{}, {Kind: cluster.Step, Factor: cluster.MostSlowdown},
					{Kind: cluster.SawTooth, Factor: 1.5, DiskRate: resource.MostMemory}, {Kind: cluster.SawToothTable, Factor: 1},
					{Kind: cluster.Points, Points: []cluster.ElasticityPoint{{Memory: 1, Slowdown: math.SmallestNonzeroFloat64},
						{Memory: resource.MostMemory, Slowdown: cluster.MostSlowdown}}}} {
					for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
						jobs = append(jobs, &cluster.Job{ID: cluster.JobID(len(jobs) + 1), Name: fmt.Sprint("job", len(jobs)),
							Class: class, Weight: []float64{0, math.SmallestNonzeroFloat64, cluster.MostWeight}[len(jobs)%3],
							Stages: []cluster.Stage{{Name: "s", Tasks: tasks, Ideal: ideal, MinMemory: cluster.LeastRunMemory,
								Duration: duration, Elasticity: e}}})
					}
				}
			}
		}
	}
	return jobs
}

// For every job within the bounds, each policy either rejects the job or takes a possible decision, without delay.
func TestExtremesUnderEveryPolicy(t *testing.T) {
	for _, name := range policy.Names() {
		t.Run(name, func(t *testing.T) {
			admitted := 0
			for _, j := range extremes() {
				if err := j.CheckRuns(); err != nil {
					t.Fatalf("%+v: %v", j, err)
				}
				p, err := policy.New(name, nil)
				if err != nil {
					t.Fatal(err)
				}
				e := engine.New(p, func(s *book.Snapshot) { s.ContainersPerCore = cluster.ContainersPerCore })
				node := &cluster.Node{Name: "n1", Capacity: resource.Of(4*resource.Core, 16*resource.GiB).With(resource.Disk,
					100*resource.MB)}
				if _, err := e.Step(0, cluster.Event{Kind: cluster.NodeJoined, NewNode: node},
					cluster.Event{Kind: cluster.Synced}); err != nil {
					t.Fatal(err)
				}
				if policy.CheckRuns(p, e.Snapshot(), j) != nil {
					continue
				}
				admitted++
				began := time.Now()
				decisions, err := e.Step(1, cluster.Event{Kind: cluster.JobSubmitted, Job: j.ID, NewJob: j})
				if err != nil {
					t.Fatalf("%+v: %v", j, err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%+v: deciding about it took %v", j, took)
				}
				if most := 4 * cluster.ContainersPerCore; len(e.Snapshot().Nodes[0].Tasks) > most {
					t.Errorf("%+v: %d containers are on the node, of at most %d", j, len(e.Snapshot().Nodes[0].Tasks), most)
				}
				for _, d := range decisions {
					if d.Kind != cluster.Start {
						continue
					}
					if _, err := e.Step(2, cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: d.Task}); err != nil {
						t.Fatalf("%+v: %v", j, err)
					}
					if _, err := e.Step(3, cluster.Event{Kind: cluster.TaskEnded, Task: d.Task,
						Outcome: cluster.Succeeded}); err != nil {
						t.Fatalf("%+v: %v", j, err)
					}
					break
				}
			}
			if admitted < 10 {
				t.Errorf("only %d of the jobs were admitted", admitted)
			}
		})
	}
}
