package yarnme

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// The contenders of YARN-ME's evaluation. Heartbeats, and one start per node and heartbeat, are as in YARN and in the
// authors' simulator.
var (
	yarn = lab.Contender{Contender: trial.Contender{Label: "YARN", Policy: "fair",
		Settings: map[string]string{"fair.reservations": "true"}}}
	yarnUnreserved = lab.Contender{Contender: trial.Contender{Label: "YARN without reservations", Policy: "fair",
		Settings: map[string]string{"fair.reservations": "false"}}}
	yarnMESum = lab.Contender{Contender: trial.Contender{Label: "YARN-ME (sum)", Policy: "yarn-me",
		Settings: map[string]string{"yarn-me.timeline": "sum"}}}
	yarnMEAgain = lab.Contender{Contender: trial.Contender{Label: "YARN-ME (resimulate)", Policy: "yarn-me",
		Settings: map[string]string{"yarn-me.timeline": "resimulate"}}}
	// The Meganode reports once a second, as a node of the authors' simulator does; a prompt Meganode reports as often
	// as its nodes would.
	meganode       = lab.Contender{Contender: trial.Contender{Label: "Meganode", Policy: "srjf", Pooled: true}}
	meganodePrompt = lab.Contender{Contender: trial.Contender{Label: "prompt Meganode", Policy: "srjf", Pooled: true},
		Prompt: true}
)

// outcome is the result of a contender with a workload. Times are in seconds.
type outcome struct {
	Runtime  float64 `json:"job_runtime_s"` // mean over the jobs, from submission to end
	Makespan float64 `json:"makespan_s"`
	Memory   float64 `json:"memory"`  // granted memory × time over capacity × makespan
	Elastic  float64 `json:"elastic"` // share of the tasks that were under-sized
}

// outcomeOf returns how a workload went under c; its jobs must succeed.
func outcomeOf(c lab.Contender, config sim.Config, w *workload.Workload) (outcome, error) {
	r, err := c.Succeed(config, w)
	if err != nil {
		return outcome{}, err
	}
	return outcome{r.AverageJobRuntime.Seconds(), r.Makespan.Seconds(), r.MemoryUtilisation, r.UnderSizedShare()}, nil
}

// paperCluster is the simulated cluster of YARN-ME section 6.1: nodes of 16 cores and 10 GB. Jobs have application
// masters that report every second and have a grant of 0, as in the authors' runs with which ours are compared.
func paperCluster(nodes int) sim.Config {
	return sim.Config{
		Nodes:     sim.Uniform(nodes, resource.Of(16*resource.Core, 10*resource.GB)),
		Heartbeat: time.Second, StartsPerHeartbeat: 1, CoordinatorHeartbeat: time.Second,
	}
}

// elastic gives all tasks of w the reducers' saw-tooth with the given largest slowdown, down to 10 % of ideal memory in
// steps of 100 MB (YARN-ME section 6.1).
func elastic(w *workload.Workload, slowdown float64) error {
	e, err := workload.ParsePenalty(fmt.Sprintf("sawtooth:%g", slowdown))
	if err != nil {
		return err
	}
	w.SetPenalty(e, workload.DefaultMinShare, workload.DefaultGranularity)
	return nil
}
