package experiments

import (
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

// contender is a scheduler, with what it runs in, in the comparisons of experiments.
type contender struct {
	trial.Contender // its label is its name in tables
	// prompt makes a pooled node report as often as all nodes of the cluster together.
	prompt bool
	// box is the size of containers and heaps of data-intensive jobs, as on YARN; 0 is FLEX containers.
	box  resource.Amount
	flex sim.Flex // of FLEX containers
}

// The contenders of YARN-ME's evaluation. Heartbeats, and one start per node and heartbeat, are as in YARN and in the
// authors' simulator.
var (
	yarn = contender{Contender: trial.Contender{Label: "YARN", Policy: "fair",
		Settings: map[string]string{"fair.reservations": "true"}}}
	yarnUnreserved = contender{Contender: trial.Contender{Label: "YARN without reservations", Policy: "fair",
		Settings: map[string]string{"fair.reservations": "false"}}}
	yarnMESum = contender{Contender: trial.Contender{Label: "YARN-ME (sum)", Policy: "yarn-me",
		Settings: map[string]string{"yarn-me.timeline": "sum"}}}
	yarnMEAgain = contender{Contender: trial.Contender{Label: "YARN-ME (resimulate)", Policy: "yarn-me",
		Settings: map[string]string{"yarn-me.timeline": "resimulate"}}}
	// The Meganode reports once a second, as a node of the authors' simulator does; a prompt Meganode reports as often
	// as its nodes would.
	meganode       = contender{Contender: trial.Contender{Label: "Meganode", Policy: "srjf", Pooled: true}}
	meganodePrompt = contender{Contender: trial.Contender{Label: "prompt Meganode", Policy: "srjf", Pooled: true},
		prompt: true}
)

// outcome is the result of a contender with a workload. Times are in seconds.
type outcome struct {
	Runtime  float64 `json:"job_runtime_s"` // mean over the jobs, from submission to end
	Makespan float64 `json:"makespan_s"`
	Memory   float64 `json:"memory"`  // granted memory × time over capacity × makespan
	Elastic  float64 `json:"elastic"` // share of the tasks that were under-sized
}

// run simulates the workload under c; jobs may fail, and may not end. It does not change the workload, so that several
// simulations can run at once.
func (c contender) run(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	if c.box == 0 {
		config.Flex = c.flex
	}
	if c.prompt {
		config.Heartbeat /= time.Duration(len(config.Nodes))
	}
	t, err := c.On(config, w)
	if err != nil {
		return nil, err
	}
	r, err := t.Run()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Label, err)
	}
	return r, nil
}

// toTheEnd is run for workloads whose jobs may fail, but must end.
func (c contender) toTheEnd(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	r, err := c.run(config, w)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Unfinished() {
		return nil, fmt.Errorf("%s: %s did not end: %s", c.Label, j.Name, j.Stuck)
	}
	return r, nil
}

// succeed is run for workloads whose jobs must succeed.
func (c contender) succeed(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	r, err := c.toTheEnd(config, w)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Failures() {
		return nil, fmt.Errorf("%s: %s failed: %s", c.Label, j.Name, j.Failure)
	}
	return r, nil
}

// trial is succeed for callers that need only the outcome.
func (c contender) trial(config sim.Config, w *workload.Workload) (outcome, error) {
	r, err := c.succeed(config, w)
	if err != nil {
		return outcome{}, err
	}
	return outcome{r.AverageJobRuntime.Seconds(), r.Makespan.Seconds(), r.MemoryUtilisation, r.UnderSizedShare()}, nil
}

// taskSeconds is the run time of a task.
func taskSeconds(t sim.TaskResult) float64 { return t.Finished.Sub(t.Launched).Seconds() }

// ran returns the run time of all tasks together, without coordinators, seconds.
func ran(r *sim.Result) (all float64) {
	for _, t := range r.Tasks {
		if !t.Coordinator {
			all += taskSeconds(t)
		}
	}
	return all
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
