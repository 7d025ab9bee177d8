package trial

import (
	"encoding/json"
	"fmt"

	"github.com/bellows-rm/bellows/bound"
	"github.com/bellows-rm/bellows/sim"
)

// Outcome is what came of one contender on one seed, in numbers. Times are in seconds.
type Outcome struct {
	Contender int    `json:"-"` // index of the contender
	Seed      uint64 `json:"seed"`
	// Error is why there is no result; then only Contender and Seed mean something.
	Error string `json:"error,omitempty"`

	Jobs          int     `json:"jobs"`
	FailedJobs    int     `json:"failed_jobs"`
	Tasks         int     `json:"tasks"` // started, application masters aside
	Retries       int     `json:"retries"`
	Average       float64 `json:"average_job_runtime_s"`
	Makespan      float64 `json:"makespan_s"`
	Utilisation   float64 `json:"memory_utilisation"`
	Elastic       float64 `json:"elastic_task_share"`
	BoundAverage  float64 `json:"bound_average_job_runtime_s"`
	BoundMakespan float64 `json:"bound_makespan_s"`
}

// Measure takes the numbers of a result and of its bounds.
func (o *Outcome) Measure(r *sim.Result, b bound.Bounds) {
	o.Jobs, o.FailedJobs = len(r.Jobs), len(r.Failures())
	o.Tasks, o.Retries = r.Started, r.Retries
	o.Average, o.Makespan = r.AverageJobRuntime.Seconds(), r.Makespan.Seconds()
	o.Utilisation, o.Elastic = r.MemoryUtilisation, r.ElasticShare()
	o.BoundAverage, o.BoundMakespan = b.AverageJobRuntime.Seconds(), b.Makespan.Seconds()
}

// MarshalJSON of an outcome without a result tells only why there is none.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Error != "" {
		return json.Marshal(map[string]any{"seed": o.Seed, "error": o.Error})
	}
	type plain Outcome
	return json.Marshal(plain(o))
}

// Finished returns an error that counts the jobs of a run that did not end, or else failed, and says of one of them why.
func Finished(r *sim.Result) error {
	kind, left := "did not end", r.Unfinished()
	if len(left) == 0 {
		kind, left = "failed", r.Failures()
	}
	if len(left) == 0 {
		return nil
	}
	jobs := "jobs"
	if len(r.Jobs) == 1 {
		jobs = "job"
	}
	return fmt.Errorf("%d of %d %s %s; job %d (%s): %s%s", len(left), len(r.Jobs), jobs, kind, left[0].ID, left[0].Name, left[0].Stuck, left[0].Failure)
}
