package sim_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// Forecasts whose demands are wrong change nothing that tasks do: under a policy blind to forecasts every time stays
// as it was. A policy that looks at them decides otherwise: of a disk of 100 MB/s, prophet first starts the reader of
// 60 MB/s, and that of 40 MB/s where all seem to read twice as fast.
func TestMisjudgedForecasts(t *testing.T) {
	reader := func(id cluster.JobID, rate float64) workload.Job {
		return oneStage(id, 1, workload.StageTruth{}, func(j *workload.Job) {
			j.Stages[0].Phases = []cluster.Phase{phase(60*time.Second, vector(1, 1, rate, 0)),
				phase(40*time.Second, vector(1, 0.5, 0, 0))}
			j.Stages[0].Duration = 0
		})
	}
	// while it runs, the others come
	first := oneStage(1, 1, workload.StageTruth{}, func(j *workload.Job) { j.Stages[0].Ideal = vector(2, 1, 0, 0) })
	jobs := []workload.Job{first, reader(2, 30), reader(3, 40), reader(4, 60)}
	wrong := workload.Misjudge(&workload.Workload{Jobs: jobs},
		workload.Misjudgement{Demand: workload.Deviation{Low: 1, High: 1}}, 1).Jobs
	c := sim.Config{Nodes: sim.Uniform(1, vector(2, 8, 100, 0)), Machine: sim.Machine{Disk: sim.HDDLoss}}
	for _, policy := range []string{"fifo", "prophet"} {
		right, misled := simulate(t, c, policy, jobs...), simulate(t, c, policy, wrong...)
		if same := reflect.DeepEqual(right.Tasks, misled.Tasks); same != (policy == "fifo") {
			t.Errorf("%s: the same: %v\n%+v\n%+v", policy, same, right.Tasks, misled.Tasks)
		}
	}
}
