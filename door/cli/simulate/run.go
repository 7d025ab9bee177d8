package simulate

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
	"github.com/bellows-rm/bellows/sim/sweep"
	"github.com/bellows-rm/bellows/sim/trial"
)

// Run is the result of one trial.
type Run struct {
	Trial  *trial.Trial // nil if its workload could not be made
	Result *sim.Result  // nil if Err is set
	Bounds bound.Bounds
	Err    error
	// CPU is the CPU time of the process if runs are made one at a time, else of the run's thread.
	CPU, Wall time.Duration
}

// errInterrupted is the error of interrupted runs.
var errInterrupted = errors.New("interrupted")

// Interrupted reports whether a run was stopped because the user interrupted the command.
func (r *Run) Interrupted() bool { return errors.Is(r.Err, errInterrupted) }

// RunAll runs all trials, several at a time, and calls each with their results, in their order. Before a trial begins,
// prepare is called with it, unless prepare is nil; several goroutines call it. When ctx ends, trials that have not
// ended are stopped. If progress is a terminal, RunAll shows the progress on it.
func (s *Study) RunAll(ctx context.Context, progress io.Writer, prepare func(i int, t *trial.Trial),
	each func(i int, r Run)) {
	title := "runs"
	if s.Seeds == 1 {
		title = "jobs ended"
	}
	show := terminal.NewProgress(progress, title)
	defer show.Clear()
	// Neither an error nor the end of ctx ends the sweep: both are recorded in their run.
	_ = sweep.Run(context.WithoutCancel(ctx), s.Runs(), 0, func(i int) (Run, error) {
		r, err := Until(ctx, func() (Run, error) { return s.one(ctx, i, prepare, show), nil })
		if err != nil {
			r.Err = errInterrupted
		}
		return r, nil
	}, func(i int, r Run) {
		each(i, r)
		if s.Seeds > 1 {
			show.Set("", i+1, s.Runs())
		}
	})
}

// alone reports whether runs are made one at a time.
func (s *Study) alone() bool { return s.Runs() == 1 || sweep.Workers(0) == 1 }

// one runs trial i.
func (s *Study) one(ctx context.Context, i int, prepare func(int, *trial.Trial), show *terminal.Progress) (r Run) {
	p, k := s.Place(i)
	w := s.Workload
	if k > 0 {
		if w, r.Err = s.draw(ctx, k); r.Err != nil {
			return r
		}
	}
	if r.Trial, r.Err = s.Contenders[p].On(s.Config, w); r.Err != nil {
		return r
	}
	r.Bounds = r.Trial.Bounds(s.iterations())
	if s.Seeds == 1 {
		r.Trial.Cluster.Progress = func(ended, jobs int, _ timeline.Time) { show.Set(r.Trial.Label, ended, jobs) }
	}
	if s.options.history {
		r.Trial.Cluster.History = &profile.History{}
	}
	if prepare != nil {
		prepare(i, r.Trial)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clock := int32(unix.CLOCK_THREAD_CPUTIME_ID)
	if s.alone() {
		clock = unix.CLOCK_PROCESS_CPUTIME_ID
	}
	cpu, begin := cpuTime(clock), time.Now()
	r.Result, r.Err = r.Trial.Run()
	r.Wall, r.CPU = time.Since(begin), cpuTime(clock)-cpu
	return r
}

// cpuTime returns the value of a CPU clock.
func cpuTime(clock int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(clock, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Outcome returns the numbers of run i. A run with jobs that failed or did not end has none.
func (s *Study) Outcome(i int, r *Run) trial.Outcome {
	p, _ := s.Place(i)
	o := trial.Outcome{Contender: p, Seed: s.SeedOf(i)}
	err := r.Err
	if err == nil {
		err = trial.Finished(r.Result)
	}
	if err != nil {
		o.Error = err.Error()
		return o
	}
	o.Measure(r.Result, r.Bounds)
	return o
}
