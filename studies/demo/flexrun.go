package demo

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/store"
)

// FlexRun is one run of a mix of programs whose memory use rises and falls, under one contender. Times count from the
// beginning of the run.
type FlexRun struct {
	Allocation string    `json:"allocation"`
	Round      int       `json:"round"` // from 1
	Jobs       []FlexJob `json:"jobs"`
	Stream     []FlexJob `json:"stream"`
	// Others is how many cores other work on the machine used, on average; nil is unknown.
	Others *float64 `json:"other_cores,omitempty"`
	// Swapped is the largest amount in swap at a time.
	Swapped resource.Amount `json:"swapped_bytes_max"`
	// Slots is how many containers have cores at the same time.
	Slots   int           `json:"slots"`
	Took    time.Duration `json:"took_ns"` // setup included
	samples []sample
}

// FlexJob is a job in a FlexRun.
type FlexJob struct {
	Name      string        `json:"name"`
	Submitted time.Duration `json:"submitted_ns"`
	Started   time.Duration `json:"started_ns"` // the newest attempt; 0 is never
	Ended     time.Duration `json:"ended_ns"`
	Finished  bool          `json:"finished"` // its program succeeded with a right result
	// Attempts is how often its program was started, Kills how often the kernel or bellows killed it for memory.
	Attempts int `json:"attempts"`
	Kills    int `json:"kills"`
	// Refused is how often the machine did not start it for lack of memory.
	Refused int           `json:"refused"`
	CPU     time.Duration `json:"cpu_ns"` // of all attempts
	// Wrong is a failure for another cause than memory: a wrong result, a lost program.
	Wrong string `json:"wrong,omitempty"`
	// ID is the job's id in samples.
	ID cluster.JobID `json:"job"`
}

// sample is the memory of containers at one time.
type sample struct {
	at         time.Duration
	containers []held
	waiting    int // containers that wait for memory before their programs begin
}

// held is the memory of one container.
type held struct {
	id                     cluster.ContainerID
	anonymous, swap, limit resource.Amount
	suspended              bool
}

// Makespan is the time until the last of the jobs ended.
func (r *FlexRun) Makespan() time.Duration {
	var last time.Duration
	for _, j := range r.Jobs {
		last = max(last, j.Ended)
	}
	return last
}

// Finished and Kills count over the jobs.
func (r *FlexRun) Finished() (n int) {
	for _, j := range r.Jobs {
		if j.Finished {
			n++
		}
	}
	return n
}

func (r *FlexRun) Kills() (n int) {
	for _, j := range r.Jobs {
		n += j.Kills
	}
	return n
}

// CPU is the CPU time of the jobs' programs, without the stream.
func (r *FlexRun) CPU() (all time.Duration) {
	for _, j := range r.Jobs {
		all += j.CPU
	}
	return all
}

// streamCPU is the CPU time of the stream.
func (r *FlexRun) streamCPU() (all time.Duration) {
	for _, j := range r.Stream {
		all += j.CPU
	}
	return all
}

// MeanRuntime is the mean time from submission to end of the jobs that finished; 0 if none did.
func (r *FlexRun) MeanRuntime() time.Duration {
	var all time.Duration
	for _, j := range r.Jobs {
		if j.Finished {
			all += j.Ended - j.Submitted
		}
	}
	return all / time.Duration(max(1, r.Finished()))
}

// over returns the mean of a value of samples over the makespan.
func (r *FlexRun) over(of func(s *sample) float64) float64 {
	return overTime(len(r.samples), r.Makespan(), func(i int) time.Duration { return r.samples[i].at },
		func(i int) float64 { return of(&r.samples[i]) })
}

// Used is the memory use of programs, on average over the makespan, bytes.
func (r *FlexRun) Used() float64 {
	return r.over(func(s *sample) float64 {
		var all resource.Amount
		for _, c := range s.containers {
			all += c.anonymous
		}
		return float64(all)
	})
}

// AtOnce is how many of the jobs' containers ran without being suspended, Suspended how many were suspended, on average
// over the makespan.
func (r *FlexRun) AtOnce() float64 {
	return r.over(func(s *sample) float64 { return r.count(s, false) })
}
func (r *FlexRun) Suspended() float64 {
	return r.over(func(s *sample) float64 { return r.count(s, true) })
}

// startsWithin is the time within which a job starts that waits for nothing.
const startsWithin = 500 * time.Millisecond

// waits reports whether anyone waits for memory: a program that is suspended, a container that has not begun, or a
// job that has not been started although there are cores for it.
func (r *FlexRun) waits(s *sample) bool {
	if s.waiting > 0 || slices.ContainsFunc(s.containers, func(c held) bool { return c.suspended }) {
		return true
	}
	queued := func(j FlexJob) bool { return j.Submitted+startsWithin <= s.at && s.at < j.Started }
	return len(s.containers) < r.Slots && (slices.ContainsFunc(r.Jobs, queued) || slices.ContainsFunc(r.Stream, queued))
}

// Waiting is the share of the makespan in which anyone waits for memory.
func (r *FlexRun) Waiting() float64 {
	return r.over(func(s *sample) float64 {
		if r.waits(s) {
			return 1
		}
		return 0
	})
}

// whileWaiting is the sum over the containers of an amount, on average over the time in which anyone waits for
// memory; 0 if there is none.
func (r *FlexRun) whileWaiting(of func(*held) resource.Amount) float64 {
	sum := r.over(func(s *sample) (all float64) {
		if r.waits(s) {
			for i := range s.containers {
				all += float64(of(&s.containers[i]))
			}
		}
		return all
	})
	return sum / max(r.Waiting(), 1e-9)
}

// UsedWaiting is the memory use of programs, and GrantedWaiting the limits of their containers, on average while
// anyone waits for memory, bytes.
func (r *FlexRun) UsedWaiting() float64 {
	return r.whileWaiting(func(c *held) resource.Amount { return c.anonymous })
}
func (r *FlexRun) GrantedWaiting() float64 {
	return r.whileWaiting(func(c *held) resource.Amount { return c.limit })
}

// standstill returns how long a job was suspended in total.
func (r *FlexRun) standstill(job cluster.JobID) time.Duration {
	share := r.over(func(s *sample) float64 {
		if slices.ContainsFunc(s.containers, func(c held) bool { return c.suspended && c.id.Task.Job == job }) {
			return 1
		}
		return 0
	})
	return time.Duration(share * float64(r.Makespan()))
}

func (r *FlexRun) count(s *sample, suspended bool) float64 {
	n := 0
	for _, c := range s.containers {
		if c.suspended == suspended && slices.ContainsFunc(r.Jobs, func(j FlexJob) bool { return j.ID == c.id.Task.Job }) {
			n++
		}
	}
	return float64(n)
}

// Wrong returns the first failure of a job for another cause than memory; nil if there is none.
func (r *FlexRun) Wrong() error {
	for _, j := range slices.Concat(r.Jobs, r.Stream) {
		if j.Wrong != "" {
			return fmt.Errorf("job %s: %s", j.Name, j.Wrong)
		}
	}
	return nil
}

// runFlex runs the mix on this machine under a contender.
func runFlex(ctx context.Context, work string, mix *flexMix, a *contender, seen func(ended, all int)) (r *FlexRun,
	err error) {
	r = &FlexRun{Allocation: a.Label, Slots: int(mix.node[resource.CPU] / mix.cpu)}
	r.Others, err = sandbox.Run(ctx, work, a.Policy, a.Settings, mix.node, 100*time.Millisecond, r.sample,
		func(ctx context.Context, s *sandbox.Session) (time.Duration, error) {
			f := &flexInProgress{Session: s, mix: mix, run: r}
			if err := f.play(ctx, a, seen); err != nil {
				return 0, err
			}
			return r.CPU() + r.streamCPU(), nil
		})
	return r, err
}

// flexInProgress is a run in progress.
type flexInProgress struct {
	*sandbox.Session
	mix *flexMix
	run *FlexRun
}

func (f *flexInProgress) submit(ctx context.Context, j cluster.Job, args []string) (cluster.JobID, error) {
	j.Stages = slices.Clone(j.Stages)
	j.Stages[0].Args = args
	id, err := f.Driver.Submit(ctx, live.Submission{Job: j, Caller: sandbox.Caller(), Env: sandbox.Environment(),
		Dir: f.Input})
	if err != nil {
		return 0, fmt.Errorf("submit job %q: %w", j.Name, err)
	}
	return id, nil
}

// play submits the jobs and the stream, and waits for all of them.
func (f *flexInProgress) play(ctx context.Context, a *contender, seen func(ended, all int)) error {
	stream, stop := context.WithCancel(ctx)
	defer stop()
	var streaming sync.WaitGroup
	var streamed []FlexJob
	var streamErr error
	streaming.Go(func() { streamed, streamErr = f.stream(ctx, stream) })
	all := f.mix.jobs()
	var ids []cluster.JobID
	for i := range all {
		if err := pause(ctx, time.Until(f.Begun.Add(time.Duration(i)*f.mix.every))); err != nil {
			return err
		}
		job, args := all[i].job(f.mix, a)
		id, err := f.submit(ctx, job, args)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	for i, id := range ids {
		seen(i, len(ids))
		j, err := f.await(ctx, id)
		if err != nil {
			return err
		}
		j.Name = fmt.Sprintf("%s %.2g", j.Name, all[i].share)
		f.run.Jobs = append(f.run.Jobs, j)
	}
	if err := pause(ctx, time.Until(f.Begun.Add(f.mix.least))); err != nil {
		return err
	}
	stop()
	streaming.Wait()
	f.run.Stream = streamed
	return streamErr
}

// stream submits short jobs until more ends, and waits for the submitted ones.
func (f *flexInProgress) stream(ctx, more context.Context) ([]FlexJob, error) {
	var ids []cluster.JobID
	stage := cluster.Stage{Name: "short", Tasks: 1, Ideal: resource.Of(f.mix.cpu, f.mix.streamSize)}
	for i := 0; ; i++ {
		// It begins in the middle of an interval, so that the first short job is not always alone.
		at := f.mix.streamEvery/2 + time.Duration(i)*f.mix.streamEvery
		if pause(more, time.Until(f.Begun.Add(at))) != nil {
			break
		}
		id, err := f.submit(ctx, cluster.Job{Name: "short", MaxAttempts: f.mix.attempts, Stages: []cluster.Stage{stage}},
			f.mix.stream)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	var jobs []FlexJob
	for _, id := range ids {
		j, err := f.await(ctx, id)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}

// pause waits for the given time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits for the end of a job.
func (f *flexInProgress) await(ctx context.Context, id cluster.JobID) (FlexJob, error) {
	j, err := f.Driver.Wait(ctx, id)
	if err != nil {
		return FlexJob{}, fmt.Errorf("wait for job %d: %w", id, err)
	}
	out := FlexJob{Name: j.Name, Submitted: f.Since(j.Submitted), Ended: f.Since(j.Finished),
		Finished: j.Status == cluster.StatusSucceeded, ID: id}
	runs, err := f.Store.Tasks(ctx, id)
	if err != nil {
		return FlexJob{}, fmt.Errorf("look up the attempts of job %d: %w", id, err)
	}
	for i := range runs {
		out.take(&runs[i], f)
	}
	if !out.Finished && out.Kills == 0 && out.Refused == 0 && out.Wrong == "" {
		out.Wrong = "ended as " + j.Status.String() + ": " + j.Detail
	}
	return out, nil
}

// take counts one attempt.
func (j *FlexJob) take(t *store.Task, f *flexInProgress) {
	if t.Exit == nil && t.Outcome != cluster.Preempted {
		j.Refused++ // its program never began
		return
	}
	j.Attempts++
	if t.Started > 0 {
		j.Started = f.Since(time.Unix(0, int64(t.Started)))
	}
	if t.Exit != nil {
		j.CPU += t.Exit.CPUTime
	}
	switch {
	case t.Outcome == cluster.Succeeded:
	case t.Outcome == cluster.OutOfMemory, t.Outcome == cluster.Preempted, t.Exit.OOMKills > 0, f.mix.outOfMemory > 0 &&
		t.Exit.Code == f.mix.outOfMemory:
		j.Kills++
	default:
		j.Wrong = fmt.Sprintf("ended as %s with exit code %d: %s", t.Outcome, t.Exit.Code, t.Detail)
	}
}

// sample records the memory of containers.
func (r *FlexRun) sample(s *sandbox.Session) {
	readings := s.Agent.Readings()
	now := sample{at: time.Since(s.Begun), containers: hold(readings)}
	for _, r := range readings {
		if r.State == cluster.ContainerWaiting {
			now.waiting++
		}
	}
	swapped := resource.Amount(0)
	for _, h := range now.containers {
		swapped += h.swap
	}
	r.samples = append(r.samples, now)
	r.Swapped = max(r.Swapped, swapped)
}

// hold returns the memory of containers, without containers whose programs have not begun for lack of memory.
func hold(readings map[cluster.ContainerID]cluster.Reading) (all []held) {
	for id, r := range readings {
		if r.State == cluster.ContainerWaiting {
			continue
		}
		h := held{id: id, suspended: r.State == cluster.ContainerSuspended}
		for to, from := range map[*resource.Amount]*int64{&h.anonymous: r.Anonymous, &h.swap: r.Swap, &h.limit: r.Limit} {
			if from != nil {
				*to = resource.Amount(*from)
			}
		}
		all = append(all, h)
	}
	return all
}
