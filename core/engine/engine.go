// Package engine is the deterministic state machine between events and decisions. Events go in, each with the time at
// which it is handled; decisions come out, checked against the cluster. The same events at the same times give the same
// decisions, whether a simulation, a live machine or a recorded log supplies them.
package engine

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Engine owns the book of a cluster and asks a Policy for decisions. It is not safe for concurrent use: one goroutine
// owns it.
type Engine struct {
	policy policy.Policy
	book   *book.Book
	now    timeline.Time
	steps  int64
}

// New returns an engine for an empty cluster. configure sets the snapshot's fields about the driver; nil is a driver
// without heartbeats. The engine decides nothing before a Synced event. What p has cached of the cluster of another
// engine is dropped.
func New(p policy.Policy, configure func(*book.Snapshot)) *Engine {
	if drop := p.Traits().DropCaches; drop != nil {
		drop()
	}
	b := book.NewBook(p.Traits().Why)
	if configure != nil {
		configure(b.Snapshot())
	}
	b.Snapshot().Weighs = p.Traits().Weighs
	return &Engine{policy: p, book: b}
}

// Snapshot returns the engine's view of the cluster, to be read between steps only.
func (e *Engine) Snapshot() *book.Snapshot { return e.book.Snapshot() }

// WhyWaits says why the next task of a job has not started, as of the last step; now is the present time. ok is false
// if nothing is in the way of the task: no task of the job waits, or the nodes with room have not reported yet.
func (e *Engine) WhyWaits(now timeline.Time, j *book.JobState) (why cluster.Reason, ok bool) {
	return e.book.WhyWaits(now, j)
}

// Question returns the question of an Ask that the last Step returned. It may be solved at any time and in any
// goroutine; the answer is an Answered event.
func (e *Engine) Question(ask *cluster.Decision) cluster.Question { return e.book.Question(ask.ID) }

// TakeOver returns the events from which another engine learns what e knows, to take its place: see
// book.Snapshot.TakeOver. Its decisions have the numbers that those of e would have.
func (e *Engine) TakeOver(now timeline.Time) []cluster.Event {
	all := e.book.Snapshot().TakeOver(now)
	all[len(all)-1].Decision = e.book.LastDecision()
	return all
}

// Steps returns how many times Step was called.
func (e *Engine) Steps() int64 { return e.steps }

// Step handles events that happened together and returns the decisions. The slice is valid until the next Step. Step
// returns an error for an event that cannot have happened, for time that runs backwards and for an impossible decision
// of the policy. After the last kind of error the engine must not be used any more.
func (e *Engine) Step(now timeline.Time, events ...cluster.Event) ([]cluster.Decision, error) {
	// 1. Time never goes back.
	if now < e.now {
		return nil, fmt.Errorf("engine: step at %v after one at %v", now, e.now)
	}
	e.now = now
	e.steps++
	// 2. The events are recorded.
	plan := e.book.Open(now)
	for i := range events {
		if err := e.book.Enter(now, &events[i]); err != nil {
			return nil, fmt.Errorf("engine: event %s at %v: %w", events[i].Kind, now, err)
		}
	}
	if !plan.Synced {
		return nil, nil
	}
	// 3. Tasks of jobs that are to end are killed, without asking the policy.
	killStopped(plan)
	// 4. What leveling held until now is resumed. Running tasks of paused jobs are suspended, and resumed with their jobs.
	e.book.Hold()
	// 5. Failed tasks whose pause is over may start again. Tasks that would exceed a quota of their user or queue
	// are withheld from the policy.
	e.book.Retry()
	e.book.Gate()
	// 6. The policy decides; each decision is checked and booked as it is taken.
	e.policy.Decide(now, plan)
	return e.book.Close()
}

// killStopped kills the remaining tasks of jobs that failed or were cancelled.
func killStopped(p *book.Plan) {
	for _, j := range p.Changes.Jobs {
		if j.Status != cluster.StatusCancelled && j.Status != cluster.StatusFailed {
			continue
		}
		why := cluster.Because(cluster.CancelledByOwner)
		if j.Status == cluster.StatusFailed {
			why = cluster.Because(cluster.JobGaveUp)
		}
		for _, t := range j.Tasks {
			p.Kill(t, why)
		}
	}
}
