package cluster

import (
	"fmt"
	"math"
	"strconv"

	"github.com/bellows-rm/bellows/core/timeline"
)

// A policy that needs more time for an answer than a step may take asks: Plan.Ask hands a Question to the driver, which solves it
// beside the engine and reports the answer as an Answered event. The question stands beside the decision and is in no log; the
// answer is in the log, so that a replay solves nothing.

// Question is a problem about a node. It is immutable and shares nothing that changes with the policy or the plan: it is solved
// in another goroutine, while the engine goes on, or never.
type Question interface {
	// Solve returns the best answer that it finds while it looks at up to the given number of states. It is a pure function: the
	// same question and the same budget give the same answer.
	Solve(states int) Answer
}

// SolverStates is the usual budget of a Question, in states: less than 50 ms for a node of the paper's size.
const SolverStates = 400_000

// Answer is the best schedule that was found for the tasks of a node. It is never changed.
type Answer struct {
	// Shifts are when tasks stand still; any other time they run.
	Shifts []Shift `json:"shifts,omitempty"`
	// Value is the cost of the schedule, less is better, in the unit of the policy that asked. No schedule costs less than Bound.
	// Proved says that both are equal: no schedule is better.
	Value  float64 `json:"value"`
	Bound  float64 `json:"bound"`
	Proved bool    `json:"proved,omitempty"`
	// States is how many states were looked at.
	States int `json:"states"`
	// Failed says why there is no schedule; then Shifts, Value and Bound mean nothing.
	Failed string `json:"failed,omitempty"`
}

// Shift is a time, From to To, in which a task stands still.
type Shift struct {
	Task TaskID        `json:"task"`
	From timeline.Time `json:"from_ns"`
	To   timeline.Time `json:"to_ns"`
}

// Gap is the optimality gap: by how much the value may be above the least one, as a share of the value; 0 if that is proved.
func (a *Answer) Gap() float64 {
	if a.Proved || a.Value <= 0 {
		return 0
	}
	return (a.Value - a.Bound) / a.Value
}

// Words puts the quality of a into one clause for people.
func (a *Answer) Words() string {
	if a.Failed != "" {
		return "not solved: " + a.Failed
	}
	quality := "proved optimal"
	if !a.Proved {
		gap := strconv.FormatFloat(math.Ceil(a.Gap()*1000-1e-9)/10, 'f', -1, 64) // never 0 by rounding
		quality = fmt.Sprintf("bound %s, gap %s %%", short(a.Bound), gap)
	}
	return fmt.Sprintf("value %s, %s, %s states", short(a.Value), quality, grouped(a.States))
}

// short prints a number with up to three decimals.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64) }

// grouped prints a number of at least 0 with commas between thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// check returns what is wrong with a.
func (a *Answer) check() error {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case !finite(a.Value) || !finite(a.Bound):
		return fmt.Errorf("value %v and bound %v: must be finite", a.Value, a.Bound)
	case a.Bound > a.Value || a.Proved && a.Bound < a.Value:
		return fmt.Errorf("bound %v of value %v, proved %v: must be at most the value, and equal to it if that is proved", a.Bound, a.Value, a.Proved)
	case a.States < 0:
		return fmt.Errorf("states %d: must not be negative", a.States)
	}
	for _, s := range a.Shifts {
		if s.From >= s.To {
			return fmt.Errorf("shift of task %s from %v to %v: must end after it begins", s.Task, s.From, s.To)
		}
	}
	return nil
}

// Asked is the newest question about a node and, once there is one, its answer.
type Asked struct {
	Decision DecisionID
	Version  uint64 // of the node
	At       timeline.Time
	Why      Reason
	// Answer is nil as long as the question is open, which began at At and ended at Answered.
	Answer   *Answer
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
	Question
	of DecisionID
}

// Solve makes an answer that contradicts itself a failed one.
func (q question) Solve(states int) Answer {
	a := q.Question.Solve(states)
	if err := a.check(); err != nil {
		return Answer{Failed: err.Error()}
	}
	return a
}

// Ask has the driver solve a question about n. The answer changes n.Asked, is named in Changes.Answered, and becomes n.Leveled
// unless it has failed or n has changed meanwhile. Ask returns false, and asks nothing, while an earlier question about n is
// open. A policy asks again only about a node that has changed: an answer may come at the same time as the question.
func (p *Plan) Ask(n *NodeState, q Question, why Reason) bool {
	switch {
	case n.Gone || q == nil:
		p.fail("ask about node %q: it left, or there is no question", n.Name)
		return false
	case n.Asking():
		return false
	}
	d := p.add(Ask, TaskID{}, n.ID, why)
	n.Asked = &Asked{Decision: d.ID, Version: n.Version, At: p.now, Why: why}
	p.questions = append(p.questions, question{q, d.ID})
	return true
}

// Question returns the question of an Ask of the step that was closed last; nil if that has no such decision.
func (b *Book) Question(id DecisionID) Question {
	for _, q := range b.plan.questions {
		if q.of == id {
			return q
		}
	}
	return nil
}

// answered records the answer to the open question about a node. Of a node that left, it is ignored.
func (s *Snapshot) answered(now timeline.Time, e *Event) error {
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
	if err := e.Answer.check(); err != nil {
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
