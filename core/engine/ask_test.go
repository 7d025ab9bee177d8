package engine_test

import (
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// budgeted answers with its budget.
type budgeted struct{}

func (budgeted) Solve(states int) cluster.Answer { return cluster.Answer{States: states} }

// A driver takes the question of a decision after the step, and solves it while the engine goes on. The same events
// give the same decisions in an engine whose questions nobody takes.
func TestQuestion(t *testing.T) {
	ask := func(_ timeline.Time, p *book.Plan) {
		if n := p.Nodes[0]; n.Asked == nil || n.Asked.Version != n.Version {
			p.Ask(n, budgeted{}, cluster.BecauseFits(0))
		}
	}
	e, replayed := newEngine(ask), newEngine(ask)
	step(t, e, 0, node(), submitted(1, 1))
	step(t, replayed, 0, node(), submitted(1, 1))
	d := step(t, e, 1, cluster.Event{Kind: cluster.Synced})
	if len(d) == 0 || d[0].Kind != cluster.Ask {
		t.Fatalf("decided %+v", d)
	}
	first, question := d[0], e.Question(&d[0])
	step(t, e, 2, cluster.Event{Kind: cluster.NodeMemory, Held: 5})
	if e.Question(&first) != nil {
		t.Error("a question lasts longer than its step")
	}
	answer := question.Solve(77)
	answered := cluster.Event{Kind: cluster.Answered, Decision: first.ID, Answer: &answer}
	again := step(t, e, 3, answered)
	if n := e.Snapshot().Nodes[0]; answer.States != 77 || len(again) != 1 || again[0].Kind != cluster.Ask ||
		n.Leveled != nil || !n.Asking() {
		t.Errorf("after the answer about a changed node %+v is decided, and the node is %+v", again, n.Asked)
	}
	step(t, replayed, 1, cluster.Event{Kind: cluster.Synced})
	step(t, replayed, 2, cluster.Event{Kind: cluster.NodeMemory, Held: 5})
	if d := step(t, replayed, 3, answered); len(d) != 1 || d[0] != again[0] {
		t.Errorf("decides %+v, and once more %+v", again, d)
	}
}
