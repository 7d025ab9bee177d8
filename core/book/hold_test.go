package book

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// step opens a plan, ends what is due, lets the policy decide, and returns what it and the engine decided.
func (l *lending) step(policy func(*Plan)) (decisions []cluster.Decision) {
	l.Helper()
	p := l.book.Open(l.now)
	l.book.Hold()
	if policy != nil {
		policy(p)
	}
	all, err := l.book.Close()
	if err != nil {
		l.Fatal(err)
	}
	for _, d := range all {
		if d.Kind != cluster.Start && d.Kind != cluster.Wait {
			decisions = append(decisions, d)
		}
	}
	return decisions
}

func (l *lending) suspendUntil(id cluster.TaskID, until timeline.Time, forTask cluster.TaskID) []cluster.Decision {
	l.Helper()
	return l.step(func(p *Plan) {
		p.SuspendUntil(l.book.Snapshot().task(id), until, forTask, cluster.BecauseNodePressure(resource.CPU, 1, 2))
	})
}

// same compares decisions by what they order.
func (l *lending) same(what string, got []cluster.Decision, want ...cluster.Decision) {
	l.Helper()
	if len(got) != len(want) {
		l.Fatalf("%s: decided %+v", what, got)
	}
	for i, d := range want {
		if g := &got[i]; g.Kind != d.Kind || g.By != d.By || g.At != d.At || g.For != d.For {
			l.Errorf("%s: decided %+v, want %+v", what, *g, d)
		}
	}
}

// A task that leveling holds lends its cores until the engine ends the hold, at the time that was asked for.
func TestSuspendUntil(t *testing.T) {
	l := newLending(t, true, 4)
	ids := l.start()
	id, other := ids[0], ids[1]
	end := l.now.Add(10 * time.Second)
	got := l.suspendUntil(id, end, other)
	l.same("suspended", got, cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByLeveling, At: end, For: other},
		cluster.Decision{Kind: cluster.Wake, At: end})
	if h, ok := l.book.Snapshot().task(id).HeldUntil(); !ok || h.Since != l.now || h.Until != end || h.For != other ||
		h.Why.Code != cluster.NodePressure {
		t.Errorf("recorded %+v, %v", h, ok)
	}
	l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id, Decision: got[0].ID})
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByLeveling})
	if free := l.node().Free[resource.CPU]; free != resource.Core {
		t.Errorf("%d millicores are lent", free)
	}
	if at := l.book.Snapshot().task(id).ResumesAt(l.now); at != end {
		t.Errorf("it goes on at %v, want %v", at, end)
	}
	l.now = end - 1
	l.same("before the end", l.step(nil))
	l.now = end
	got = l.step(nil)
	l.same("at the end", got, cluster.Decision{Kind: cluster.Resume})
	if free := l.node().Free[resource.CPU]; got[0].Reason.Code != cluster.LevelingEnds || free != 0 {
		t.Errorf("resumed because %v, %d millicores are free", got[0].Reason, free)
	}
	l.same("afterwards", l.step(nil))
}

// A later SuspendUntil replaces the end, an equal one does nothing, and Resume ends the hold early. The wake that was
// requested for the first end then only requests the next one.
func TestSuspendUntilAgain(t *testing.T) {
	l := newLending(t, true, 4)
	ids := l.start()
	id, begun := ids[0], l.now
	at := func(s int) timeline.Time { return begun.Add(time.Duration(s) * time.Second) }
	l.suspendUntil(id, at(10), cluster.TaskID{})
	l.now++
	l.same("the same", l.suspendUntil(id, at(10), cluster.TaskID{}))
	l.same("later", l.suspendUntil(id, at(30), ids[1]),
		cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByLeveling, At: at(30), For: ids[1]})
	if h, _ := l.book.Snapshot().task(id).HeldUntil(); h.Since != begun {
		t.Errorf("held since %v, want %v", h.Since, begun)
	}
	l.now = at(10)
	l.same("at the first end", l.step(nil), cluster.Decision{Kind: cluster.Wake, At: at(30)})
	l.same("earlier", l.suspendUntil(id, at(20), ids[1]),
		cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByLeveling, At: at(20), For: ids[1]},
		cluster.Decision{Kind: cluster.Wake, At: at(20)})
	l.now = at(11)
	l.same("early", l.step(func(p *Plan) {
		p.Resume(l.book.Snapshot().task(id), cluster.HeldByLeveling, cluster.Because(cluster.LevelingEnds))
	}), cluster.Decision{Kind: cluster.Resume})
	l.now = at(20)
	l.same("at the last end", l.step(nil))
}

// The owner's pause and leveling end in either order, and each order names the rest.
func TestPausedAndLeveled(t *testing.T) {
	for _, levelingFirst := range []bool{false, true} {
		l := newLending(t, true, 1)
		id := l.start()[0]
		end := l.now.Add(10 * time.Second)
		l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
		l.same("paused", l.step(nil), cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner})
		got := l.suspendUntil(id, end, cluster.TaskID{Job: 9})
		l.same("leveled, too", got,
			cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner | cluster.HeldByLeveling, At: end,
				For: cluster.TaskID{Job: 9}}, cluster.Decision{Kind: cluster.Wake, At: end})
		l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id, Decision: got[0].ID})
		l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByOwner | cluster.HeldByLeveling})
		if levelingFirst {
			l.now = end
			l.same("leveling ends first", l.step(nil), cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner})
			if h := l.book.Snapshot().task(id).Hold; h.Leveling != (Held{}) || h.Owner.Why.Code != cluster.PausedByOwner {
				t.Errorf("recorded %+v", h)
			}
			l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1})
			l.same("then the pause", l.step(nil), cluster.Decision{Kind: cluster.Resume})
			continue
		}
		l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1})
		l.same("the pause ends first", l.step(nil), cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByLeveling,
			At: end, For: cluster.TaskID{Job: 9}})
		if free := l.node().Free[resource.CPU]; free != 4*resource.Core {
			t.Errorf("%d millicores are free while leveling holds the task", free)
		}
		l.now = end
		l.same("then leveling", l.step(nil), cluster.Decision{Kind: cluster.Resume})
	}
}

// A pause begins or ends at the moment at which leveling ends its hold: no order names an end that has passed.
func TestPausedWhenLevelingEnds(t *testing.T) {
	l := newLending(t, true, 1)
	id := l.start()[0]
	end := l.now.Add(10 * time.Second)
	l.suspendUntil(id, end, cluster.TaskID{})
	l.now = end
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	l.same("the pause begins", l.step(nil), cluster.Decision{Kind: cluster.Resume},
		cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner})
	end = end.Add(10 * time.Second)
	l.suspendUntil(id, end, cluster.TaskID{})
	l.now = end
	l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1})
	l.same("the pause ends", l.step(nil), cluster.Decision{Kind: cluster.Suspend, By: cluster.HeldByOwner},
		cluster.Decision{Kind: cluster.Resume})
}

// A new engine takes over what leveling holds: it ends a hold whose end has passed, and wakes for the others.
func TestAdoptedLeveled(t *testing.T) {
	l := newLending(t, true, 2)
	l.book.Snapshot().Synced = false
	ideal := l.book.Snapshot().Jobs[0].Stages[0].Ideal
	l.now = timeline.Seconds(100)
	for i, until := range []timeline.Time{timeline.Seconds(90), timeline.Seconds(130)} {
		e := cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: int32(i)}, Grant: ideal,
			Launched: 1, Found: &cluster.Condition{HeldBy: cluster.HeldByLeveling, HeldUntil: until,
				HeldFor: cluster.TaskID{Job: 7}, Progress: &cluster.Progress{SuspendedBy: cluster.HeldByLeveling,
					SuspendedSince: timeline.Seconds(80)}}}
		l.put(e)
	}
	l.put(cluster.Event{Kind: cluster.Synced})
	l.same("at once", l.step(nil), cluster.Decision{Kind: cluster.Resume},
		cluster.Decision{Kind: cluster.Wake, At: timeline.Seconds(130)})
	if h, ok := l.book.Snapshot().task(cluster.TaskID{Job: 1, Index: 1}).HeldUntil(); !ok ||
		h.For != (cluster.TaskID{Job: 7}) {
		t.Errorf("recorded %+v, %v", h, ok)
	}
	l.now = timeline.Seconds(130)
	l.same("in time", l.step(nil), cluster.Decision{Kind: cluster.Resume})
}

func TestImpossibleHolds(t *testing.T) {
	for _, c := range []struct {
		decide func(*Plan, *TaskState)
		want   string
	}{
		{func(p *Plan, task *TaskState) {
			p.SuspendUntil(task, p.now, cluster.TaskID{}, cluster.Because(cluster.LevelingEnds))
		}, "must be after now"},
		{func(p *Plan, task *TaskState) {
			p.SuspendUntil(task, timeline.Never, cluster.TaskID{}, cluster.Because(cluster.LevelingEnds))
		}, "not for ever"},
		{func(p *Plan, task *TaskState) {
			p.SuspendUntil(task, p.now+1, task.ID, cluster.Because(cluster.LevelingEnds))
		}, "must be another task"},
	} {
		l := newLending(t, true, 1)
		id := l.start()[0]
		c.decide(l.book.Open(l.now), l.book.Snapshot().task(id))
		if _, err := l.book.Close(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
