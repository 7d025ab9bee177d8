package cluster

import "github.com/bellows-rm/bellows/timeline"

// Book is the cluster as the engine keeps it. What happened is entered; a policy gets a plan that is open for one step. Who does
// not hold the book can only read: everybody the snapshot, and a policy what its plan embeds of it.
type Book struct {
	snapshot *Snapshot
	plan     Plan
}

// NewBook returns the book of an empty cluster.
func NewBook() *Book {
	s := newSnapshot()
	return &Book{snapshot: s, plan: newPlan(0, s, 0)}
}

// Snapshot returns the cluster. Before the first event, what the substrate is like is set there.
func (b *Book) Snapshot() *Snapshot { return b.snapshot }

// Open begins a step and returns its plan, which is of use until Close. The decisions of the last step are gone.
func (b *Book) Open(now timeline.Time) *Plan {
	b.plan.reset(now)
	return &b.plan
}

// Enter records an event. An error means that the event cannot have happened to this cluster, which is then unchanged.
func (b *Book) Enter(now timeline.Time, e *Event) error { return b.snapshot.apply(now, e) }

// Close ends the step: jobs that wait and were given no reason get one, the snapshot's Changes are forgotten, and the decisions
// are returned in the order in which they were taken. They are valid until Open.
func (b *Book) Close() ([]Decision, error) { return b.plan.close() }
