package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
)

// Options are the options of every part.
type Options struct {
	// Rounds is how often the mix runs under each contender, Repeats how often a program is measured at each size;
	// both at least 1.
	Rounds, Repeats int
	// Limit is the time limit of the demonstration; rounds that would end later are left out. 0 is no limit.
	Limit time.Duration
	// Build is the version of the program: results of different versions are not compared.
	Build string
	// Dir is where the working directory is made; empty is the folder for temporary files.
	Dir string
	// Say gets the events, one line at a time; Show gets a line that changes all the time. Show may be nil.
	Say, Show func(line string)
}

// demonstration is a part in progress.
type demonstration struct {
	Options
	begun time.Time
	work  string
}

func begin(o Options) demonstration {
	if o.Show == nil {
		o.Show = func(string) {}
	}
	return demonstration{Options: o, begun: time.Now()}
}

// enter removes the leftovers of earlier demonstrations, makes the working directory, and returns a function that
// removes it.
func (d *demonstration) enter(ctx context.Context, disk resource.Amount) (leave func() error, err error) {
	parent := sandbox.Parent(d.Dir)
	if n, err := sandbox.Sweep(ctx, parent); err != nil {
		return nil, err
	} else if n > 0 {
		d.say("removed what was left of %d demonstrations that had been killed", n)
	}
	w, err := sandbox.Make(parent, disk)
	if err != nil {
		return nil, err
	}
	d.work = w.Dir
	return func() error { return w.Remove(ctx) }, nil
}

// say prints a line with the elapsed time.
func (d *demonstration) say(format string, operands ...any) {
	passed := time.Since(d.begun).Round(time.Second)
	d.Say(fmt.Sprintf("[%d:%02d] ", passed/time.Minute, passed%time.Minute/time.Second) + fmt.Sprintf(format, operands...))
}

// repeat runs the mix under every contender, round after round, every second round in reverse order. run returns how
// long it took. The first round always runs; rounds that, taking as long as the round before, would end after the limit
// are left out.
func (d *demonstration) repeat(all []contender, run func(c *contender, round int) (took time.Duration,
	err error)) error {
	order := make([]*contender, len(all))
	for i := range order {
		order[i] = &all[i]
	}
	var last time.Duration
	for round := 1; round <= d.Rounds; round++ {
		if round > 1 && d.Limit > 0 && time.Since(d.begun)+last > d.Limit {
			d.say("left out: %s of %d, since the next would end after the limit of %v", rounds(d.Rounds-round+1), d.Rounds,
				d.Limit)
			return nil
		}
		last = 0
		for _, c := range order {
			took, err := run(c, round)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round, c.Label, err)
			}
			last += took
		}
		slices.Reverse(order)
	}
	return nil
}
