package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/node/profiler"
)

// Profile is the measured profile of one program.
type Profile struct {
	Name  string        `json:"name"`
	Model profile.Model `json:"model"`
	// Sizes are the measured sizes, ascending.
	Sizes []Size `json:"sizes"`
}

// Size is one memory size with which a program ran.
type Size struct {
	Memory  resource.Amount `json:"memory_bytes"`
	Median  time.Duration   `json:"median_ns"`
	Spread  float64         `json:"spread"` // (slowest - fastest) / median
	Spilled resource.Amount `json:"spilled_bytes"`
}

// sizesOf returns the memory sizes to measure: the ideal, two in between, and the minimum. Half the ideal, which one of
// the configurations grants, is not among them, because it is predicted.
func sizesOf(f input) []resource.Amount {
	ideal := f.ideal()
	// GNU sort merges at most 16 runs at once; with less than a sixteenth it would need another pass.
	least := ideal/14 + overhead
	whole := func(m resource.Amount) resource.Amount { return m / resource.MiB * resource.MiB }
	return []resource.Amount{whole(least + resource.MiB - 1), whole(ideal * 38 / 100), whole(ideal * 70 / 100), ideal}
}

// measure runs a program alone at every size and fits a model.
func measure(ctx context.Context, p program, dir string, repeats int, seen func(done, all int)) (Profile, error) {
	plan := &profiler.Plan{Fitted: sizesOf(p.input), Repeats: repeats}
	most := plan.Fitted[len(plan.Fitted)-1]
	c, err := profiler.NewContainer(p.command, sandbox.Environment(), dir, resource.Core)
	if err != nil {
		return Profile{}, err
	}
	res, err := profiler.Measure(ctx, c, plan, func(done, all int, _ profiler.Run, _ profiler.Measurement) {
		seen(done, all)
	})
	if closing := c.Close(); err == nil && closing != nil {
		err = closing
	}
	if err != nil {
		return Profile{}, fmt.Errorf("measure %s: %w", p.name, err)
	}
	if len(res.Failed) > 0 {
		f := res.Failed[len(res.Failed)-1]
		return Profile{}, fmt.Errorf("measure %s: with %s it does not work: %s", p.name, resource.FormatMemory(f.Memory),
			f.Why)
	}
	// The median represents a size, not the fastest run: the model must predict how long tasks usually take.
	for i := range res.Fitted {
		res.Fitted[i].Duration = profile.Median(res.Fitted[i].Repeats)
	}
	buffer, err := profiler.BufferOf(p.command, 0, most)
	if err != nil {
		return Profile{}, err
	}
	out := Profile{Name: p.name}
	if out.Model, _, err = profile.Fit(res.Fitted, profile.Program{Buffer: buffer}); err != nil {
		return Profile{}, fmt.Errorf("fit a model to %s: %w", p.name, err)
	}
	for _, s := range res.Fitted {
		spread, _ := s.Spread()
		out.Sizes = append(out.Sizes, Size{s.Memory, s.Duration, spread, s.Spilled})
	}
	return out, nil
}
