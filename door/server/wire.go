package server

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// stageOf returns a stage in the form that the driver accepts.
func stageOf(s *api.StageSpec) cluster.Stage {
	out := s.Stage
	out.Coordinator = false                            // a machine has no coordinators
	out.Told, out.Reserved = cluster.Provenance{}, nil // what a caller sends is stated, not learned
	out.Ideal = s.Ideal
	for k, field := range s.Amounts() {
		out.Ideal[k] = max(out.Ideal[k], *field)
	}
	if out.Tasks == 0 {
		out.Tasks = len(out.Items)
	}
	return out
}

// submissionOf returns a submission in the form that the driver accepts.
func submissionOf(s *api.Submission, caller cluster.Credentials) live.Submission {
	out := live.Submission{Caller: caller, Env: s.Env, Dir: s.Dir, Inherited: s.Inherited, Input: s.Input}
	out.Undecided = s.Class == nil && s.Reserve == nil
	out.Job = cluster.Job{Name: s.Name, Queue: s.Queue, Weight: s.Weight, MaxAttempts: s.MaxAttempts,
		RetryOn: s.RetryOn, AtMostOnce: s.AtMostOnce, KeepGoing: s.KeepGoing, Requeue: s.Requeue, App: s.App,
		Deadline: s.Deadline}
	if out.Job.RetryByDefault(); s.RetryDelay != nil {
		out.Job.RetryDelay = *s.RetryDelay
	}
	if s.Reserve != nil {
		out.Job.Reserve = *s.Reserve
	}
	switch {
	case s.Class != nil:
		out.Job.Class = *s.Class
	case out.Job.Reserve == cluster.ReserveLearned:
		out.Job.Class = cluster.Flex
	}
	for i := range s.Stages {
		out.Job.Stages = append(out.Job.Stages, stageOf(&s.Stages[i]))
	}
	return out
}
