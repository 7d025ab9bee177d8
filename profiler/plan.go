package profiler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/resource"
)

// Plan is what is to be measured. It is made, and can be shown, before anything runs.
type Plan struct {
	// Fitted are the sizes that a model is fitted to, HeldOut those that it is tried on: bytes, ascending, none in both.
	Fitted, HeldOut []resource.Amount
	// Choose is how many more sizes to fit to are chosen once the given ones have run: each where the run time bends most
	// by what is known then. Try is how many are held out beside HeldOut: in the middle of the widest gaps that are left.
	Choose, Try int
	// Search: where the program fails with a given size, the smallest size that works is searched above it, in at most 12
	// runs, and fitted to.
	Search bool
	// Repeats is how often each size is run, at least 1, after one run that is not counted. Where the repeats differ too
	// much, or others on the machine disturbed them, a size is run up to MostRepeats times; 0 is Repeats.
	Repeats, MostRepeats int
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
	if p.Choose < 0 || p.Try < 0 {
		return fmt.Errorf("chosen sizes %d, %d: must not be negative", p.Choose, p.Try)
	}
	if len(p.Fitted) < 2 {
		return errors.New("sizes: at least two must be left to fit a model to")
	}
	for _, list := range [][]resource.Amount{p.Fitted, p.HeldOut} {
		for i, m := range list {
			if m < LeastMemory {
				return fmt.Errorf("size %s: must be at least %s, which a program takes to start", resource.FormatMemory(m), resource.FormatMemory(LeastMemory))
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

// LeastMemory is the smallest container in which a program is run: a program takes as much to start.
const LeastMemory = 2 * resource.MiB

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
	most := m.Resident + m.Resident/10 + cluster.Headroom
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
