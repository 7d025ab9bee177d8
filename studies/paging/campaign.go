package paging

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/profiler"
)

// Subject is a program to measure.
type Subject struct {
	Name    string
	Program cluster.Command // {memory} in its arguments says how much to fill
	Ideal   resource.Amount
}

// PatternCommand is the command of this program that runs one of the programs of package pattern. Its arguments are the
// program, and the bytes of its input and of its buffer.
const PatternCommand = "pattern"

// beside is the memory of the built-in programs besides their data: 4 MiB that cannot be dropped (measured), 6 MiB of
// the program file, which is read again if it is dropped, and a little for the files to which the programs spill.
const beside = 16 * resource.MiB

// Pattern returns a program of package pattern, which must exist, that works on input.
func Pattern(name string, input resource.Amount) (Subject, error) {
	self, err := os.Executable()
	if err != nil {
		return Subject{}, fmt.Errorf("find this program: %w", err)
	}
	buffer := fmt.Sprintf("{memory-%dMiB:bytes}", int64(beside/resource.MiB))
	args := []string{self, PatternCommand, name, fmt.Sprint(int64(input)), buffer}
	return Subject{name, cluster.Command{Args: args}, input + beside}, nil
}

// Campaign measures several programs, one after the other.
type Campaign struct {
	Subjects []Subject
	Plan     Plan            // of every program, with its own ideal
	CPU      resource.Amount // of each run
	Dir      string          // for the swap file and what is spilled
	Note     string          // kept with the results
	// Say gets the events, one line at a time.
	Say func(line string)
}

// Check returns an error that names the first field out of range.
func (c *Campaign) Check() error {
	for _, s := range c.Subjects {
		if err := c.plan(s).Check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Campaign) plan(s Subject) *Plan {
	p := c.Plan
	p.Ideal = s.Ideal
	return &p
}

func (c *Campaign) say(format string, args ...any) { c.Say(fmt.Sprintf(format, args...)) }

// Run measures all programs. It turns on a swap file of its own meanwhile, which needs root.
func (c *Campaign) Run(ctx context.Context) (res profile.Paging, err error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return res, fmt.Errorf("find the folder %s: %w", c.Dir, err)
	}
	most := resource.Amount(0)
	for _, s := range c.Subjects {
		most = max(most, s.Ideal)
	}
	swap, err := NewSwapFile(dir, 2*most)
	if err != nil {
		return res, err
	}
	c.say("swapping to %s, %s, until this ends", swap.Path(), resource.FormatMemory(2*most))
	defer func() {
		if failure := swap.Close(); failure != nil && err == nil {
			err = failure
		}
	}()
	res = profile.Paging{Date: time.Now().UTC().Format(time.DateOnly), Swap: "file", Device: DeviceOf(dir),
		Kernel: KernelRelease(), Note: c.Note}
	for _, s := range c.Subjects {
		curve, err := c.measure(ctx, s, dir)
		if err != nil {
			return res, err
		}
		res.Curves = append(res.Curves, curve)
	}
	return res, nil
}

// measure measures one program.
func (c *Campaign) measure(ctx context.Context, s Subject, dir string) (profile.PagingCurve, error) {
	in, err := profiler.NewContainer(s.Program, os.Environ(), dir, c.CPU)
	if err != nil {
		return profile.PagingCurve{}, err
	}
	defer func() {
		if err := in.Close(); err != nil {
			c.say("bellows: a control group was not removed: %v", err)
		}
	}()
	curve, err := Measure(ctx, InContainer(in, s.Ideal), c.plan(s), func(done, all int, run Run, m profiler.Measurement) {
		what := fmt.Sprintf("%.2fs", m.Duration.Seconds())
		switch {
		case m.Failure != "":
			what += " " + m.Failure
		case run.Round == 0:
			what += " (warm-up)"
		}
		c.say("[%*d/%d] %-6s %-5s at %3.0f%%  %s", len(fmt.Sprint(all)), done, all, s.Name, run.Way, 100*run.Share, what)
	})
	curve.Pattern = s.Name
	return curve, err
}
