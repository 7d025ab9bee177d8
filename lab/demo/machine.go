package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/profiler"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/workload"
)

// runReal runs a workload on this machine under c, in the folder work. seen, if not nil, is called now and then with
// the number of ended tasks.
func runReal(ctx context.Context, work string, c *configuration, capacity resource.Vector, w *workload.Workload, seen func(ended int)) (r *Run, err error) {
	m, err := sandbox.Open(work, c.policy, c.settings, capacity)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.End(ctx)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	s := &sampler{machine: m, begun: begun, seen: seen}
	busyBefore, _ := profiler.BusyTime()
	var sampling sync.WaitGroup
	sampling.Go(func() { s.run(ctx) })
	jobs, err := m.RunJobs(ctx, filepath.Join(work, sandbox.InputDir), begun, w)
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

// record converts the driver's information on jobs into a Run.
func record(jobs []live.Job, begun time.Time) *Run {
	r := &Run{}
	for i, j := range jobs {
		job := JobRun{Name: j.Name, Submitted: j.Submitted.Sub(begun), Ended: j.Finished.Sub(begun)}
		if j.Status != cluster.StatusSucceeded {
			job.Failed = j.Status.String() + ": " + j.Detail
		}
		r.Jobs = append(r.Jobs, job)
		for _, t := range j.Tasks {
			task := TaskRun{Job: i, Memory: resource.Amount(t.MemoryBytes), Booked: t.Booked.Sub(begun), Started: t.Started.Sub(begun), Ended: t.Ended.Sub(begun)}
			task.Killed = t.Outcome == cluster.OutOfMemory || t.Exit != nil && t.Exit.OOMKills > 0
			if t.Exit != nil {
				task.CPU = t.Exit.CPUTime
			}
			r.Tasks = append(r.Tasks, task)
		}
	}
	r.sortTasks()
	return r
}

// sampler records the memory use of containers.
type sampler struct {
	machine *sandbox.Machine
	begun   time.Time
	seen    func(ended int)
	usage   []Usage
}

// run takes samples until ctx ends.
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
