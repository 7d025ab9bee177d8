package live

import (
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Leveling is the newest question of the policy about how to level the demand on a node, and what came of it.
type Leveling struct {
	Node     string    `json:"node" doc:"about which node"`
	Why      string    `json:"why" doc:"one clause on why the policy asked"`
	Asked    time.Time `json:"asked" doc:"when the policy asked"`
	Answered time.Time `json:"answered,omitzero" doc:"omitted while it is being solved"`
	// Result says what came of it in one clause, with the value, and the bound or that the value is proved.
	Result string `json:"result" doc:"one clause on what came of it: the value of the schedule, and whether it is proved optimal or how far it may be above the least value"`
	// Newest is its answer, Used the answer that is in use: the same, or an earlier one if Newest was stale or failed or
	// is yet to come.
	Newest *Schedule `json:"newest,omitempty" doc:"the answer; omitted while it is being solved"`
	Stale  bool      `json:"stale,omitempty" doc:"the answer is not used, because the node changed while it was solved"`
	Used   *Schedule `json:"used,omitempty" doc:"the newest answer that was used; omitted if there is none"`
}

// Schedule is how good an answer is.
type Schedule struct {
	Value  float64 `json:"value" doc:"cost of the schedule, less is better, in the unit of the policy"`
	Bound  float64 `json:"bound" doc:"no schedule costs less"`
	Gap    float64 `json:"gap" doc:"by how much the value may be above the least one, as a share of the value; 0 if that is proved"`
	Proved bool    `json:"proved" doc:"no schedule is better"`
	States int     `json:"states" doc:"how many states the solver looked at"`
	Failed string  `json:"failed,omitempty" doc:"why there is no schedule"`
}

func scheduleOf(a *cluster.Answer) *Schedule {
	if a == nil {
		return nil
	}
	return &Schedule{Value: a.Value, Bound: a.Bound, Gap: a.Gap(), Proved: a.Proved, States: a.States, Failed: a.Failed}
}

// levelingOf returns the view of the newest question about n; nil if there was none.
func levelingOf(n *book.NodeState) *Leveling {
	q := n.Asked
	if q == nil {
		return nil
	}
	l := &Leveling{Node: n.Name, Why: q.Why.Words(clock), Asked: instant(q.At), Result: q.Words(),
		Newest: scheduleOf(q.Answer), Stale: q.Stale, Used: scheduleOf(n.Leveled)}
	if q.Answer != nil {
		l.Answered = instant(q.Answered)
	}
	return l
}

// Shift is a time in which a task is to stand still, so that the demand on its node is leveled.
type Shift struct {
	From time.Time `json:"from" doc:"when it is to stop"`
	To   time.Time `json:"to" doc:"when it is to go on"`
}

// shiftsOf returns when a task is to stand still later, by the answer about its node that was used last. A shift that
// has begun is not among them: either the task is held until its end, or goes on because there is room again.
func shiftsOf(t *book.TaskState, now timeline.Time) (shifts []Shift) {
	if t.Node.Leveled == nil {
		return nil
	}
	for _, s := range t.Node.Leveled.Shifts {
		if s.Task == t.ID && s.From > now {
			shifts = append(shifts, Shift{instant(s.From), instant(s.To)})
		}
	}
	return shifts
}
