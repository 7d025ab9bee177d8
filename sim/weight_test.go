package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// phasedJob is a job of one task: what it is forecast to demand, and what it really does.
func phasedJob(id int, ideal resource.Amount, forecast, truth []cluster.Phase) workload.Job {
	return workload.Job{After: -1, Job: cluster.Job{ID: cluster.JobID(id), Name: fmt.Sprint("job", id),
		Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(ideal, testGB), Phases: forecast}}},
		Truth: []workload.StageTruth{{Phases: workload.ForAll(truth)}}}
}

// demands is a phase with a demand of CPU.
func demands(cpu resource.Amount, lasts time.Duration) cluster.Phase {
	return cluster.Phase{Duration: lasts, Demand: resource.Of(cpu, testGB)}
}

// Two tasks really use three of four cores for a minute. The first is forecast to use one core for 20 s, the second
// all the time. With a quota they do not get more. With a weight, both get two cores for 20 s. Then the first is
// granted three cores, and gets them, until it ends; from then on the second is alone, and gets three.
func TestGrantIsAWeight(t *testing.T) {
	for cpu, want := range map[string][2]float64{"quota": {20 + 60 - 20./3, 180},
		"weight": {20 + 60 - 40./3, 20 + 140./3 + 60 - 40./3 - 140./9}} {
		for _, lends := range []bool{false, true} {
			c := Config{Nodes: Uniform(1, resource.Of(4*resource.Core, 8*testGB)), Caps: resource.KindsOf(resource.CPU),
				Lends: lends, KeepTasks: true}
			used := []cluster.Phase{demands(3*resource.Core, time.Minute)}
			w := &workload.Workload{Jobs: []workload.Job{
				phasedJob(1, 3*resource.Core, []cluster.Phase{demands(resource.Core, 20*time.Second),
					demands(3*resource.Core, 40*time.Second)}, used),
				phasedJob(2, 3*resource.Core, []cluster.Phase{demands(resource.Core, 100*time.Second)}, used)}}
			p, err := policy.New("ecs", map[string]string{"ecs.cpu": cpu, "ecs.short": "false", "ecs.leveling": "false"})
			if err != nil {
				t.Fatal(err)
			}
			res, err := Run(c, w, p)
			if err != nil {
				t.Fatal(err)
			}
			for i, end := range want {
				if got := res.Tasks[i].Finished; time.Duration(got-timeline.Seconds(end)).Abs() > time.Microsecond {
					t.Errorf("%s, lends %v: task %d ends at %v, want %v s", cpu, lends, i+1, got, end)
				}
			}
		}
	}
}

// Whatever tasks are forecast to use and really use: where grants are weights, no task gets less of the cores than it
// is granted, or than its share where more is granted than there is, unless it uses less; and none uses more than its
// stage requests.
func TestWeightsKeepGrants(t *testing.T) {
	beyond, crowded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.IntRange(1, 4).Draw(t, "cores")
		c := Config{Nodes: Uniform(rapid.IntRange(1, 2).Draw(t, "nodes"), resource.Of(resource.Amount(cores)*resource.Core,
			64*testGB)), Caps: resource.KindsOf(resource.CPU), Lends: true}
		phases := func(what string) (all []cluster.Phase) {
			for range rapid.IntRange(1, 3).Draw(t, what) {
				all = append(all, demands(resource.Amount(rapid.IntRange(1, 4*cores).Draw(t, "quarters"))*resource.Core/4,
					time.Duration(rapid.IntRange(1, 30).Draw(t, "lasts"))*time.Second))
			}
			return all
		}
		w := &workload.Workload{}
		for i := range rapid.IntRange(1, 10).Draw(t, "jobs") {
			ideal := resource.Amount(rapid.IntRange(1, 4*cores).Draw(t, "ideal")) * resource.Core / 4
			w.Jobs = append(w.Jobs, phasedJob(i+1, ideal, phases("forecast"), phases("truth")))
		}
		p, err := policy.New("ecs",
			map[string]string{"ecs.cpu": "weight", "ecs.short": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "short"),
				"ecs.threshold": "0", "ecs.interval": "1s"})
		if err != nil {
			t.Fatal(err)
		}
		r, err := newRun(c, w, p)
		if err != nil {
			t.Fatal(err)
		}
		r.audit = func(here *node) {
			granted := resource.Amount(0)
			for _, task := range here.tasks {
				if task.flow == nil || !task.flow.held {
					granted += task.grant[resource.CPU]
				}
			}
			if here.crowded {
				crowded++
			}
			share := min(1, float64(here.capacity[resource.CPU])/float64(granted))
			for _, task := range here.tasks {
				f := task.flow
				if f == nil || f.held || task.ending != 0 {
					continue
				}
				const rounding = 0.01 // demands are whole millicores
				grant, wants := float64(task.grant[resource.CPU]), float64(f.whole[resource.CPU])
				if gets := f.pace * wants; gets < min(wants, grant*share)*(1-rounding) ||
					gets > float64(task.job.Stages[0].Ideal[resource.CPU])*(1+rounding) {
					t.Fatalf("at %v task %v of grant %v gets %v of %v millicores, of a node that has granted %v", r.now, task.id,
						grant, gets, wants, granted)
				} else if gets > grant*(1+rounding) {
					beyond++
				}
			}
		}
		playToEnd(t, r)
	})
	if t.Logf("%d times beyond a grant, %d times crowded", beyond, crowded); beyond == 0 || crowded == 0 {
		t.Error("nothing was tested")
	}
}
