package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/daemon"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// machine is this machine as `bellows up` would manage it, in this process, with a state directory of its own and no socket. It
// serves one run.
type machine struct {
	*daemon.Daemon
	dir string // of the state
}

// openMachine brings everything up, in a new directory below work.
func openMachine(work string, c *configuration, capacity resource.Vector) (*machine, error) {
	dir, err := os.MkdirTemp(work, "state-")
	if err != nil {
		return nil, err
	}
	m, err := reopenMachine(dir, c, capacity)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return m, nil
}

// reopenMachine brings everything up, in a directory that may have been a machine's before.
func reopenMachine(dir string, c *configuration, capacity resource.Vector) (*machine, error) {
	p, err := policy.New(c.policy, c.settings)
	if err != nil {
		return nil, err
	}
	d, err := daemon.Open(daemon.Config{State: dir, Log: slog.New(slog.DiscardHandler),
		Agent: agent.Config{Capacity: capacity}, Driver: live.Config{Policy: p, Settings: c.settings}})
	if err != nil {
		return nil, err
	}
	return &machine{d, dir}, nil
}

// close ends all jobs and takes everything away again, whatever has become of ctx.
func (m *machine) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(m.Driver.Shutdown(ctx, true), m.Remove(ctx), os.RemoveAll(m.dir))
}

// runReal runs a workload on this machine under c, as work says. seen, if not nil, is told now and then how many tasks have
// ended.
func runReal(ctx context.Context, work string, c *configuration, capacity resource.Vector, w *workload.Workload, seen func(ended int)) (r *Run, err error) {
	m, err := openMachine(work, c, capacity)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	s := &sampler{machine: m, begun: begun, seen: seen}
	busyBefore, _ := profiler.BusyTime()
	var sampling sync.WaitGroup
	sampling.Go(func() { s.run(ctx) })
	jobs, err := m.runJobs(ctx, filepath.Join(work, inputDir), begun, w)
	cancel()
	sampling.Wait()
	if err != nil {
		return nil, err
	}
	busyAfter, known := profiler.BusyTime()
	took := time.Since(begun)
	r = record(jobs, begun)
	r.Configuration, r.Usage = c.name, s.usage
	if known {
		ours := time.Duration(0)
		for _, t := range r.Tasks {
			ours += t.CPU
		}
		others := max(0, (busyAfter-busyBefore-ours).Seconds()/took.Seconds())
		r.Others = &others
	}
	r.Replay, err = replay(func() (io.ReadCloser, error) { return os.Open(m.Driver.EventLog()) })
	return r, err
}

// runJobs submits each job at its time and waits for all.
func (m *machine) runJobs(ctx context.Context, dir string, begun time.Time, w *workload.Workload) ([]live.Job, error) {
	var ids []cluster.JobID
	for i := range w.Jobs {
		j := &w.Jobs[i]
		select {
		case <-time.After(time.Until(begun.Add(time.Duration(j.Submitted)))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		id, err := m.Driver.Submit(ctx, live.Submission{Job: measured(j.Job), Caller: caller(), Env: environment(), Dir: dir})
		if err != nil {
			return nil, fmt.Errorf("submit job %q: %w", j.Name, err)
		}
		ids = append(ids, id)
	}
	var jobs []live.Job
	for _, id := range ids {
		j, err := m.Driver.Wait(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("wait for job %d: %w", id, err)
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// caller is whoever runs the demonstration: its tasks run with the same rights.
func caller() cluster.Credentials {
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

// record turns what the driver tells of jobs into a Run.
func record(jobs []live.Job, begun time.Time) *Run {
	r := &Run{}
	for i, j := range jobs {
		job := JobRun{Name: j.Name, Submitted: j.Submitted.Sub(begun), Ended: j.Finished.Sub(begun)}
		if j.Status != cluster.StatusSucceeded.String() {
			job.Failed = j.Status + ": " + j.Detail
		}
		r.Jobs = append(r.Jobs, job)
		for _, t := range j.Tasks {
			task := TaskRun{Job: i, Memory: resource.Amount(t.MemoryBytes), Booked: t.Booked.Sub(begun), Started: t.Started.Sub(begun), Ended: t.Ended.Sub(begun)}
			task.Killed = t.Outcome == cluster.OutOfMemory.String() || t.Exit != nil && t.Exit.OOMKills > 0
			if t.Exit != nil {
				task.CPU = t.Exit.CPUTime
			}
			r.Tasks = append(r.Tasks, task)
		}
	}
	r.sortTasks()
	return r
}

// sampler records what containers use.
type sampler struct {
	machine *machine
	begun   time.Time
	seen    func(ended int)
	usage   []Usage
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	const every = 50 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		u := Usage{At: time.Since(s.begun)}
		for _, r := range s.machine.Agent.Readings() {
			if r.Anonymous != nil {
				u.Anonymous += resource.Amount(*r.Anonymous)
			}
			if r.Memory != nil {
				u.Held += resource.Amount(*r.Memory)
			}
		}
		s.usage = append(s.usage, u)
		if s.seen != nil && n%20 == 0 {
			s.tell(ctx)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *sampler) tell(ctx context.Context) {
	jobs, err := s.machine.Driver.JobsAfter(ctx, 0, 1000)
	if err != nil {
		return
	}
	ended := 0
	for _, j := range jobs {
		ended += j.SucceededCount
	}
	s.seen(ended)
}

// measured returns j without the names of profiles, which have filled its stages in: the store has none of them.
func measured(j cluster.Job) cluster.Job {
	j.Stages = slices.Clone(j.Stages)
	for i := range j.Stages {
		j.Stages[i].Profile = ""
	}
	return j
}
