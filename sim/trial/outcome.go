package trial

import (
	"encoding/json"
	"fmt"

	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
)

// Outcome is the result of one contender on one seed, in numbers. Times are in seconds.
type Outcome struct {
	Contender int    `json:"-"` // index of the contender
	Seed      uint64 `json:"seed" doc:"seed of the generator, or of misjudgements if the workload is a file"`
	// Error says why there is no result; then only Contender and Seed are meaningful.
	Error string `json:"error,omitempty" doc:"why there is no result: then there is only the seed"`

	Jobs          int     `json:"jobs" doc:"jobs in the workload"`
	FailedJobs    int     `json:"failed_jobs" doc:"jobs that ended without success"`
	Tasks         int     `json:"tasks" doc:"tasks started, without application masters"`
	Retries       int     `json:"retries" doc:"tasks that were to run again"`
	Average       float64 `json:"average_job_runtime_s" doc:"mean over jobs that succeeded"`
	Makespan      float64 `json:"makespan_s" doc:"from the first submission to the last end"`
	Utilisation   float64 `json:"memory_utilisation" doc:"as in results, 0 to 1"`
	Elastic       float64 `json:"elastic_task_share" doc:"as in results, 0 to 1"`
	BoundAverage  float64 `json:"bound_average_job_runtime_s" doc:"lower bound for policies of this kind; with --bounds the interval bound is included"`
	BoundMakespan float64 `json:"bound_makespan_s" doc:"the same"`
}

// Measure fills in the numbers of a result and of its bounds.
func (o *Outcome) Measure(r *sim.Result, b bound.Bounds) {
	o.Jobs, o.FailedJobs = len(r.Jobs), len(r.Failures())
	o.Tasks, o.Retries = r.Started, r.Retries
	o.Average, o.Makespan = r.AverageJobRuntime.Seconds(), r.Makespan.Seconds()
	o.Utilisation, o.Elastic = r.MemoryUtilisation, r.UnderSizedShare()
	o.BoundAverage, o.BoundMakespan = b.AverageJobRuntime.Seconds(), b.Makespan.Seconds()
}

// MarshalJSON writes only the seed and the error of an outcome without a result.
func (o Outcome) MarshalJSON() ([]byte, error) {
	if o.Error != "" {
		return json.Marshal(map[string]any{"seed": o.Seed, "error": o.Error})
	}
	type plain Outcome
	return json.Marshal(plain(o))
}

// Finished returns an error if some jobs of a run did not end, or else if some failed. The error counts these jobs and
// says why the first of them did not succeed.
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
	return fmt.Errorf("%d of %d %s %s; job %d (%s): %s%s", len(left), len(r.Jobs), jobs, kind, left[0].ID, left[0].Name,
		left[0].Stuck, left[0].Failure)
}
