package book

import (
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A policy that needs more time for an answer than a step may take asks: Plan.Ask hands a Question to the driver,
// which solves it beside the engine and reports the answer as an Answered event. The question stands beside the
// decision and is in no log; the answer is in the log, so that a replay solves nothing.

// Asked is the newest question about a node and, once there is one, its answer.
type Asked struct {
	Decision cluster.DecisionID
	Version  uint64 // of the node
	At       timeline.Time
	Why      cluster.Reason
	// Answer is nil as long as the question is open, which began at At and ended at Answered.
	Answer   *cluster.Answer
	Answered timeline.Time
	// Stale says that the node had changed by then, so that the answer is not used.
	Stale bool
}

// Asking reports whether a question about n is open.
func (n *NodeState) Asking() bool { return n.Asked != nil && n.Asked.Answer == nil }

// Words says what became of the question.
func (a *Asked) Words() string {
	switch {
	case a.Answer == nil:
		return "being solved"
	case a.Stale:
		return a.Answer.Words() + "; not used, because the node changed while it was solved"
	}
	return a.Answer.Words()
}

// question is the Question of a decision.
type question struct {
	cluster.Question
	of cluster.DecisionID
}

// Solve makes an answer that contradicts itself a failed one.
func (q question) Solve(states int) cluster.Answer {
	a := q.Question.Solve(states)
	if err := a.Check(); err != nil {
		return cluster.Answer{Failed: err.Error()}
	}
	return a
}

// Ask has the driver solve a question about n. The answer changes n.Asked, is named in Changes.Answered, and becomes
// n.Leveled unless it has failed or n has changed meanwhile. Ask returns false, and asks nothing, while an earlier
// question about n is open. A policy asks again only about a node that has changed: an answer may come at the same
// time as the question.
func (p *Plan) Ask(n *NodeState, q cluster.Question, why cluster.Reason) bool {
	switch {
	case n.Gone || q == nil:
		p.fail("ask about node %q: it left, or there is no question", n.Name)
		return false
	case n.Asking():
		return false
	}
	d := p.add(cluster.Ask, cluster.TaskID{}, n.ID, why)
	n.Asked = &Asked{Decision: d.ID, Version: n.Version, At: p.now, Why: why}
	p.questions = append(p.questions, question{q, d.ID})
	return true
}

// Question returns the question of an Ask of the step that was closed last; nil if that has no such decision.
func (b *Book) Question(id cluster.DecisionID) cluster.Question {
	for _, q := range b.plan.questions {
		if q.of == id {
			return q
		}
	}
	return nil
}

// answered records the answer to the open question about a node. Of a node that left, it is ignored.
func (s *Snapshot) answered(now timeline.Time, e *cluster.Event) error {
	if e.Answer == nil || e.Node < 0 || int(e.Node) >= len(s.Nodes) {
		return fmt.Errorf("node %d: the answer is missing, or is about a node that never was in the cluster", e.Node)
	}
	n := s.Nodes[e.Node]
	if n.Gone {
		return nil
	}
	if !n.Asking() || n.Asked.Decision != e.Decision {
		return fmt.Errorf("node %q: decision %d is not its open question", n.Name, e.Decision)
	}
	if err := e.Answer.Check(); err != nil {
		return fmt.Errorf("node %q: answer to decision %d: %w", n.Name, e.Decision, err)
	}
	q := n.Asked
	q.Answer, q.Answered, q.Stale = e.Answer, now, q.Version != n.Version
	if !q.Stale && e.Answer.Failed == "" {
		n.Leveled = e.Answer
	}
	s.Changes.Answered = append(s.Changes.Answered, n.ID)
	return nil
}
