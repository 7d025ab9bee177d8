package book

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// leveled are the tasks that leveling holds, so that the engine ends each hold in time.
type leveled struct {
	tasks []cluster.TaskID // these tasks, and some that it held lately
	first timeline.Time    // no hold ends earlier
	woken timeline.Time    // the newest Wake that was requested for an end
}

// note records a hold, or another end of it.
func (l *leveled) note(t *TaskState) {
	h, ok := t.HeldUntil()
	if !ok {
		return
	}
	if len(l.tasks) == 0 || h.Until < l.first {
		l.first = h.Until
	}
	if !slices.Contains(l.tasks, t.ID) {
		l.tasks = append(l.tasks, t.ID)
	}
}

// resumeDue ends the holds of leveling whose time has come.
func (p *Plan) resumeDue() {
	l := &p.leveled
	if len(l.tasks) == 0 || p.now < l.first {
		return
	}
	l.first = timeline.Never
	l.tasks = slices.DeleteFunc(l.tasks, func(id cluster.TaskID) bool {
		t, here := p.byTask.get(id)
		if !here || t.Killing {
			return true
		}
		h, ok := t.HeldUntil()
		if due := ok && h.Until <= p.now; due {
			p.Resume(t, cluster.HeldByLeveling, cluster.Because(cluster.LevelingEnds))
			ok = false
		}
		if ok {
			l.first = min(l.first, h.Until)
		}
		return !ok
	})
}

// wakeForDue requests a step when the next hold of leveling ends, unless one was requested.
func (p *Plan) wakeForDue() {
	l := &p.leveled
	if len(l.tasks) > 0 && l.first > p.now && l.first < timeline.Never && (l.woken <= p.now || l.woken > l.first) {
		l.woken = l.first
		p.Wake(l.first, cluster.Because(cluster.LevelingEnds))
	}
}
