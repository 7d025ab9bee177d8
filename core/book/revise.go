package book

import (
	"fmt"
	"reflect"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// revise replaces the forecasts of a job none of whose tasks has been started.
func (s *Snapshot) revise(now timeline.Time, job *cluster.Job) error {
	if job == nil {
		return fmt.Errorf("job revised: the event holds no job")
	}
	j, ok := s.byJob[job.ID]
	switch {
	case !ok:
		return fmt.Errorf("job %d: revised, but it is not here, or already ended", job.ID)
	case j.Status != cluster.StatusPending || len(j.Tasks) > 0:
		return fmt.Errorf("job %d: revised, but a task of it has been started", job.ID)
	}
	if allowed := j.Job.Revised(job); len(j.Stages) != len(job.Stages) || !reflect.DeepEqual(&allowed, job) {
		return fmt.Errorf("job %d: revised in more than its forecasts", job.ID)
	}
	if err := job.CheckGrown(); err != nil {
		return err
	}
	j.Job, j.grown = job, false
	j.Version++
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.Estimates.StaleSince = min(s.Estimates.StaleSince, now)
	s.demand()
	return nil
}
