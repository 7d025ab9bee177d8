package server

import (
	"context"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/live"
)

// The server serves one user, and root: the socket is closed to all other users. If its mode or group is opened
// nevertheless, other users see which jobs exist and what the jobs use, but neither their names nor their output.

// seesAll reports whether the caller may see everything of a user's jobs.
func (s *Server) seesAll(ctx context.Context, owner uint32) bool {
	caller, err := peer(ctx)
	return err == nil && (caller.UID == 0 || caller.UID == s.daemon.UID || caller.UID == owner)
}

// shown returns the part of a job that the caller may see.
func (s *Server) shown(ctx context.Context, j live.Job) live.Job {
	if s.seesAll(ctx, j.UID) {
		return j
	}
	j.Name, j.Detail, j.App, j.AppDerived, j.DeadlineSeconds = "", "", "", false, 0
	j.Stages = slices.Clone(j.Stages)
	for i := range j.Stages {
		j.Stages[i].Stage = sizeOf(&j.Stages[i].Stage)
	}
	j.Tasks, j.Earlier = withoutDetail(j.Tasks), withoutDetail(j.Earlier)
	return j
}

// sizeOf returns the part of a stage that other users may see: its size, and no text of its owner.
func sizeOf(s *cluster.Stage) cluster.Stage {
	return cluster.Stage{Tasks: s.Tasks, Parents: s.Parents, Ideal: s.Ideal, MinMemory: s.MinMemory, MaxMemory: s.MaxMemory, Duration: s.Duration,
		Elasticity: s.Elasticity, Command: cluster.Command{Timeout: s.Timeout}}
}

func (s *Server) shownAll(ctx context.Context, jobs []live.Job) []live.Job {
	for i := range jobs {
		jobs[i] = s.shown(ctx, jobs[i])
	}
	return jobs
}

// withoutDetail removes from tasks the texts that may quote their programs.
func withoutDetail(tasks []live.Task) []live.Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		tasks[i].Detail, tasks[i].Name = "", ""
	}
	return tasks
}

// mayRead returns an error unless the caller may read a job's output and explanation.
func (s *Server) mayRead(ctx context.Context, id cluster.JobID) error {
	caller, err := peer(ctx)
	if err == nil && (caller.UID == 0 || caller.UID == s.daemon.UID) {
		return nil
	}
	j, err := s.driver.Job(ctx, id, false)
	if err != nil {
		return err
	}
	if !s.seesAll(ctx, j.UID) {
		return live.Errorf(live.Denied, "job %d: belongs to %s", id, j.Owner)
	}
	return nil
}
