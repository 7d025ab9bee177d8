package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/cmd/bellows/internal/place"
	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/jobfile"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/server"
	"github.com/bellows-rm/bellows/store"
)

// parseJob reads the id of a job.
func parseJob(text string) (cluster.JobID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, command.Usagef("job %q: must be the id of a job, such as 7; `bellows ps --all` lists them", text)
	}
	return cluster.JobID(id), nil
}

// oneJob is for commands that take the id of one job.
func oneJob(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.Usagef("job: must be the id of one job, but %d were given", len(args))
	}
	return nil
}

// someJobs is for commands that take the ids of jobs.
func someJobs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return command.Usagef("job: must be the id of at least one job")
	}
	return nil
}

// parseJobs reads the ids of jobs.
func parseJobs(args []string) ([]cluster.JobID, error) {
	ids := make([]cluster.JobID, len(args))
	for i, text := range args {
		var err error
		if ids[i], err = parseJob(text); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// completeJobs offers the ids of jobs that have not ended to a shell.
func completeJobs(p *place.Place) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, err := p.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		jobs, _ := client.Jobs(ctx)
		var ids []string
		for _, j := range jobs {
			ids = append(ids, strconv.FormatInt(int64(j.ID), 10)+"\t"+j.Name)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

// storedProfiles looks up the profiles that a job file names.
type storedProfiles struct {
	client *server.Client
	// state is the directory to look in where no daemon runs; empty for none.
	state string
	store *store.Store // once it was opened
	// failed becomes the first error other than that there is no such profile.
	failed *error
}

func (s *storedProfiles) lookUp(ctx context.Context) jobfile.Profiles {
	return func(name string) (cluster.Profile, bool) {
		p, err := s.get(ctx, name)
		switch {
		case err == nil:
			return cluster.Profile{Ideal: p.IdealMemory, MinMemory: p.MinMemory, Duration: p.Duration, Elasticity: p.Elasticity}, true
		case live.KindOf(err) != live.NotFound && !errors.Is(err, store.ErrNotFound) && *s.failed == nil:
			*s.failed = err
		}
		return cluster.Profile{}, false
	}
}

func (s *storedProfiles) get(ctx context.Context, name string) (store.Profile, error) {
	if s.store == nil {
		p, err := s.client.Profile(ctx, name)
		if live.KindOf(err) != live.Unavailable || s.state == "" {
			return p.Profile, err
		}
		// Looking must not make a store where there is none.
		if _, missing := os.Stat(filepath.Join(s.state, store.File)); missing != nil {
			return store.Profile{}, err
		}
		if s.store, err = store.Open(s.state); err != nil {
			return store.Profile{}, err
		}
	}
	return s.store.Profile(ctx, uint32(os.Getuid()), name)
}

func (s *storedProfiles) close() {
	if s.store != nil {
		_ = s.store.Close() // It was only read.
	}
}

// storedFor finds the profiles that a job file names with the daemon, or in the state directory if no daemon runs.
func storedFor(ctx context.Context) (lookUp jobfile.Profiles, done func() error, err error) {
	var p place.Place
	client, err := p.Client()
	if err != nil {
		return nil, nil, err
	}
	var failed error
	known := storedProfiles{client: client, state: p.State, failed: &failed}
	return known.lookUp(ctx), func() error { known.close(); return failed }, nil
}
