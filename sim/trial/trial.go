// Package trial simulates contenders, which are policies with their settings, on the same clusters and workloads, and
// summarises the outcomes: means over seeds with confidence intervals, each contender relative to the first on the same
// seeds, as a table, CSV and JSON.
package trial

import (
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/sim/bound"
)

// Trial is one run to be simulated: a policy with its settings, a cluster and a workload. Every trial has its own
// policy, because policies keep caches.
type Trial struct {
	Contender
	// Cluster is the simulated cluster: one node, if the contender is pooled. A caller can set more fields to observe
	// the run.
	Cluster sim.Config
	// Workload is the simulated workload: its FLEX jobs are in boxes, if the contender has a box.
	Workload *workload.Workload

	policy policy.Policy
}

// On returns the trial of c on a cluster with a workload. It changes neither. The error names a policy or a setting
// that does not exist.
func (c Contender) On(config sim.Config, w *workload.Workload) (*Trial, error) {
	p, err := policy.New(c.Policy, c.Settings)
	if err != nil {
		return nil, err
	}
	if c.Pooled {
		config.Nodes, config.StartsPerHeartbeat = sim.Pool(config.Nodes), 0
	}
	return &Trial{c, config, c.Box.fill(w), p}, nil
}

// Check returns an error if the policy could never start some task. It simulates nothing.
func (t *Trial) Check() error {
	b := book.NewBook(nil)
	for i := range t.Cluster.Nodes {
		if err := b.Enter(0, &cluster.Event{Kind: cluster.NodeJoined, NewNode: &t.Cluster.Nodes[i]}); err != nil {
			return err
		}
	}
	for i := range t.Workload.Jobs {
		if err := policy.CheckRuns(t.policy, b.Snapshot(), &t.Workload.Jobs[i].Job); err != nil {
			return err
		}
	}
	return nil
}

// Run simulates the trial; call it once. Jobs that fail or never end are reported in the result.
func (t *Trial) Run() (*sim.Result, error) {
	return sim.Run(t.Cluster, &workload.Workload{Jobs: slices.Clone(t.Workload.Jobs)}, t.policy)
}

// UnderSizes reports whether the policy may start tasks with less than their ideal memory.
func (t *Trial) UnderSizes() bool { return t.policy.Traits().UnderSizes }

// Bounds returns lower bounds for every policy with the same freedom to size tasks. The interval bound is computed if
// iterations are above 0.
func (t *Trial) Bounds(iterations int) bound.Bounds {
	traits := t.policy.Traits()
	return bound.Of(t.Workload, t.Cluster.Nodes, t.UnderSizes(),
		bound.Options{AnySize: traits.Resizes, ByPhase: traits.ByPhase, Iterations: iterations})
}
