// Package trial simulates contenders, which are policies with their settings, on the same clusters and workloads, and sums
// up what came of them: means over seeds with their confidence intervals, each contender against the first on the same
// seeds, as a table, CSV and JSON.
package trial

import (
	"slices"

	"github.com/bellows-rm/bellows/bound"
	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/workload"
)

// Trial is one run to be simulated: a policy with its settings, a cluster and a workload. Every trial has a policy of its
// own, because policies keep caches.
type Trial struct {
	Contender
	// Cluster is what the contender runs on: one node, if it is pooled. Who wants to observe the run may set more of it.
	Cluster sim.Config
	// Workload is what it runs: its FLEX jobs are in boxes, if it has a box.
	Workload *workload.Workload

	policy policy.Policy
}

// On returns the trial of c on a cluster with a workload, neither of which it changes. The error names a policy or a
// setting that does not exist.
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

// Check returns an error if the policy could never start some task, before anything runs.
func (t *Trial) Check() error {
	b := cluster.NewBook()
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

// Run simulates the trial, once. Jobs may fail, or never end: the result tells.
func (t *Trial) Run() (*sim.Result, error) {
	return sim.Run(t.Cluster, &workload.Workload{Jobs: slices.Clone(t.Workload.Jobs)}, t.policy)
}

// UnderSizes reports whether the policy may start tasks with less than their ideal memory.
func (t *Trial) UnderSizes() bool { return t.policy.Traits().UnderSizes }

// Bounds returns what no policy of the kind can be better than. The interval bound counts if iterations are above 0.
func (t *Trial) Bounds(iterations int) bound.Bounds {
	return bound.Of(t.Workload, t.Cluster.Nodes, t.UnderSizes(), bound.Options{AnySize: t.policy.Traits().Resizes, Iterations: iterations})
}
