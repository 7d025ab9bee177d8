package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/daemon"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/node/agent"
	"github.com/bellows-rm/bellows/node/profiler"
)

// Machine is this machine, managed as `bellows up` would manage it, in this process, with a state directory of its own
// and no socket. It serves one run.
type Machine struct {
	*daemon.Daemon
	dir string // has the state directory and what the daemon leaves beside it
}

// Open opens the daemon under a policy, in a new directory below work. Jobs share capacity.
func Open(work, policy string, settings map[string]string, capacity resource.Vector) (*Machine, error) {
	dir, err := os.MkdirTemp(work, "state-")
	if err != nil {
		return nil, err
	}
	m, err := reopen(dir, policy, settings, capacity)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

// reopen opens the daemon, in a directory that an earlier machine may have used.
func reopen(dir, name string, settings map[string]string, capacity resource.Vector) (*Machine, error) {
	p, err := policy.New(name, settings)
	if err != nil {
		return nil, err
	}
	d, err := daemon.Open(daemon.Config{State: filepath.Join(dir, "state"), Log: slog.New(slog.DiscardHandler),
		Agent: agent.Config{Capacity: capacity}, Driver: live.Config{Policy: p, Settings: settings}})
	if err != nil {
		return nil, err
	}
	return &Machine{d, dir}, nil
}

// End ends all jobs and removes everything that Open made, even if ctx has ended.
func (m *Machine) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(m.Driver.Shutdown(ctx, true), m.Remove(ctx), os.RemoveAll(m.dir))
}

// RunJobs submits each job of a workload at its time after begun, as Caller, and waits until all have ended. Programs
// run in dir.
func (m *Machine) RunJobs(ctx context.Context, dir string, begun time.Time, w *workload.Workload) ([]api.Job, error) {
	var ids []cluster.JobID
	for i := range w.Jobs {
		j := &w.Jobs[i]
		select {
		case <-time.After(time.Until(begun.Add(time.Duration(j.Submitted)))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		id, err := m.Driver.Submit(ctx, live.Submission{Job: measured(j.Job), Caller: Caller(), Env: Environment(), Dir: dir})
		if err != nil {
			return nil, fmt.Errorf("submit job %q: %w", j.Name, err)
		}
		ids = append(ids, id)
	}
	var jobs []api.Job
	for _, id := range ids {
		j, err := m.Driver.Wait(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait for job %d: %w", id, err)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// measured returns j without the names of profiles. The profiles have filled in its stages, and the store does not have
// them.
func measured(j cluster.Job) cluster.Job {
	j.Stages = slices.Clone(j.Stages)
	for i := range j.Stages {
		j.Stages[i].Profile = ""
	}
	return j
}

// Caller returns the user that runs this process: tasks run with the same rights.
func Caller() cluster.Credentials {
	c := cluster.Credentials{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	if groups, err := os.Getgroups(); err == nil {
		for _, g := range groups {
			c.Groups = append(c.Groups, uint32(g))
		}
	}
	if u, err := user.LookupId(fmt.Sprint(c.UID)); err == nil {
		c.User = u.Username
	}
	return c
}

// Environment returns the environment of every program.
func Environment() []string {
	path := os.Getenv("PATH")
	if path == "" {
		path = "/usr/bin:/bin"
	}
	return []string{"PATH=" + path, "LC_ALL=C"}
}

// NoContainers returns in one clause why containers are not possible here; empty if they are.
func NoContainers(ctx context.Context, work string) string {
	c, err := profiler.NewContainer(cluster.Command{Args: []string{"true"}}, Environment(), work, resource.Core)
	if err == nil {
		var m profiler.Measurement
		if m, err = c.Run(ctx, 16*resource.MiB); err == nil && m.Failure != "" {
			err = fmt.Errorf("a container does not run: %s", m.Failure)
		}
		if closing := c.Close(); err == nil {
			err = closing
		}
	}
	if err != nil {
		return strings.TrimPrefix(err.Error(), "measuring needs control groups: ")
	}
	return ""
}
