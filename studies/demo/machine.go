package demo

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/live"
)

// runReal runs a workload on this machine under c, in the folder work. seen, if not nil, is called now and then with
// the number of ended tasks.
func runReal(ctx context.Context, work string, c *contender, capacity resource.Vector, w *workload.Workload,
	seen func(ended int)) (*Run, error) {
	var r *Run
	var usage []Usage
	look := func(s *sandbox.Session) {
		usage = append(usage, use(s))
		if seen != nil && len(usage)%20 == 1 {
			tell(ctx, s, seen)
		}
	}
	others, err := sandbox.Run(ctx, work, c.Policy, c.Settings, capacity, 50*time.Millisecond, look,
		func(ctx context.Context, s *sandbox.Session) (cpu time.Duration, err error) {
			jobs, err := s.RunJobs(ctx, s.Input, s.Begun, w)
			if err != nil {
				return 0, err
			}
			r = record(jobs, s.Begun)
			for _, t := range r.Tasks {
				cpu += t.CPU
			}
			r.Replay, err = replay(func() (io.ReadCloser, error) { return os.Open(s.Driver.EventLog()) })
			return cpu, err
		})
	if err != nil {
		return nil, err
	}
	r.Configuration, r.Usage, r.Others = c.Label, usage, others
	return r, nil
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
			task := TaskRun{Job: i, Memory: resource.Amount(t.MemoryBytes), Booked: t.Booked.Sub(begun),
				Started: t.Started.Sub(begun), Ended: t.Ended.Sub(begun)}
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

// use returns the memory use of all containers.
func use(s *sandbox.Session) Usage {
	u := Usage{At: time.Since(s.Begun)}
	for _, r := range s.Agent.Readings() {
		if r.Anonymous != nil {
			u.Anonymous += resource.Amount(*r.Anonymous)
		}
		if r.Memory != nil {
			u.Held += resource.Amount(*r.Memory)
		}
	}
	return u
}

func tell(ctx context.Context, s *sandbox.Session, seen func(ended int)) {
	jobs, err := s.Driver.JobsAfter(ctx, 0, 1000)
	if err != nil {
		return
	}
	ended := 0
	for _, j := range jobs {
		ended += j.SucceededCount
	}
	seen(ended)
}
