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
	"github.com/bellows-rm/bellows/resource"
)

// FlexResult is everything that came of the FLEX part.
type FlexResult struct {
	// Why says in one clause why the part was left out; empty if it was not.
	Why string `json:"why_left_out,omitempty"`

	Node      resource.Vector `json:"node"`
	Jobs      int             `json:"jobs"`
	Attempts  int             `json:"attempts"`            // of a job, the first included
	Programs  []string        `json:"programs"`            // what they are
	Missing   []string        `json:"missing,omitempty"`   // programs that this machine does not have
	Runs      []FlexRun       `json:"runs,omitempty"`      // in the order in which they ran
	Summaries []FlexSummary   `json:"summaries,omitempty"` // one per allocation
	Took      time.Duration   `json:"took_ns"`
}

// FlexSummary is what came of one allocation over all rounds.
type FlexSummary struct {
	Allocation string `json:"allocation"`
	About      string `json:"about"`
	Rounds     int    `json:"rounds"`

	Finished Figure `json:"finished"` // jobs
	Kills    Figure `json:"kills"`    // of programs, for memory
	Makespan Figure `json:"makespan_s"`
	Runtime  Figure `json:"mean_job_runtime_s"` // of jobs that finished
	// Used is what programs held in memory over the memory of the node, on average over the makespan.
	Used      Figure          `json:"utilisation"`
	AtOnce    Figure          `json:"running"`
	Suspended Figure          `json:"suspended"`
	Swapped   resource.Amount `json:"swapped_bytes_max"`
	// Stream is of the short jobs of all rounds together.
	Stream Latency `json:"stream"`
	Others *Figure `json:"other_cores,omitempty"`
}

// Latency is how long short jobs took from submission to end.
type Latency struct {
	Jobs     int     `json:"jobs"`
	Finished int     `json:"finished"`
	P50      float64 `json:"p50_s"`
	P95      float64 `json:"p95_s"`
	P99      float64 `json:"p99_s"`
}

// Flex carries the FLEX part of the demonstration out. It takes away everything it made before it returns, also after an
// error or when ctx ends.
//
// The programs are part of bellows if jobs is 0, else real ones, of which so many jobs are run.
func Flex(ctx context.Context, o Options, jobs int) (res *FlexResult, err error) {
	if o.Show == nil {
		o.Show = func(string) {}
	}
	d := &flexDemonstration{demonstration: demonstration{Options: o, begun: time.Now()}, jobs: jobs, result: &FlexResult{}}
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

// flexDemonstration is one in progress.
type flexDemonstration struct {
	demonstration
	jobs   int // 0: programs of our own
	mix    *flexMix
	swap   *demoSwap
	result *FlexResult
}

func (d *flexDemonstration) real(ctx context.Context) (err error) {
	machine, err := agent.Capacity(0, 0)
	if err != nil {
		d.result.Why = err.Error()
		return nil
	}
	leave, err := d.enter(ctx, 2*diskNeeded)
	if room, ok := errors.AsType[noRoomError](err); ok {
		d.result.Why = room.Error()
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := d.choose(ctx, machine[resource.Memory]); err != nil {
		return err
	}
	if _, err := agent.Capacity(d.mix.node[resource.Memory], d.mix.node[resource.CPU]); err != nil {
		d.result.Why = err.Error()
		return nil
	}
	if d.result.Why = containersImpossible(ctx, d.work); d.result.Why != "" || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := d.needSwap(); err != nil || d.result.Why != "" {
		return err
	}
	d.say("%s; working in %s and in control groups named bellows-*, all taken away at the end", d.swap.about, d.work)
	if err := d.runAll(ctx); err != nil {
		return err
	}
	d.summarise()
	return nil
}

// choose decides what runs.
func (d *flexDemonstration) choose(ctx context.Context, machine resource.Amount) (err error) {
	if d.jobs == 0 {
		d.mix = ownMix(nodeMemory(machine))
	} else if d.mix, d.result.Missing, err = realMix(ctx, filepath.Join(d.work, inputDir), d.jobs); err != nil {
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

// needSwap finds or makes swap, anew if the machine's own has gone; else it says why there is none.
func (d *flexDemonstration) needSwap() (err error) {
	if d.swap == nil || !d.swap.suffices(d.mix.swap) {
		var s *demoSwap
		if s, d.result.Why, err = openSwap(d.work, d.mix.swap); s != nil {
			d.swap = s
		}
	}
	return err
}

// runAll runs the mix under every allocation, round after round, every other one in the opposite order.
func (d *flexDemonstration) runAll(ctx context.Context) error {
	tooLate := func(round int) bool {
		spent := time.Since(d.begun)
		return d.Limit > 0 && spent+spent/time.Duration(round-1) > d.Limit
	}
	leftOut, err := interleave(allocations, d.Rounds, tooLate, func(a *allocation, round int) error { return d.runOne(ctx, a, round) })
	if leftOut > 0 {
		d.say("left out: %s of %d, since the next would end after the limit of %v", rounds(leftOut), d.Rounds, d.Limit)
	}
	return err
}

func (d *flexDemonstration) runOne(ctx context.Context, a *allocation, round int) error {
	if err := d.needSwap(); err != nil {
		return err
	}
	if d.result.Why != "" {
		return fmt.Errorf("round %d, %s: the machine's swap has gone: %s", round, a.name, d.result.Why)
	}
	begun := time.Now()
	r, err := runFlex(ctx, d.work, d.mix, a, func(ended, all int) {
		d.Show(fmt.Sprintf("round %d of %d, %s: %.0f s, %d of %d jobs ended", round, d.Rounds, a.name, time.Since(begun).Seconds(), ended, all))
	})
	if err != nil {
		return fmt.Errorf("round %d, %s: %w", round, a.name, err)
	}
	r.Round = round
	d.result.Runs = append(d.result.Runs, *r)
	d.say("round %d of %d, %-12s  %d of %d jobs finished, %2d kills, makespan %5.1f s", round, d.Rounds, a.name+":", r.Finished(), len(r.Jobs), r.Kills(), r.Makespan().Seconds())
	return r.Wrong()
}

func (d *flexDemonstration) summarise() {
	for i := range allocations {
		var runs []*FlexRun
		for k := range d.result.Runs {
			if d.result.Runs[k].Allocation == allocations[i].name {
				runs = append(runs, &d.result.Runs[k])
			}
		}
		d.result.Summaries = append(d.result.Summaries, summariseFlex(&allocations[i], runs, d.result.Node[resource.Memory]))
	}
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

// latency is of the short jobs of all runs that finished.
func latency(runs []*FlexRun) Latency {
	var l Latency
	var took []float64
	for _, r := range runs {
		for _, j := range r.Stream {
			l.Jobs++
			if j.Finished {
				took = append(took, (j.Ended - j.Submitted).Seconds())
			}
		}
	}
	l.Finished = len(took)
	slices.Sort(took)
	l.P50, l.P95, l.P99 = percentile(took, 0.5), percentile(took, 0.95), percentile(took, 0.99)
	return l
}

// percentile returns the least of sorted values that a share of them does not exceed; 0 if there are none.
func percentile(sorted []float64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(share*float64(len(sorted)) + 0.999999)
	return sorted[min(len(sorted), max(1, rank))-1]
}

// byMakespan sorts runs, the fastest first.
func byMakespan(runs []*FlexRun) []*FlexRun {
	return slices.SortedStableFunc(slices.Values(runs), func(a, b *FlexRun) int { return cmp.Compare(a.Makespan(), b.Makespan()) })
}
