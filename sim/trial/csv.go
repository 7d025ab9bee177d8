package trial

import (
	"encoding/csv"
	"io"
	"strconv"
)

// columns of the CSV file, which docs/reference/output.md describes.
var columns = []string{"policy", "seed", "jobs", "failed_jobs", "tasks", "retries", "average_job_runtime_s",
	"makespan_s", "memory_utilisation", "elastic_task_share", "bound_average_job_runtime_s", "bound_makespan_s", "error"}

// WriteCSV writes one row per outcome, in their order. An unknown value is an empty field.
func (c *Comparison) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	if err := w.Write(columns); err != nil {
		return err
	}
	for _, r := range c.Outcomes {
		row := []string{c.Contenders[r.Contender].Label, strconv.FormatUint(r.Seed, 10)}
		if r.Error != "" {
			row = append(row, make([]string, len(columns)-3)...)
		} else {
			for _, n := range []int{r.Jobs, r.FailedJobs, r.Tasks, r.Retries} {
				row = append(row, strconv.Itoa(n))
			}
			for _, v := range []float64{r.Average, r.Makespan, r.Utilisation, r.Elastic, r.BoundAverage, r.BoundMakespan} {
				row = append(row, strconv.FormatFloat(v, 'f', -1, 64))
			}
		}
		if err := w.Write(append(row, r.Error)); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
