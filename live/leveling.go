package live

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

func scheduleOf(a *cluster.Answer) *api.Schedule {
	if a == nil {
		return nil
	}
	return &api.Schedule{Value: a.Value, Bound: a.Bound, Gap: a.Gap(), Proved: a.Proved, States: a.States,
		Failed: a.Failed}
}

// levelingOf returns the view of the newest question about n; nil if there was none.
func levelingOf(n *book.NodeState) *api.Leveling {
	q := n.Asked
	if q == nil {
		return nil
	}
	l := &api.Leveling{Node: n.Name, Why: q.Why.Words(clock), Asked: instant(q.At), Result: q.Words(),
		Newest: scheduleOf(q.Answer), Stale: q.Stale, Used: scheduleOf(n.Leveled)}
	if q.Answer != nil {
		l.Answered = instant(q.Answered)
	}
	return l
}

// shiftsOf returns when a task is to stand still later, by the answer about its node that was used last. A shift that
// has begun is not among them: either the task is held until its end, or goes on because there is room again.
func shiftsOf(t *book.TaskState, now timeline.Time) (shifts []api.Shift) {
	if t.Node.Leveled == nil {
		return nil
	}
	for _, s := range t.Node.Leveled.Shifts {
		if s.Task == t.ID && s.From > now {
			shifts = append(shifts, api.Shift{From: instant(s.From), To: instant(s.To)})
		}
	}
	return shifts
}
