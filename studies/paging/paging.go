package paging

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/profiler"
)

// Way is what happens to data that do not fit into a container.
type Way uint8

const (
	Spill Way = iota // the program gets the size of its container, and spills
	Page             // the program gets its ideal size, and the kernel pages
)

func (w Way) String() string { return [...]string{"spill", "page"}[w] }

// WayRunner runs a program in a container of memory bytes, in one of the two ways.
type WayRunner interface {
	RunWay(ctx context.Context, way Way, memory resource.Amount) (profiler.Measurement, error)
}

// Plan is the plan of the measurement of one program.
type Plan struct {
	Ideal   resource.Amount // size of the container in which it neither spills nor pages
	Shares  []float64       // of Ideal, ascending, above 0 and below 1; the ideal itself is always measured
	Repeats int             // at least 1
	// GiveUp is the slowdown at which a run is stopped: its true time is then known to be longer. Above 1.
	GiveUp float64
}

// Check returns an error that names the first field out of range.
func (p *Plan) Check() error {
	switch {
	case p.Repeats < 1 || p.Repeats > 100:
		return fmt.Errorf("repeats %d: must be 1 to 100", p.Repeats)
	case !(p.GiveUp > 1) || math.IsInf(p.GiveUp, 0):
		return fmt.Errorf("give-up %v: must be a number above 1", p.GiveUp)
	case len(p.Shares) == 0:
		return errors.New("shares: at least one must be given")
	}
	for i, s := range p.Shares {
		if !(s > 0 && s < 1) || (i > 0 && s <= p.Shares[i-1]) {
			return fmt.Errorf("share %v: must be above 0, below 1, and above the one before", s)
		}
	}
	if least := p.Memory(p.Shares[0]); least < profiler.LeastMemory {
		return fmt.Errorf("share %v: is %s of memory, must be at least %s", p.Shares[0],
			resource.FormatMemory(least), resource.FormatMemory(profiler.LeastMemory))
	}
	return nil
}

// Memory returns the size of a container that is the given share of the ideal, in whole pages of 4 KiB.
func (p *Plan) Memory(share float64) resource.Amount {
	const page = 4 * resource.KiB
	return resource.Amount(share*float64(p.Ideal)) / page * page
}

// Run is one run.
type Run struct {
	Way   Way
	Share float64
	Round int // 0 is the warm-up run, at share 1
}

// Runs returns all runs in order: one warm-up run, then round after round. In a round, both ways run at each share one
// right after the other, so that other work on the machine disturbs both alike; every second round is in reverse order.
func (p *Plan) Runs() []Run {
	runs := []Run{{Page, 1, 0}}
	shares := append(slices.Clone(p.Shares), 1)
	slices.Reverse(shares)
	for round := 1; round <= p.Repeats; round++ {
		for _, s := range shares {
			first, second := Spill, Page
			if round%2 == 0 {
				first, second = Page, Spill
			}
			runs = append(runs, Run{first, s, round}, Run{second, s, round})
		}
		slices.Reverse(shares)
	}
	return runs
}

// Measure carries out a plan. A way that was stopped once at a share, or failed in all of two or more runs there, is
// not run there again. seen, if not nil, is called for every run with the number of finished runs and of all runs. The
// caller sets the curve's pattern.
func Measure(ctx context.Context, r WayRunner, p *Plan, seen func(done, all int, run Run, m profiler.Measurement)) (
	profile.PagingCurve, error) {
	if err := p.Check(); err != nil {
		return profile.PagingCurve{}, err
	}
	book := book{}
	var ideal time.Duration
	runs := p.Runs()
	for i, run := range runs {
		if book.at(run).hopeless() {
			continue
		}
		limit := time.Duration(math.MaxInt64)
		if ideal > 0 {
			limit = time.Duration(p.GiveUp * float64(ideal))
		}
		m, err := runWithin(ctx, r, run.Way, p.Memory(run.Share), limit)
		if err != nil {
			return profile.PagingCurve{}, fmt.Errorf("%s in %s: %w", run.Way, resource.FormatMemory(p.Memory(run.Share)), err)
		}
		if m.Failure != "" && run.Share == 1 {
			return profile.PagingCurve{}, fmt.Errorf("with its ideal memory, %s: %s", resource.FormatMemory(p.Ideal), m.Failure)
		}
		if run.Round == 0 {
			ideal = m.Duration
		} else {
			b := book.at(run)
			b.runs = append(b.runs, m)
		}
		if seen != nil {
			seen(i+1, len(runs), run, m)
		}
	}
	return book.curve(p), nil
}

// givenUp is the failure of a run that took longer than its limit.
const givenUp = "given up"

// runWithin runs the program and stops it after limit.
func runWithin(ctx context.Context, r WayRunner, way Way, memory resource.Amount,
	limit time.Duration) (profiler.Measurement, error) {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m, err := r.RunWay(bounded, way, memory)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		return profiler.Measurement{Duration: limit, Failure: givenUp}, nil
	}
	return m, err
}

// cell is the measurements of one way at one share.
type cell struct{ runs []profiler.Measurement }

// hopeless reports whether another run would only cost time: a run was stopped, or all runs, at least two, failed. A
// single failure may be chance.
func (c *cell) hopeless() bool {
	failures := 0
	for _, m := range c.runs {
		if m.Failure == givenUp {
			return true
		}
		if m.Failure != "" {
			failures++
		}
	}
	return failures > 1 && failures == len(c.runs)
}

func (c *cell) times() profile.Times {
	var t profile.Times
	var written, faults []int64
	for _, m := range c.runs {
		switch m.Failure {
		case "":
			t.Seconds = append(t.Seconds, rounded(m.Duration))
			written = append(written, int64(m.Written))
			faults = append(faults, m.MajorFaults)
		case givenUp:
			t.Over = rounded(m.Duration)
		default:
			t.Failures++
			t.Failed = m.Failure
		}
	}
	if len(written) > 0 {
		slices.Sort(written)
		slices.Sort(faults)
		t.Written, t.MajorFaults = resource.Amount(written[(len(written)-1)/2]), faults[(len(faults)-1)/2]
	}
	return t
}

// rounded returns seconds, rounded to milliseconds.
func rounded(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

type book map[Run]*cell

func (b book) at(run Run) *cell {
	run.Round = 0
	if b[run] == nil {
		b[run] = &cell{}
	}
	return b[run]
}

func (b book) curve(p *Plan) profile.PagingCurve {
	c := profile.PagingCurve{Ideal: p.Ideal}
	for _, share := range append(slices.Clone(p.Shares), 1) {
		c.Points = append(c.Points, profile.PagingPoint{
			Share: share,
			Spill: b.at(Run{Way: Spill, Share: share}).times(),
			Page:  b.at(Run{Way: Page, Share: share}).times(),
		})
	}
	// In the ideal container the two ways are the same.
	last := &c.Points[len(c.Points)-1]
	both := profile.Times{Seconds: slices.Concat(last.Spill.Seconds, last.Page.Seconds)}
	c.IdealSeconds = both.Median()
	return c
}

// container runs a command both ways.
type container struct {
	*profiler.Container
	ideal resource.Amount
}

// InContainer returns a WayRunner for the command of c, which gets ideal as its memory size when the kernel pages. Swap
// must be on.
func InContainer(c *profiler.Container, ideal resource.Amount) WayRunner { return &container{c, ideal} }

// RunWay implements WayRunner.
func (c *container) RunWay(ctx context.Context, way Way, memory resource.Amount) (profiler.Measurement, error) {
	if way == Page {
		return c.RunTold(ctx, c.ideal, memory, c.ideal)
	}
	return c.RunTold(ctx, memory, memory, 0)
}
