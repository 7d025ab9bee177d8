package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/agent"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/resource"
)

// FlexResult is the result of the FLEX part.
type FlexResult struct {
	// Why says in one clause why the part was left out; empty if it was not.
	Why string `json:"why_left_out,omitempty"`

	Node      resource.Vector `json:"node"`
	Jobs      int             `json:"jobs"`
	Attempts  int             `json:"attempts"`            // per job, the first included
	Programs  []string        `json:"programs"`            // descriptions
	Missing   []string        `json:"missing,omitempty"`   // programs that this machine does not have
	Runs      []FlexRun       `json:"runs,omitempty"`      // in the order in which they ran
	Summaries []FlexSummary   `json:"summaries,omitempty"` // one per allocation
	Took      time.Duration   `json:"took_ns"`
}

// FlexSummary is the result of one allocation over all rounds.
type FlexSummary struct {
	Allocation string `json:"allocation"`
	About      string `json:"about"`
	Rounds     int    `json:"rounds"`

	Finished Figure `json:"finished"` // jobs
	Kills    Figure `json:"kills"`    // of programs, for memory
	Makespan Figure `json:"makespan_s"`
	Runtime  Figure `json:"mean_job_runtime_s"` // of jobs that finished
	// Used is the memory use of programs / the memory of the node, on average over the makespan.
	Used      Figure          `json:"utilisation"`
	AtOnce    Figure          `json:"running"`
	Cores     Figure          `json:"cores"` // used by the jobs, on average over the makespan
	Suspended Figure          `json:"suspended"`
	Swapped   resource.Amount `json:"swapped_bytes_max"`
	// Stream is the latency of the short jobs of all rounds together.
	Stream Latency `json:"stream"`
	Others *Figure `json:"other_cores,omitempty"`
}

// Latency is the time of short jobs from submission to end.
type Latency struct {
	Jobs     int     `json:"jobs"`
	Finished int     `json:"finished"`
	P50      float64 `json:"p50_s"`
	P95      float64 `json:"p95_s"`
	P99      float64 `json:"p99_s"`
}

// Flex runs the FLEX part of the demonstration, with programs that are part of bellows, submitting one job per every.
// Before it returns, it removes everything that it made, also after an error or when ctx ends.
func Flex(ctx context.Context, o Options, every time.Duration) (*FlexResult, error) {
	own := func(_ context.Context, _ string, machine resource.Amount) (*flexMix, []string, error) {
		m := ownMix(nodeMemory(machine))
		m.every = every
		return m, nil, nil
	}
	return demonstrateFlex(ctx, o, own, nil)
}

// chooseMix returns the mix for a machine with the given memory, and a sentence for each program that the machine
// lacks. dir is the folder with the programs' files.
type chooseMix func(ctx context.Context, dir string, machine resource.Amount) (m *flexMix, missing []string, err error)

// demonstrateFlex runs a mix under every allocation. kept may be nil.
func demonstrateFlex(ctx context.Context, o Options, choose chooseMix, kept *keptRuns) (*FlexResult, error) {
	if o.Show == nil {
		o.Show = func(string) {}
	}
	d := &flexDemonstration{demonstration: demonstration{Options: o, begun: time.Now()}, choose: choose, kept: kept, result: &FlexResult{}}
	defer func() { d.result.Took = time.Since(d.begun) }()
	if o.Simulate {
		d.result.Why = "it cannot be simulated"
	} else if err := d.real(ctx); err != nil {
		return nil, err
	}
	if d.result.Why != "" {
		d.say("the FLEX part is left out: %s", d.result.Why)
	}
	return d.result, nil
}

// flexDemonstration is a demonstration in progress.
type flexDemonstration struct {
	demonstration
	choose chooseMix
	mix    *flexMix
	kept   *keptRuns
	swap   *sandbox.Swap
	result *FlexResult
}

func (d *flexDemonstration) real(ctx context.Context) (err error) {
	machine, err := agent.Capacity(0, 0)
	if err != nil {
		d.result.Why = err.Error()
		return nil
	}
	leave, err := d.enter(ctx, 2*diskNeeded)
	if room, ok := errors.AsType[sandbox.NoRoomError](err); ok {
		d.result.Why = room.Error()
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := d.decide(ctx, machine[resource.Memory]); err != nil {
		return err
	}
	if _, err := agent.Capacity(d.mix.node[resource.Memory], d.mix.node[resource.CPU]); err != nil {
		d.result.Why = err.Error()
		return nil
	}
	if d.result.Why = sandbox.NoContainers(ctx, d.work); d.result.Why != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := d.needSwap(); err != nil || d.result.Why != "" {
		return err
	}
	d.say("%s; working in %s and in control groups named bellows-*, all taken away at the end", d.swap.About, d.work)
	if err := d.runAll(ctx); err != nil {
		return err
	}
	d.summarise()
	return nil
}

// decide chooses and records the mix.
func (d *flexDemonstration) decide(ctx context.Context, machine resource.Amount) (err error) {
	if d.mix, d.result.Missing, err = d.choose(ctx, filepath.Join(d.work, sandbox.InputDir), machine); err != nil {
		return err
	}
	for _, m := range d.result.Missing {
		d.say("left out: %s", m)
	}
	d.result.Node, d.result.Jobs, d.result.Attempts = d.mix.node, len(d.mix.jobs()), d.mix.attempts
	for _, p := range d.mix.programs {
		d.result.Programs = append(d.result.Programs, p.name+", "+p.about)
	}
	return nil
}

// needSwap finds or makes swap, again if the machine's swap has gone; otherwise it says why there is none.
func (d *flexDemonstration) needSwap() (err error) {
	if d.swap == nil || !d.swap.Suffices(d.mix.swap) {
		var s *sandbox.Swap
		if s, d.result.Why, err = sandbox.OpenSwap(d.work, d.mix.swap); s != nil {
			d.swap = s
		}
	}
	return err
}

// runAll runs the mix under every allocation, round after round, every second round in reverse order.
func (d *flexDemonstration) runAll(ctx context.Context) error {
	tooLate := func(round int) bool {
		next := time.Duration(0) // expected duration: that of the round before
		for i := range d.result.Runs {
			if r := &d.result.Runs[i]; r.Round == round-1 {
				next += r.Took
			}
		}
		return d.Limit > 0 && time.Since(d.begun)+next > d.Limit
	}
	leftOut, err := interleave(d.mix.allocations(), d.Rounds, tooLate, func(a *allocation, round int) error { return d.runOne(ctx, a, round) })
	if leftOut > 0 {
		d.say("left out: %s of %d, since the next would end after the limit of %v", rounds(leftOut), d.Rounds, d.Limit)
	}
	return err
}

// runOne runs the mix once, unless a kept run replaces it.
func (d *flexDemonstration) runOne(ctx context.Context, a *allocation, round int) error {
	r, err := d.kept.load(d.result, a, round)
	if err != nil {
		return err
	}
	how := "kept"
	if r == nil {
		if r, err = d.runNow(ctx, a, round); err != nil {
			return err
		}
		if err := r.Wrong(); err != nil {
			return err
		}
		if err := d.kept.save(d.result, r); err != nil {
			return err
		}
		how = fmt.Sprintf("%.0f s", r.Took.Seconds())
	}
	d.result.Runs = append(d.result.Runs, *r)
	d.say("round %d of %d, %-12s  %d of %d jobs finished, %2d kills, makespan %5.1f s (%s)",
		round, d.Rounds, a.name+":", r.Finished(), len(r.Jobs), r.Kills(), r.Makespan().Seconds(), how)
	return nil
}

func (d *flexDemonstration) runNow(ctx context.Context, a *allocation, round int) (*FlexRun, error) {
	if err := d.needSwap(); err != nil {
		return nil, err
	}
	if d.result.Why != "" {
		return nil, fmt.Errorf("round %d, %s: the machine's swap has gone: %s", round, a.name, d.result.Why)
	}
	begun := time.Now()
	r, err := runFlex(ctx, d.work, d.mix, a, func(ended, all int) {
		d.Show(fmt.Sprintf("round %d of %d, %s: %.0f s, %d of %d jobs ended", round, d.Rounds, a.name, time.Since(begun).Seconds(), ended, all))
	})
	if err != nil {
		return nil, fmt.Errorf("round %d, %s: %w", round, a.name, err)
	}
	r.Round, r.Took = round, time.Since(begun)
	return r, nil
}

func (d *flexDemonstration) summarise() {
	of := d.mix.allocations()
	for i := range of {
		d.result.Summaries = append(d.result.Summaries, summariseFlex(&of[i], d.result.of(of[i].name), d.result.Node[resource.Memory]))
	}
}

// of returns the runs under an allocation.
func (r *FlexResult) of(allocation string) (runs []*FlexRun) {
	for i := range r.Runs {
		if r.Runs[i].Allocation == allocation {
			runs = append(runs, &r.Runs[i])
		}
	}
	return runs
}

func summariseFlex(a *allocation, runs []*FlexRun, node resource.Amount) FlexSummary {
	over := func(of func(r *FlexRun) float64) Figure {
		var values []float64
		for _, r := range runs {
			values = append(values, of(r))
		}
		return figure(values)
	}
	s := FlexSummary{Allocation: a.name, About: a.about, Rounds: len(runs),
		Finished:  over(func(r *FlexRun) float64 { return float64(r.Finished()) }),
		Kills:     over(func(r *FlexRun) float64 { return float64(r.Kills()) }),
		Makespan:  over(func(r *FlexRun) float64 { return r.Makespan().Seconds() }),
		Runtime:   over(func(r *FlexRun) float64 { return r.MeanRuntime().Seconds() }),
		Used:      over(func(r *FlexRun) float64 { return r.Used() / float64(node) }),
		AtOnce:    over((*FlexRun).AtOnce),
		Cores:     over(func(r *FlexRun) float64 { return r.CPU().Seconds() / max(r.Makespan().Seconds(), 1e-9) }),
		Suspended: over((*FlexRun).Suspended),
		Stream:    latency(runs),
	}
	known := true
	for _, r := range runs {
		s.Swapped = max(s.Swapped, r.Swapped)
		known = known && r.Others != nil
	}
	if known {
		others := over(func(r *FlexRun) float64 { return *r.Others })
		s.Others = &others
	}
	return s
}

// latency returns the latency of the finished short jobs of all runs.
func latency(runs []*FlexRun) Latency {
	var l Latency
	took := latencies(runs)
	for _, r := range runs {
		l.Jobs += len(r.Stream)
	}
	l.Finished = len(took)
	l.P50, l.P95, l.P99 = percentile(took, 0.5), percentile(took, 0.95), percentile(took, 0.99)
	return l
}

// latencies returns the latencies of all finished short jobs, sorted, in seconds.
func latencies(runs []*FlexRun) (took []float64) {
	for _, r := range runs {
		for _, j := range r.Stream {
			if j.Finished {
				took = append(took, (j.Ended - j.Submitted).Seconds())
			}
		}
	}
	slices.Sort(took)
	return took
}

// percentile returns the smallest of the sorted values that the given share of them does not exceed; 0 without values.
func percentile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(len(sorted), max(1, rank))-1]
}

// byMakespan returns the runs sorted by makespan, the fastest first.
func byMakespan(runs []*FlexRun) []*FlexRun {
	return slices.SortedStableFunc(slices.Values(runs), func(a, b *FlexRun) int { return cmp.Compare(a.Makespan(), b.Makespan()) })
}
