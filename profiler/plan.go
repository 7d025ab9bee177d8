package profiler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trace"
)

// Plan is what is to be measured. It is made, and can be shown, before anything runs.
type Plan struct {
	// Fitted are the sizes that a model is fitted to, HeldOut those that it is tried on: bytes, ascending, none in both.
	Fitted, HeldOut []resource.Amount
	// Repeats is how often each size is run, at least 1, after one run that is not counted.
	Repeats int
}

// Run is one run of the program.
type Run struct {
	Memory resource.Amount
	// Round is 0 for the run that only warms up, then 1 to Repeats.
	Round int
}

// Check returns an error that names the first field out of range.
func (p *Plan) Check() error {
	if p.Repeats < 1 || p.Repeats > 100 {
		return fmt.Errorf("repeats %d: must be 1 to 100", p.Repeats)
	}
	if len(p.Fitted) < 2 {
		return errors.New("sizes: at least two must be left to fit a model to")
	}
	for _, list := range [][]resource.Amount{p.Fitted, p.HeldOut} {
		for i, m := range list {
			if m < leastMemory {
				return fmt.Errorf("size %s: must be at least %s, which a program takes to start", resource.FormatMemory(m), resource.FormatMemory(leastMemory))
			}
			if i > 0 && m <= list[i-1] {
				return fmt.Errorf("size %s: must be given once, and sizes in ascending order", resource.FormatMemory(m))
			}
		}
	}
	for _, m := range p.HeldOut {
		if slices.Contains(p.Fitted, m) {
			return fmt.Errorf("held-out size %s: must not be one that the model is fitted to", resource.FormatMemory(m))
		}
		if m < p.Fitted[0] || m > p.Fitted[len(p.Fitted)-1] {
			return fmt.Errorf("held-out size %s: must lie between the other sizes, %s to %s", resource.FormatMemory(m),
				resource.FormatMemory(p.Fitted[0]), resource.FormatMemory(p.Fitted[len(p.Fitted)-1]))
		}
	}
	return nil
}

const leastMemory = 2 * resource.MiB

// Sizes returns n sizes (at least 2) from least to most, which is more, each the same factor above the one before, in whole MiB. Close
// to each other they may be fewer.
func Sizes(least, most resource.Amount, n int) []resource.Amount {
	sizes := []resource.Amount{least}
	for i := 1; i < n-1; i++ {
		share := float64(i) / float64(n-1)
		m := resource.Amount(float64(least) * math.Pow(float64(most)/float64(least), share))
		m = (m + resource.MiB/2) / resource.MiB * resource.MiB
		if m > sizes[len(sizes)-1] && m < most {
			sizes = append(sizes, m)
		}
	}
	return append(sizes, most)
}

// Unhindered runs the program once with plenty of memory and returns from how much on it should run unhindered: what it
// held itself then, a tenth more, and what {memory} leaves beside a buffer; in whole MiB, at most plenty.
func Unhindered(ctx context.Context, r Runner, plenty resource.Amount) (resource.Amount, error) {
	m, err := r.Run(ctx, plenty)
	switch {
	case err != nil:
		return 0, fmt.Errorf("run with %s: %w", resource.FormatMemory(plenty), err)
	case m.Failure != "":
		return 0, fmt.Errorf("run with %s: %s", resource.FormatMemory(plenty), m.Failure)
	case m.Resident == 0:
		return 0, errors.New("the kernel does not tell how much memory the program held: give the largest size")
	}
	most := m.Resident + m.Resident/10 + trace.Headroom
	return min(plenty, (most+resource.MiB-1)/resource.MiB*resource.MiB), nil
}

// Split holds out every second size, beginning with the second, and never the largest: what lies between two sizes that
// the model knows is what it is asked for. With fewer than four sizes nothing is held out.
func Split(sizes []resource.Amount) (fitted, heldOut []resource.Amount) {
	for i, m := range sizes {
		if len(sizes) >= 4 && i%2 == 1 && i < len(sizes)-1 {
			heldOut = append(heldOut, m)
		} else {
			fitted = append(fitted, m)
		}
	}
	return fitted, heldOut
}

// Runs returns all runs in order: one to warm up with the most memory, then round after round, every other one from the
// largest size down, so that a machine that slows down or speeds up meanwhile does not look like memory.
func (p *Plan) Runs() []Run {
	sizes := slices.Concat(p.Fitted, p.HeldOut)
	slices.Sort(sizes)
	runs := []Run{{Memory: sizes[len(sizes)-1]}}
	for round := 1; round <= p.Repeats; round++ {
		for _, m := range sizes {
			runs = append(runs, Run{m, round})
		}
		slices.Reverse(sizes)
	}
	return runs
}
