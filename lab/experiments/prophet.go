package experiments

import (
	"time"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/trial"
	"github.com/bellows-rm/bellows/workload"
)

// prophet has the runs of Prophet's experiments.
var prophet = map[string]run{
	"prophet/fig1": prophetFigure1, "prophet/fig3": prophetFigure3,
	"prophet/table3": prophetTable3, "prophet/fig7": prophetFigure7, "prophet/fig8": prophetFigure8, "prophet/fig11": prophetFigure11, "prophet/eta": prophetEta,
}

// Prophet's cluster (section IV.B): 16 servers of 24 cores, 32 GB, three disks of 110 MB/s and a NIC of 1 Gbit/s.
const (
	prophetServers = 16
	// prophetNetwork counts both directions of the NIC: Fig. 2 shows up to 160 MB/s, and one direction is 125 MB/s.
	prophetNetwork = 250 * resource.MB
	prophetWindow  = 1200 * time.Second // applications are submitted at random times in it
	// prophetExecutors is the number of executors of an application, which the paper does not give.
	prophetExecutors = 4
)

func prophetCluster() sim.Config {
	c := sim.Config{Nodes: sim.Uniform(prophetServers, resource.Of(24*resource.Core, 32*resource.GB).
		With(resource.Disk, 3*110*resource.MB).With(resource.Network, prophetNetwork)),
		Machine: sim.Machine{Disk: sim.HDDLoss, Network: sim.IncastLoss}}
	yarn := sim.YARN()
	yarn.Apply(&c)
	return c
}

// The schedulers of section IV.B. Executors of one application start together under Prophet alone.
var (
	prophetOwn   = contender{Contender: trial.Contender{Label: "Prophet", Policy: "prophet"}}
	prophetPlain = contender{Contender: trial.Contender{Label: "Prophet w/o back-off", Policy: "prophet", Settings: map[string]string{"prophet.backoff": "0s"}}}
	prophetRest  = []contender{
		{Contender: trial.Contender{Label: "CS", Policy: "capacity"}},
		{Contender: trial.Contender{Label: "DRF", Policy: "drf"}},
		{Contender: trial.Contender{Label: "Tetris", Policy: "tetris"}},
	}
)

func prophetSchedulers() []contender {
	return append(prophetRest[:len(prophetRest):len(prophetRest)], prophetPlain, prophetOwn)
}

// prophetTrial is the outcome of all applications under one scheduler. Times are in seconds, by application in the order of
// the workload.
type prophetTrial struct {
	Makespan   float64   `json:"makespan_s"`
	Execution  []float64 `json:"execution_s"`  // mean run time of the executors
	Whole      []float64 `json:"whole_s"`      // from the start of the first executor to the end
	Completion []float64 `json:"completion_s"` // from submission to the end
}

// replayProphet simulates the workload under c.
func (c contender) replayProphet(w *workload.Workload) (t prophetTrial, err error) {
	if c.Policy != prophetOwn.Policy {
		for i := range w.Jobs {
			w.Jobs[i].Stages[0].Together = false
		}
	}
	config := prophetCluster()
	config.KeepTasks = true
	r, err := c.succeed(config, w)
	if err != nil {
		return t, err
	}
	t.Makespan, t.Execution = r.Makespan.Seconds(), executionOf(r)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		t.Whole = append(t.Whole, j.Ended.Sub(j.Started).Seconds())
		t.Completion = append(t.Completion, j.Runtime().Seconds())
	}
	return t, nil
}

// executionOf returns the mean run time of each application's executors, in seconds.
func executionOf(r *sim.Result) []float64 {
	sums, executors := make([]float64, len(r.Jobs)), make([]float64, len(r.Jobs))
	for _, t := range r.Tasks {
		if !t.Coordinator {
			i := t.ID.Job - 1 // jobs are numbered from 1 in the order of the workload
			sums[i], executors[i] = sums[i]+t.Finished.Sub(t.Launched).Seconds(), executors[i]+1
		}
	}
	return ratios(sums, executors)
}

// prophetContest simulates every contender with the workloads of all runs: by contender, then by run.
func prophetContest(l *lab, part string, all []contender, executors int) ([][]prophetTrial, error) {
	return eachRun(l, part, len(all), func(point, run int) (prophetTrial, error) {
		return all[point].replayProphet(prophetWorkload(executors, l.seed(run), l.applications()))
	})
}

// applications is how many of Prophet's 90 applications take part.
func (l *lab) applications() int {
	if l.quick {
		return 12
	}
	return 90
}

// reductions returns by how much each application, in all runs, is faster under x than under y, as a share of its time
// under y.
func reductions(x, y []prophetTrial, times func(prophetTrial) []float64) []float64 {
	var all []float64
	for run := range x {
		for _, v := range ratios(times(x[run]), times(y[run])) {
			all = append(all, 1-v)
		}
	}
	return all
}

func execution(t prophetTrial) []float64  { return t.Execution }
func whole(t prophetTrial) []float64      { return t.Whole }
func completion(t prophetTrial) []float64 { return t.Completion }
func makespan(t prophetTrial) float64     { return t.Makespan }
