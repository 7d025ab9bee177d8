package prophet

import (
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Runs has the runs of Prophet's experiments.
var Runs = map[string]lab.Run{
	"prophet/fig1": figure1, "prophet/fig3": figure3,
	"prophet/table3": table3, "prophet/fig7": figure7, "prophet/fig8": figure8,
	"prophet/fig9-10": figure9,
	"prophet/fig11":   figure11, "prophet/eta": eta, "prophet/assumed": prophetSweep,
}

// Prophet's cluster (section IV.B): 16 servers of 24 cores, 32 GB, three disks of 110 MB/s and a NIC of 1 Gbit/s.
const (
	servers = 16
	window  = 1200 * time.Second // applications are submitted at random times in it
)

// assumed is what the paper leaves out of its applications and servers.
type assumed struct {
	executors                   int             // of an application
	memory                      resource.Amount // that an executor reserves
	amounts                     float64         // factor for the bytes and the work of all stages
	diskPerCore, networkPerCore float64         // bytes per second that a core moves
	network                     resource.Amount // that a NIC carries
	disk, incast                sim.Loss        // of over-allocated disks and NICs
	traced                      bool            // applications arrive as in a trace, not at random times
	predicted                   bool            // Prophet's predictor makes its forecasts from 25 runs of each benchmark
}

// usual is what we take. amounts are fitted: the makespan under CS is that of Table III. The NIC counts both
// directions: Fig. 2 shows up to 160 MB/s, and one direction is 125 MB/s.
var usual = assumed{executors: 4, memory: 8 * resource.GB, amounts: 7.2, diskPerCore: 110e6,
	networkPerCore: 60e6, network: 250 * resource.MB, disk: sim.HDDLoss, incast: sim.IncastLoss}

func (a *assumed) cluster() sim.Config {
	c := sim.Config{Nodes: sim.Uniform(servers, resource.Of(24*resource.Core, 32*resource.GB).
		With(resource.Disk, 3*110*resource.MB).With(resource.Network, a.network)),
		Machine: sim.Machine{Disk: a.disk, Network: a.incast}}
	yarn := sim.YARN()
	yarn.Apply(&c)
	return c
}

// lower is where the paper has "substantially lower than their peak one" (section III.B) and no number: the simulator
// knows the truth, and needs no margin for noise. prophet/fig11 compares other shares.
const lower = 0.9

// The schedulers of section IV.B, the fair scheduler of the abstract, and what bellows makes of the paper: Prophet as
// people get it, and policy bellows. Executors of one application start together under Prophet alone.
//
// Prophet as the paper has it dispatches fewer tasks to the executors that overuse a resource: it bounds their demands
// to what there is.
var (
	own      = with("Prophet")
	plain    = with("Prophet w/o back-off", "backoff", "0s")
	products = []lab.Contender{lab.Product("prophet"), lab.Product(policy.Default)}
	rest     = []lab.Contender{
		{Contender: trial.Contender{Label: "CS", Policy: "capacity"}},
		{Contender: trial.Contender{Label: "Fair", Policy: "fair"}},
		{Contender: trial.Contender{Label: "DRF", Policy: "drf"}},
		{Contender: trial.Contender{Label: "Tetris", Policy: "tetris"}},
	}
)

// with is Prophet with some settings, each a name and a value.
func with(label string, settings ...string) lab.Contender {
	c := lab.Contender{PressedBelow: lower, Contender: trial.Contender{Label: label, Policy: "prophet",
		Settings: map[string]string{"prophet.relief": "share"}}}
	for i := 0; i < len(settings); i += 2 {
		c.Settings["prophet."+settings[i]] = settings[i+1]
	}
	return c
}

// schedulers are those that are compared, Prophet last.
func schedulers() []lab.Contender { return slices.Concat(rest, products, []lab.Contender{plain, own}) }

// prophetTrial is the outcome of all applications under one scheduler. Times are in seconds, by application in the
// order of the workload.
type prophetTrial struct {
	Makespan   float64   `json:"makespan_s"`
	Execution  []float64 `json:"execution_s"`  // mean run time of the executors
	Whole      []float64 `json:"whole_s"`      // from the start of the first executor to the end
	Completion []float64 `json:"completion_s"` // from submission to the end
}

// replayProphet simulates the workload under c.
func replayProphet(c lab.Contender, config sim.Config, w *workload.Workload) (*sim.Result, error) {
	if c.Policy != own.Policy {
		lab.Apart(w)
	}
	config.KeepTasks = true
	return c.Succeed(config, w)
}

func trialOf(r *sim.Result) (t prophetTrial) {
	t.Makespan, t.Execution = r.Makespan.Seconds(), executionOf(r)
	for i := range r.Jobs {
		j := &r.Jobs[i]
		t.Whole = append(t.Whole, j.Ended.Sub(j.Started).Seconds())
		t.Completion = append(t.Completion, j.Runtime().Seconds())
	}
	return t
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
	return lab.Ratios(sums, executors)
}

// contest simulates every contender with the workloads of all runs: by contender, then by run.
func contest(l *lab.Lab, part string, all []lab.Contender, a *assumed) ([][]prophetTrial, error) {
	told, err := a.forecasts(l)
	if err != nil {
		return nil, err
	}
	return lab.EachRun(l, part, len(all), func(point, run int) (prophetTrial, error) {
		r, err := replayProphet(all[point], a.cluster(), a.workload(l, run, told[run]))
		if err != nil {
			return prophetTrial{}, err
		}
		return trialOf(r), nil
	})
}

// applications is how many of Prophet's 90 applications take part.
func applications(l *lab.Lab) int {
	if l.Quick {
		return 12
	}
	return 90
}

// reductions returns by how much each application, in all runs, is faster under x than under y, as a share of its time
// under y.
func reductions(x, y []prophetTrial, times func(prophetTrial) []float64) []float64 {
	var all []float64
	for run := range x {
		for _, v := range lab.Ratios(times(x[run]), times(y[run])) {
			all = append(all, 1-v)
		}
	}
	return all
}

func execution(t prophetTrial) []float64  { return t.Execution }
func whole(t prophetTrial) []float64      { return t.Whole }
func completion(t prophetTrial) []float64 { return t.Completion }
func makespan(t prophetTrial) float64     { return t.Makespan }
