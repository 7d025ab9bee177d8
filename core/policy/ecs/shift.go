package ecs

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// carryOut stops and resumes the tasks of n as the newest solution says. A task is stopped only if n would otherwise be
// over-allocated meanwhile, and goes on early if n would not be: tasks may have ended earlier than forecast. changed
// says that n has changed, so that the latter may be.
func (e *Leveler) carryOut(now timeline.Time, p *book.Plan, n *book.NodeState, changed bool) {
	for _, t := range n.Tasks {
		if !t.Running || t.Killing || t.Steers {
			continue
		}
		if _, waits := t.WaitsForMemory(); waits {
			continue
		}
		shift, stops := shiftOf(n.Leveled, t, now)
		held, holds := t.HeldUntil()
		switch {
		case holds && !stops:
			p.Resume(t, cluster.HeldByLeveling, cluster.Because(cluster.NotShifted))
		case !stops || holds && !changed && held.Until == shift.To:
		case !e.collides(now, p.Snapshot, n, t, shift.To):
			if holds {
				p.Resume(t, cluster.HeldByLeveling, cluster.Because(cluster.RoomAgain))
			}
		case !holds || held.Until != shift.To:
			if other := e.keepsGoing(now, n, t); other != nil {
				p.SuspendUntil(t, shift.To, other.ID, cluster.BecauseShifted(shift.To, other.ID.Job))
			}
		}
	}
}

// shiftOf returns the shift of t that has begun and not ended.
func shiftOf(a *cluster.Answer, t *book.TaskState, now timeline.Time) (shift cluster.Shift, ok bool) {
	for _, s := range a.Shifts {
		if s.Task == t.ID && s.From <= now && now < s.To {
			return s, true
		}
	}
	return cluster.Shift{}, false
}

// collides reports whether n would be over-allocated before a time if t ran from now on.
func (e *Leveler) collides(now timeline.Time, s *book.Snapshot, n *book.NodeState, t *book.TaskState,
	until timeline.Time) bool {
	e.demand.look(now, s, n, t)
	at, over := e.demand.over(now)
	return over && at < until
}

// keepsGoing returns the task with the largest grant of CPU of those that run on n while t stops; nil if there is none.
func (e *Leveler) keepsGoing(now timeline.Time, n *book.NodeState, t *book.TaskState) (most *book.TaskState) {
	for _, other := range n.Tasks {
		_, held := other.HeldUntil()
		_, stops := shiftOf(n.Leveled, other, now)
		if other == t || held || stops || other.Suspended || other.Killing || !other.Running {
			continue
		}
		if most == nil || other.Grant[resource.CPU] > most.Grant[resource.CPU] ||
			other.Grant[resource.CPU] == most.Grant[resource.CPU] && other.ID.Compare(most.ID) < 0 {
			most = other
		}
	}
	return most
}
