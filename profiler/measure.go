package profiler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/profile"
	"github.com/bellows-rm/bellows/resource"
)

// Measurement is what one run took.
type Measurement struct {
	Duration time.Duration
	// Written is how many bytes the program wrote to files, into the page cache or past it.
	Written resource.Amount
	// Peak is the most memory the container held, page cache included; 0 is unknown.
	Peak resource.Amount
	// Resident is the most memory that one process of the program held itself; 0 is unknown.
	Resident resource.Amount
	// MajorFaults is how many pages the program had to wait for the disk for.
	MajorFaults int64
	// Failure is one clause on why the run does not count (it was killed for memory, or ended with an exit code);
	// empty if it does.
	Failure string
}

// Runner runs the program once with that much memory. An error means that nothing was measured, and that trying again
// is of no use.
type Runner interface {
	Run(ctx context.Context, memory resource.Amount) (Measurement, error)
}

// Result is what was measured at all sizes.
type Result struct {
	Fitted, HeldOut []profile.Sample
	// Failed are the sizes at which a run failed, ascending; they are in neither list.
	Failed []Failure
	// Peaks is the most memory held at each size.
	Peaks map[resource.Amount]resource.Amount
}

// Failure is a size at which the program does not work.
type Failure struct {
	Memory resource.Amount
	Why    string
}

// Measure carries a plan out. A size whose run fails is not run again. seen, if not nil, is told every run: done so far,
// of how many.
func Measure(ctx context.Context, r Runner, p *Plan, seen func(done, all int, run Run, m Measurement)) (*Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	all := map[resource.Amount][]Measurement{}
	res := &Result{Peaks: map[resource.Amount]resource.Amount{}}
	failed := func(m resource.Amount) bool {
		return slices.ContainsFunc(res.Failed, func(f Failure) bool { return f.Memory == m })
	}
	runs := p.Runs()
	for i, run := range runs {
		if failed(run.Memory) {
			continue
		}
		m, err := r.Run(ctx, run.Memory)
		if err != nil {
			return nil, fmt.Errorf("run with %s: %w", resource.FormatMemory(run.Memory), err)
		}
		if m.Failure != "" {
			res.Failed = append(res.Failed, Failure{run.Memory, m.Failure})
		} else if run.Round > 0 {
			all[run.Memory] = append(all[run.Memory], m)
			res.Peaks[run.Memory] = max(res.Peaks[run.Memory], m.Peak)
		}
		if seen != nil {
			seen(i+1, len(runs), run, m)
		}
	}
	slices.SortFunc(res.Failed, func(a, b Failure) int { return int(min(1, max(-1, a.Memory-b.Memory))) })
	for _, f := range res.Failed {
		delete(all, f.Memory)
	}
	least := leastWritten(all)
	for _, m := range p.Fitted {
		if runs := all[m]; len(runs) > 0 {
			res.Fitted = append(res.Fitted, sample(m, runs, least))
		}
	}
	for _, m := range p.HeldOut {
		if runs := all[m]; len(runs) > 0 {
			res.HeldOut = append(res.HeldOut, sample(m, runs, least))
		}
	}
	return res, nil
}

// leastWritten is what the program writes when it does not spill: its results. A median per size, because a stray page
// of something else must not become the measure of all.
func leastWritten(all map[resource.Amount][]Measurement) resource.Amount {
	least := resource.Amount(-1)
	for _, runs := range all {
		if w := medianWritten(runs); least < 0 || w < least {
			least = w
		}
	}
	return least
}

func medianWritten(runs []Measurement) resource.Amount {
	written := make([]resource.Amount, len(runs))
	for i := range runs {
		written[i] = runs[i].Written
	}
	slices.Sort(written)
	return written[(len(written)-1)/2]
}

// sample condenses the repeats at one size. The fastest stands for the size: others on the machine only add time.
func sample(memory resource.Amount, runs []Measurement, least resource.Amount) profile.Sample {
	s := profile.Sample{Memory: memory, Spilled: medianWritten(runs) - least, SpilledKnown: true}
	for _, m := range runs {
		s.Repeats = append(s.Repeats, m.Duration)
	}
	s.Duration = profile.Fastest(s.Repeats)
	return s
}
