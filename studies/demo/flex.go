package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/node/agent"
)

// FlexResult is the result of the part flex, or of the part real with one number of jobs.
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

// FlexSummary is the result of one contender over all rounds.
type FlexSummary struct {
	Allocation string `json:"allocation"`
	About      string `json:"about"`
	Rounds     int    `json:"rounds"`

	Finished Figure `json:"finished"` // jobs
	Kills    Figure `json:"kills"`    // of programs, for memory
	Makespan Figure `json:"makespan_s"`
	Runtime  Figure `json:"mean_job_runtime_s"` // of jobs that finished
	// Used is the memory use of programs / the memory of the node, on average over the makespan.
	Used Figure `json:"utilisation"`
	// Waiting is the share of the makespan in which anyone waits for memory; UsedWaiting and GrantedWaiting are what
	// programs use, and the limits of their containers, over the memory of the node, on average then. They are 0 if
	// there is no such time.
	Waiting        Figure `json:"waiting"`
	UsedWaiting    Figure `json:"utilisation_while_waiting"`
	GrantedWaiting Figure `json:"granted_while_waiting"`
	// CoresUsed is the CPU time of the jobs and of the short ones / cores × makespan.
	CoresUsed Figure          `json:"core_utilisation"`
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
	d := &flexDemonstration{demonstration: begin(o), choose: choose, kept: kept, result: &FlexResult{}}
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
	d.say("%s; working in %s and in control groups named bellows-*, all removed at the end", d.swap.About, d.work)
	if err := d.repeat(d.mix.contenders(), func(c *contender, round int) (time.Duration, error) {
		return d.runOne(ctx, c, round)
	}); err != nil {
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

// runOne runs the mix once, unless a kept run replaces it.
func (d *flexDemonstration) runOne(ctx context.Context, a *contender, round int) (time.Duration, error) {
	r, err := d.kept.load(d.result, a, round)
	how := "kept"
	if err == nil && r == nil {
		if r, err = d.runNow(ctx, a, round); err == nil {
			err = d.kept.save(d.result, r)
			how = fmt.Sprintf("%.0f s", r.Took.Seconds())
		}
	}
	if err != nil {
		return 0, err
	}
	d.result.Runs = append(d.result.Runs, *r)
	d.say("round %d of %d, %-12s  %d of %d jobs finished, %2d kills, makespan %5.1f s (%s)",
		round, d.Rounds, a.Label+":", r.Finished(), len(r.Jobs), r.Kills(), r.Makespan().Seconds(), how)
	return r.Took, nil
}

func (d *flexDemonstration) runNow(ctx context.Context, a *contender, round int) (*FlexRun, error) {
	if err := d.needSwap(); err != nil {
		return nil, err
	}
	if d.result.Why != "" {
		return nil, fmt.Errorf("the machine's swap has gone: %s", d.result.Why)
	}
	begun := time.Now()
	r, err := runFlex(ctx, d.work, d.mix, a, func(ended, all int) {
		d.Show(fmt.Sprintf("round %d of %d, %s: %.0f s, %d of %d jobs ended", round, d.Rounds, a.Label,
			time.Since(begun).Seconds(), ended, all))
	})
	if err != nil {
		return nil, err
	}
	r.Round, r.Took = round, time.Since(begun)
	return r, r.Wrong()
}

func (d *flexDemonstration) summarise() {
	all := d.mix.contenders()
	for i := range all {
		d.result.Summaries = append(d.result.Summaries, summariseFlex(&all[i], d.result.of(&all[i]), d.result.Node))
	}
}

// of returns the runs of one contender.
func (r *FlexResult) of(c *contender) []*FlexRun {
	return among(r.Runs, func(r *FlexRun) bool { return r.Allocation == c.Label })
}

func summariseFlex(a *contender, runs []*FlexRun, node resource.Vector) FlexSummary {
	memory, cores := float64(node[resource.Memory]), float64(node[resource.CPU])/float64(resource.Core)
	s := FlexSummary{Allocation: a.Label, About: a.about, Rounds: len(runs),
		Finished:       over(runs, func(r *FlexRun) float64 { return float64(r.Finished()) }),
		Kills:          over(runs, func(r *FlexRun) float64 { return float64(r.Kills()) }),
		Makespan:       over(runs, func(r *FlexRun) float64 { return r.Makespan().Seconds() }),
		Runtime:        over(runs, func(r *FlexRun) float64 { return r.MeanRuntime().Seconds() }),
		Used:           over(runs, func(r *FlexRun) float64 { return r.Used() / memory }),
		Waiting:        over(runs, (*FlexRun).Waiting),
		UsedWaiting:    over(runs, func(r *FlexRun) float64 { return r.UsedWaiting() / memory }),
		GrantedWaiting: over(runs, func(r *FlexRun) float64 { return r.GrantedWaiting() / memory }),
		CoresUsed: over(runs, func(r *FlexRun) float64 {
			return (r.CPU() + r.streamCPU()).Seconds() / max(cores*r.Makespan().Seconds(), 1e-9)
		}),
		AtOnce:    over(runs, (*FlexRun).AtOnce),
		Cores:     over(runs, func(r *FlexRun) float64 { return r.CPU().Seconds() / max(r.Makespan().Seconds(), 1e-9) }),
		Suspended: over(runs, (*FlexRun).Suspended),
		Stream:    latency(runs),
		Others:    overIfKnown(runs, func(r *FlexRun) *float64 { return r.Others }),
	}
	for _, r := range runs {
		s.Swapped = max(s.Swapped, r.Swapped)
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
	return stat.Quantile(share, stat.Empirical, sorted, nil)
}
