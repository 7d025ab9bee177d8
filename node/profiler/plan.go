package profiler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Plan is the runs to be measured. It can be shown before anything runs.
type Plan struct {
	// Fitted are the sizes that a model is fitted to, HeldOut the sizes at which the model is tested: bytes, ascending,
	// none in both.
	Fitted, HeldOut []resource.Amount
	// Choose is the number of additional fitted sizes that are chosen once the given sizes have run: each where the run
	// time bends most by the runs so far. Try is the number of additional held-out sizes: in the middle of the widest
	// remaining gaps.
	Choose, Try int
	// Search says that, if the program fails at a given size, the smallest size above it that works is searched, in at
	// most 12 runs, and added to the fitted sizes.
	Search bool
	// Repeats is the number of runs of each size, at least 1, after one run that is not counted. If the repeats of a
	// size differ too much, or other programs disturbed them, the size is run up to MostRepeats times; 0 means Repeats.
	Repeats, MostRepeats int
}

// Run is one run of the program.
type Run struct {
	Memory resource.Amount
	// Round is 0 for the warm-up run, then 1 to Repeats.
	Round int
}

// Check returns an error that names the first field out of range.
func (p *Plan) Check() error {
	if p.Repeats < 1 || p.Repeats > 100 {
		return fmt.Errorf("repeats %d: must be 1 to 100", p.Repeats)
	}
	if p.Choose < 0 || p.Try < 0 {
		return fmt.Errorf("chosen sizes %d, %d: must not be negative", p.Choose, p.Try)
	}
	if len(p.Fitted) < 2 {
		return errors.New("sizes: at least two must be left to fit a model to")
	}
	for _, list := range [][]resource.Amount{p.Fitted, p.HeldOut} {
		for i, m := range list {
			if m < LeastMemory {
				return fmt.Errorf("size %s: must be at least %s, which a program takes to start", resource.FormatMemory(m),
					resource.FormatMemory(LeastMemory))
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

// LeastMemory is the smallest container in which a program is run, bytes: a program needs that to start.
const LeastMemory = 2 * resource.MiB

// Unhindered runs the program once with plenty of memory and returns the memory with which it should run unhindered:
// its resident memory, a tenth more, and the memory that {memory} leaves for other purposes than a buffer; in whole
// MiB, at most plenty.
func Unhindered(ctx context.Context, r Runner, plenty resource.Amount) (resource.Amount, error) {
	m, err := r.Run(ctx, plenty)
	switch {
	case err != nil:
		return 0, fmt.Errorf("run with %s: %w", resource.FormatMemory(plenty), err)
	case m.Failure != "":
		return 0, fmt.Errorf("run with %s: %s", resource.FormatMemory(plenty), m.Failure)
	case m.Resident == 0:
		return 0, errors.New("the kernel does not report how much memory the program used: give the largest size")
	}
	most := m.Resident + m.Resident/10 + cluster.Headroom
	return min(plenty, (most+resource.MiB-1)/resource.MiB*resource.MiB), nil
}

// Split holds out every second size, beginning with the second, and never the largest: models are asked mostly for
// sizes between known sizes. With fewer than four sizes nothing is held out.
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
