// Package comparison draws the results of several contenders on the same seeds: their distance from lower bounds,
// distributions of job runtimes, granted resources over time, and tasks on nodes. One HTML page has all pictures with
// the table.
package comparison

import (
	"math"

	"github.com/bellows-rm/bellows/sim/trial"
	"github.com/bellows-rm/bellows/studies/chart"
)

// Comparison gets the runs seed by seed and, for each seed, contender by contender. It keeps only numbers: its memory
// grows by some hundred bytes per run, and by the runtimes of jobs up to a limit.
type Comparison struct {
	trial.Comparison

	runtimes [][]float64 // per contender, of the jobs of all seeds up to the limit
	ratios   [][]float64 // per contender, runtime of a job / its runtime under the first contender on the same seed
	dropped  bool        // whether runtimes beyond the limit were dropped
	first    *Run        // of the current seed; nil if it failed
	pictures []*Schedule // per contender, of the first seed with a schedule
}

// Run is the result of one contender on one seed.
type Run struct {
	trial.Outcome
	// Runtimes are the runtimes of the jobs in seconds, in the order of the workload; NaN for a job that failed.
	Runtimes []float64
	// Picture is set for runs that are drawn.
	Picture *Schedule
}

// mostRuntimes is the largest number of runtimes per contender in a distribution.
const mostRuntimes = 100_000

// New returns a comparison without runs. The other contenders are compared with the first.
func New(contenders []trial.Contender) *Comparison {
	n := len(contenders)
	return &Comparison{Comparison: trial.Comparison{Contenders: contenders}, runtimes: make([][]float64, n),
		ratios: make([][]float64, n), pictures: make([]*Schedule, n)}
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

// keep keeps the runtimes of a run, up to mostRuntimes.
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
