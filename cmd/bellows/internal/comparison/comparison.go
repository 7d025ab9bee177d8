// Package comparison sums up many runs of several policies on the same workloads: means and confidence intervals, each
// policy against the first on the same seeds, tables, files and pictures. It is told numbers and does not know where they
// come from.
package comparison

import (
	"fmt"
	"math"

	"github.com/bellows-rm/bellows/lab/chart"
)

// Policy is one contender.
type Policy struct {
	Label    string            `json:"policy"` // as it was asked for; unique
	Settings map[string]string `json:"settings"`
}

// Run is what came of one policy on one seed. Times are in seconds.
type Run struct {
	Policy int    `json:"-"` // index of the policy
	Seed   uint64 `json:"seed"`
	// Error is why there is no result; then only Policy and Seed mean something.
	Error string `json:"error,omitempty"`

	Jobs          int      `json:"jobs"`
	FailedJobs    int      `json:"failed_jobs"`
	Tasks         int      `json:"tasks"` // started, application masters aside
	Retries       int      `json:"retries"`
	Average       float64  `json:"average_job_runtime_s"`
	Makespan      float64  `json:"makespan_s"`
	Utilisation   float64  `json:"memory_utilisation"`
	Elastic       float64  `json:"elastic_task_share"`
	BoundAverage  float64  `json:"bound_average_job_runtime_s"`
	BoundMakespan float64  `json:"bound_makespan_s"`
	CPU           *float64 `json:"cpu_s,omitempty"` // only if asked for

	// Runtimes are those of the jobs, in the order of the workload; NaN for a job that failed.
	Runtimes []float64 `json:"-"`
	// Picture is set for runs that are drawn.
	Picture *Schedule `json:"-"`
}

// Schedule is what a run did when, for pictures.
type Schedule struct {
	End   float64 // seconds
	Nodes []string
	Tasks []Task
	// Capacity is what all nodes have, per resource that the cluster bounds, in the order of Resources.
	Resources []string
	Capacity  []float64
}

// Task is what a task held on a node.
type Task struct {
	Node, Job int
	From, To  float64   // seconds
	Faint     bool      // under-sized
	Held      []float64 // as Schedule.Capacity
}

// Comparison is told the runs, seed by seed, on each of them policy by policy, and keeps only numbers: memory grows by
// some hundred bytes per run, and by the runtimes of jobs up to a limit.
type Comparison struct {
	Policies []Policy
	Runs     []Run

	runtimes [][]float64 // per policy, of jobs on the seeds that were pooled
	ratios   [][]float64 // per policy, runtime of a job over that under the first policy on the same seed
	dropped  bool        // whether there were more than the limit
	first    *Run        // of the seed under way; nil if it failed
	pictures []*Schedule // per policy, of the first seed that had one
}

// mostRuntimes is how many runtimes per policy distributions are drawn from.
const mostRuntimes = 100_000

// New returns a comparison without runs. The first policy is what others are compared with.
func New(policies []Policy) *Comparison {
	n := len(policies)
	return &Comparison{Policies: policies, runtimes: make([][]float64, n), ratios: make([][]float64, n), pictures: make([]*Schedule, n)}
}

// Add takes the next run.
func (c *Comparison) Add(r Run) {
	if r.Policy == 0 {
		c.first = nil
		if r.Error == "" {
			first := r
			c.first = &first
		}
	}
	if r.Error == "" {
		c.keep(&r)
	}
	if c.pictures[r.Policy] == nil {
		c.pictures[r.Policy] = r.Picture
	}
	r.Runtimes, r.Picture = nil, nil
	c.Runs = append(c.Runs, r)
}

// keep keeps the runtimes of a run, unless there are many already.
func (c *Comparison) keep(r *Run) {
	if len(c.runtimes[r.Policy])+len(r.Runtimes) > mostRuntimes && len(c.runtimes[r.Policy]) > 0 {
		c.dropped = true
		return
	}
	c.runtimes[r.Policy] = append(c.runtimes[r.Policy], r.Runtimes...)
	if c.first == nil || len(c.first.Runtimes) != len(r.Runtimes) {
		return
	}
	for i, v := range r.Runtimes {
		if ratio := v / c.first.Runtimes[i]; !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
			c.ratios[r.Policy] = append(c.ratios[r.Policy], ratio)
		}
	}
}

// Summary is what came of a policy over all seeds. Ratios are to the first policy on the same seeds.
type Summary struct {
	Policy
	Runs   int `json:"runs"`        // with a result
	Failed int `json:"failed_runs"` // without
	// FailedJobs counts over all runs.
	FailedJobs int `json:"failed_jobs"`

	Average      Estimate `json:"average_job_runtime_s"`
	Makespan     Estimate `json:"makespan_s"`
	Utilisation  Estimate `json:"memory_utilisation"`
	Elastic      Estimate `json:"elastic_task_share"`
	AverageOver  Estimate `json:"average_job_runtime_over_bound"`
	MakespanOver Estimate `json:"makespan_over_bound"`

	AverageRatio       Estimate `json:"average_job_runtime_ratio"`
	MakespanRatio      Estimate `json:"makespan_ratio"`
	AverageDifference  Estimate `json:"average_job_runtime_difference_s"`
	MakespanDifference Estimate `json:"makespan_difference_s"`
}

// Summaries returns one summary per policy.
func (c *Comparison) Summaries() []Summary {
	all := make([]Summary, len(c.Policies))
	base := map[uint64]*Run{}
	for i := range c.Runs {
		if r := &c.Runs[i]; r.Policy == 0 && r.Error == "" {
			base[r.Seed] = r
		}
	}
	for p := range all {
		all[p] = c.summary(p, base)
	}
	return all
}

func (c *Comparison) summary(p int, base map[uint64]*Run) Summary {
	s := Summary{Policy: c.Policies[p]}
	var of [6][]float64
	var ratio, difference [2][]float64
	for i := range c.Runs {
		r := &c.Runs[i]
		switch {
		case r.Policy != p:
			continue
		case r.Error != "":
			s.Failed++
			continue
		}
		s.Runs++
		s.FailedJobs += r.FailedJobs
		for k, v := range []float64{r.Average, r.Makespan, r.Utilisation, r.Elastic, r.Average / r.BoundAverage, r.Makespan / r.BoundMakespan} {
			of[k] = append(of[k], v)
		}
		if b := base[r.Seed]; b != nil {
			ratio[0], ratio[1] = append(ratio[0], r.Average/b.Average), append(ratio[1], r.Makespan/b.Makespan)
			difference[0], difference[1] = append(difference[0], r.Average-b.Average), append(difference[1], r.Makespan-b.Makespan)
		}
	}
	s.Average, s.Makespan, s.Utilisation, s.Elastic = Mean(of[0]), Mean(of[1]), Mean(of[2]), Mean(of[3])
	s.AverageOver, s.MakespanOver = GeometricMean(of[4]), GeometricMean(of[5])
	s.AverageRatio, s.MakespanRatio = GeometricMean(ratio[0]), GeometricMean(ratio[1])
	s.AverageDifference, s.MakespanDifference = Mean(difference[0]), Mean(difference[1])
	return s
}

// Errors returns a sentence for each run without a result.
func (c *Comparison) Errors() []string {
	var all []string
	for _, r := range c.Runs {
		if r.Error != "" {
			all = append(all, fmt.Sprintf("policy %s, seed %d: %s", c.Policies[r.Policy].Label, r.Seed, r.Error))
		}
	}
	return all
}

// Figure is a picture with the name of its file.
type Figure struct {
	Name    string // without an ending
	Picture chart.Picture
}
