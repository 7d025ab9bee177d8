package cluster

import (
	"fmt"
	"math"
	"strconv"

	"github.com/bellows-rm/bellows/core/timeline"
)

// Question is a problem about a node. It is immutable and shares nothing that changes with the policy or the plan: it
// is solved in another goroutine, while the engine goes on, or never.
type Question interface {
	// Solve returns the best answer that it finds while it looks at up to the given number of states. It is a pure
	// function: the same question and the same budget give the same answer.
	Solve(states int) Answer
}

// SolverStates is the usual budget of a Question, in states: less than 50 ms for a node of the paper's size.
const SolverStates = 400_000

// Answer is the best schedule that was found for the tasks of a node. It is never changed.
type Answer struct {
	// Shifts are when tasks stand still; any other time they run.
	Shifts []Shift `json:"shifts,omitempty"`
	// Value is the cost of the schedule, less is better, in the unit of the policy that asked. No schedule costs less
	// than Bound. Proved says that both are equal: no schedule is better.
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

// Gap is the optimality gap: by how much the value may be above the least one, as a share of the value; 0 if that is
// proved.
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

// Check returns what is wrong with a.
func (a *Answer) Check() error {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	switch {
	case !finite(a.Value) || !finite(a.Bound):
		return fmt.Errorf("value %v and bound %v: must be finite", a.Value, a.Bound)
	case a.Bound > a.Value || a.Proved && a.Bound < a.Value:
		return fmt.Errorf("bound %v of value %v, proved %v: must be at most the value, and equal to it if that is proved",
			a.Bound, a.Value, a.Proved)
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
