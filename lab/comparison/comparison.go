// Package comparison draws what came of several contenders on the same seeds: how far from the best possible they are,
// distributions of the runtimes of jobs, what was granted over time and the tasks on nodes. One HTML page shows all of it
// beside the table.
package comparison

import (
	"math"

	"github.com/bellows-rm/bellows/lab/chart"
	"github.com/bellows-rm/bellows/trial"
)

// Comparison is told the runs, seed by seed, on each of them contender by contender, and keeps only numbers: memory grows
// by some hundred bytes per run, and by the runtimes of jobs up to a limit.
type Comparison struct {
	trial.Comparison

	runtimes [][]float64 // per contender, of jobs on the seeds that were pooled
	ratios   [][]float64 // per contender, runtime of a job over that under the first contender on the same seed
	dropped  bool        // whether there were more than the limit
	first    *Run        // of the seed under way; nil if it failed
	pictures []*Schedule // per contender, of the first seed that had one
}

// Run is what came of one contender on one seed.
type Run struct {
	trial.Outcome
	// Runtimes are those of the jobs in seconds, in the order of the workload; NaN for a job that failed.
	Runtimes []float64
	// Picture is set for runs that are drawn.
	Picture *Schedule
}

// mostRuntimes is how many runtimes per contender distributions are drawn from.
const mostRuntimes = 100_000

// New returns a comparison without runs. The first contender is what others are compared with.
func New(contenders []trial.Contender) *Comparison {
	n := len(contenders)
	return &Comparison{Comparison: trial.Comparison{Contenders: contenders}, runtimes: make([][]float64, n), ratios: make([][]float64, n), pictures: make([]*Schedule, n)}
}

// Add takes the next run.
func (c *Comparison) Add(r Run) {
	if r.Contender == 0 {
		c.first = nil
		if r.Error == "" {
			c.first = &r
		}
	}
	if r.Error == "" {
		c.keep(&r)
	}
	if c.pictures[r.Contender] == nil {
		c.pictures[r.Contender] = r.Picture
	}
	c.Comparison.Add(r.Outcome)
}

// keep keeps the runtimes of a run, unless there are many already.
func (c *Comparison) keep(r *Run) {
	if len(c.runtimes[r.Contender])+len(r.Runtimes) > mostRuntimes && len(c.runtimes[r.Contender]) > 0 {
		c.dropped = true
		return
	}
	c.runtimes[r.Contender] = append(c.runtimes[r.Contender], r.Runtimes...)
	if c.first == nil || len(c.first.Runtimes) != len(r.Runtimes) {
		return
	}
	for i, v := range r.Runtimes {
		if ratio := v / c.first.Runtimes[i]; !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
			c.ratios[r.Contender] = append(c.ratios[r.Contender], ratio)
		}
	}
}

// Figure is a picture with the name of its file.
type Figure struct {
	Name    string // without an ending
	Picture chart.Picture
}
