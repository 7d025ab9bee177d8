package book

import (
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Book is the engine's record of the cluster. The engine enters events and opens a plan for one step at a time. Only
// the owner of the book can change it: a reader gets the Snapshot, and a policy gets a Plan, which embeds the snapshot.
type Book struct {
	snapshot *Snapshot
	plan     Plan
	why      Why
}

// NewBook returns the book of an empty cluster. why is the policy's own answer to why a job waits; nil means none.
func NewBook(why Why) *Book {
	s := newSnapshot()
	return &Book{snapshot: s, plan: newPlan(0, s, 0), why: why}
}

// Snapshot returns the cluster. Before the first event, the driver sets its properties there.
func (b *Book) Snapshot() *Snapshot { return b.snapshot }

// Open begins a step and returns its plan, which is valid until Close. It discards the decisions of the last step.
func (b *Book) Open(now timeline.Time) *Plan {
	b.plan.reset(now)
	return &b.plan
}

// Enter records an event. It returns an error, and changes nothing, if the event is impossible in this cluster.
func (b *Book) Enter(now timeline.Time, e *cluster.Event) error {
	err := b.snapshot.apply(now, e)
	if e.Kind == cluster.Continued && err == nil {
		b.plan.lastID = max(b.plan.lastID, e.Decision)
	}
	return err
}

// LastDecision returns the newest decision that was taken.
func (b *Book) LastDecision() cluster.DecisionID { return b.plan.lastID }

// Hold ends the holds of leveling whose time has come. Then it suspends running tasks whose pause has begun in this
// step, and resumes those whose pause has ended: in this order, because an order to suspend a task names the end of
// leveling's hold, which must be in the future.
func (b *Book) Hold() {
	b.plan.resumeDue()
	b.plan.holdPaused()
}

// Retry makes failed tasks pending whose pause before the next attempt is over.
func (b *Book) Retry() { b.plan.retryDue() }

// Gate lets tasks through as the quotas of users and queues permit. Tasks that it withholds do not start.
func (b *Book) Gate() { b.snapshot.gate.pass(&b.plan) }

// Close ends the step: it gives a reason to each changed job that waits and has none, clears the snapshot's Changes,
// and returns the decisions in the order in which they were taken. The slice is valid until Open.
func (b *Book) Close() ([]cluster.Decision, error) {
	b.snapshot.gate.settleAll(b.snapshot.Changes.Jobs)
	return b.plan.close(b.why)
}
