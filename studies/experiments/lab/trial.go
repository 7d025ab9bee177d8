package lab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/trial"
)

// Contender is a scheduler, with what it runs in, in the comparisons of experiments.
type Contender struct {
	trial.Contender // its label is its name in tables
	// prompt makes a pooled node report as often as all nodes of the cluster together.
	Prompt bool
	// box is the size of containers and heaps of data-intensive jobs, as on YARN; 0 is FLEX containers.
	Box  resource.Amount
	Flex sim.Flex // of FLEX containers
	// PressedBelow is the share of its speed below which a node reports that its disk or network is pressed; 0 is that of
	// real nodes.
	PressedBelow float64
}

// Product is a policy as people get it: every setting, and what nodes report, is what it is by default. It is the row
// of a figure that says what bellows does, beside those that say what a paper does.
func Product(policy string) Contender {
	return Contender{Contender: trial.Contender{Label: policy + ", by default", Policy: policy}}
}

// IsProduct reports whether c is the Product of its policy, under whatever label.
func (c Contender) IsProduct() bool {
	return len(c.Settings) == 0 && !c.Pooled && c.Contender.Box == trial.Box{} && !c.Prompt && c.PressedBelow == 0
}

// Run simulates the workload under c; jobs may fail, and may not end. It does not change the workload, so that several
// simulations can run at once.
func (c Contender) Run(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	if c.Box == 0 {
		config.Flex = c.Flex
	}
	if c.PressedBelow > 0 {
		config.Machine.PressedBelow = c.PressedBelow
	}
	if c.Prompt {
		config.Heartbeat /= time.Duration(len(config.Nodes))
	}
	t, err := c.On(config, w)
	if err != nil {
		return nil, err
	}
	r, err := t.Run()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Label, err)
	}
	return r, nil
}

// ToTheEnd is run for workloads whose jobs may fail, but must end.
func (c Contender) ToTheEnd(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	r, err := c.Run(config, w)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Unfinished() {
		return nil, fmt.Errorf("%s: %s did not end: %s", c.Label, j.Name, j.Stuck)
	}
	return r, nil
}

// Succeed is run for workloads whose jobs must succeed.
func (c Contender) Succeed(config sim.Config, w *workload.Workload) (*sim.Result, error) {
	r, err := c.ToTheEnd(config, w)
	if err != nil {
		return nil, err
	}
	for _, j := range r.Failures() {
		return nil, fmt.Errorf("%s: %s failed: %s", c.Label, j.Name, j.Failure)
	}
	return r, nil
}

// TaskSeconds is the run time of a task.
func TaskSeconds(t sim.TaskResult) float64 { return t.Finished.Sub(t.Launched).Seconds() }

// Ran returns the run time of all tasks together, without coordinators, seconds.
func Ran(r *sim.Result) (all float64) {
	for _, t := range r.Tasks {
		if !t.Coordinator {
			all += TaskSeconds(t)
		}
	}
	return all
}

// Place returns the index of a rival among others.
func Place(name string, among []Contender) int {
	for i, o := range among {
		if o.Label == name {
			return i
		}
	}
	panic("experiments: there is no rival " + name)
}

// Arrivals draws n times over the given length, in order.
func Arrivals(n int, over time.Duration, r *rand.Rand) []timeline.Time {
	at := make([]timeline.Time, n)
	for i := range at {
		at[i] = timeline.Time(r.Int64N(int64(over)))
	}
	slices.Sort(at)
	return at
}
