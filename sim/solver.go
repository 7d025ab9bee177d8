package sim

import (
	"cmp"
	"fmt"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// Solver is how the questions of a policy are answered: see cluster.Question.
type Solver struct {
	// States is the budget of a question; 0 is cluster.SolverStates.
	States int
	// PerState is how long a state takes. An answer comes that long after the question for each state that was looked
	// at; with 0, at the same time.
	PerState time.Duration
}

func (s *Solver) check() error {
	switch {
	case s.States < 0:
		return fmt.Errorf("solver states %d: must not be negative", s.States)
	case s.PerState < 0 || s.PerState > time.Second:
		return fmt.Errorf("solver time per state %v: must be 0s to 1s", s.PerState)
	}
	return nil
}

// solve answers a question at once; the engine hears of it later.
func (r *run) solve(ask *cluster.Decision) {
	s := &r.config.Solver
	answer := r.engine.Question(ask).Solve(cmp.Or(s.States, cluster.SolverStates))
	r.answers[ask.Node] = cluster.Event{Kind: cluster.Answered, Node: ask.Node, Decision: ask.ID, Answer: &answer}
	r.agenda.push(after(r.now, time.Duration(answer.States)*s.PerState), solved, int32(ask.Node))
}

// answer reports the answer about a node.
func (r *run) answer(n cluster.NodeID) {
	e := r.answers[n]
	delete(r.answers, n)
	r.stepOne(e)
}
