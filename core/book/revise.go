package book

import (
	"fmt"
	"reflect"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// revise replaces what is expected of the tasks of a job: forecasts and learned reservations, or reservations alone
// if a task of the job has been started. Tasks that run keep what they were granted.
func (s *Snapshot) revise(now timeline.Time, job *cluster.Job) error {
	if job == nil {
		return fmt.Errorf("job revised: the event holds no job")
	}
	j, ok := s.byJob[job.ID]
	if !ok {
		return fmt.Errorf("job %d: revised, but it is not here, or already ended", job.ID)
	}
	begun := j.Status != cluster.StatusPending || len(j.Tasks) > 0
	allowed, what := j.Job.Revised(job), "its forecasts and learned reservations"
	if begun {
		allowed, what = j.Job.WithReservations(job), "its learned reservations, and a task of it has been started"
	}
	if len(j.Stages) != len(job.Stages) || !reflect.DeepEqual(&allowed, job) {
		return fmt.Errorf("job %d: revised in more than %s", job.ID, what)
	}
	if err := job.CheckGrown(); err != nil {
		return err
	}
	before := j.Job
	j.Job, j.grown = job, false
	j.Version++
	if j.standing != nil {
		j.standing.look(j, 0)
	}
	for i := 0; j.Reservations > 0 && i < len(s.Nodes); i++ {
		n := s.Nodes[i]
		if n.ReservedFor == j && before.Stages[n.ReservedStage].Ideal != job.Stages[n.ReservedStage].Ideal {
			s.unreserve(n) // The policy has compared another need with the limits of queues.
		}
	}
	s.Changes.Jobs = append(s.Changes.Jobs, j)
	s.Estimates.stale(now)
	s.demand()
	return nil
}
