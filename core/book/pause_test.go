package book

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// decide opens and closes a plan in which the owner's pauses are met.
func (l *lending) decide() (decisions []cluster.Decision) {
	l.Helper()
	l.book.Open(l.now)
	l.book.Hold()
	all, err := l.book.Close()
	if err != nil {
		l.Fatal(err)
	}
	for _, d := range all {
		if d.Kind == cluster.Suspend || d.Kind == cluster.Resume {
			decisions = append(decisions, d)
		}
	}
	return decisions
}

// put records an event without closing the plan, so that the next decide sees what changed.
func (l *lending) put(e cluster.Event) {
	l.Helper()
	l.now++
	if err := l.book.Enter(l.now, &e); err != nil {
		l.Fatal(err)
	}
}

// A paused job starts nothing; what runs of it is ordered to stand still, once, and to go on when the job is resumed.
func TestPauseJob(t *testing.T) {
	l := newLending(t, true, 6)
	running := l.start()
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	orders := l.decide()
	if len(orders) != 4 || orders[0].Kind != cluster.Suspend || orders[0].By != cluster.HeldByOwner ||
		orders[0].Reason.Code != cluster.PausedByOwner {
		t.Fatalf("decided %+v", orders)
	}
	if again := l.decide(); len(again) != 0 {
		t.Errorf("decided %+v again", again)
	}
	l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: orders[0].Task, Decision: orders[0].ID})
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: orders[0].Task, By: cluster.HeldByOwner})
	j := l.book.Snapshot().Jobs[0]
	if got := l.start(); len(got) != 0 || j.Ready(0) {
		t.Errorf("%d tasks of a paused job were started", len(got))
	}
	if why, ok := l.book.WhyWaits(l.now, j); !ok || why.Code != cluster.PausedByOwner {
		t.Errorf("it waits because %v, %v", why, ok)
	}
	l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1})
	if orders = l.decide(); len(orders) != 4 || orders[0].Kind != cluster.Resume || orders[0].By != 0 ||
		orders[0].Reason.Code != cluster.ResumedByOwner {
		t.Fatalf("decided %+v", orders)
	}
	if !j.Ready(0) {
		t.Error("a resumed job starts nothing")
	}
	if free := l.node().Free[resource.CPU]; free != 0 {
		t.Errorf("%d millicores of a task that is to go on are lent once more", free)
	}
	if task := l.book.Snapshot().task(running[1]); len(task.Hold.earlier) != 1 {
		t.Errorf("the suspension that was not answered is forgotten: %+v", task.Hold)
	}
}

// A task that was paused and ends without success runs again only when it is resumed.
func TestPauseTask(t *testing.T) {
	l := newLending(t, true, 4)
	id := l.start()[2]
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: id})
	if orders := l.decide(); len(orders) != 1 || orders[0].Task != id {
		t.Fatalf("decided %+v", orders)
	}
	l.enter(cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Lost})
	j := l.book.Snapshot().Jobs[0]
	if got := l.start(); len(got) != 0 || j.Pending() != 0 {
		t.Errorf("%d tasks were started, %d are pending", len(got), j.Pending())
	}
	if why, ok := l.book.WhyWaits(l.now, j); !ok || why.Code != cluster.PausedByOwner {
		t.Errorf("it waits because %v, %v", why, ok)
	}
	l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: id})
	if got := l.start(); len(got) != 1 || got[0] != id {
		t.Errorf("%v were started, want %v", got, id)
	}
}

// A task that starts although its job was paused meanwhile is ordered to stand still as soon as it runs.
func TestPauseBeforeTheLaunch(t *testing.T) {
	l := newLending(t, true, 1)
	p := l.book.Open(l.now)
	id := p.Start(p.Jobs[0], 0, p.Nodes[0], p.Jobs[0].Stages[0].Ideal[1], cluster.BecauseFits(1)).ID
	if _, err := l.book.Close(); err != nil {
		t.Fatal(err)
	}
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	if orders := l.decide(); len(orders) != 0 {
		t.Errorf("decided %+v", orders)
	}
	l.put(cluster.Event{Kind: cluster.DecisionDone, Task: id})
	if orders := l.decide(); len(orders) != 1 || orders[0].Kind != cluster.Suspend {
		t.Errorf("decided %+v", orders)
	}
}

// What could not be carried out is not repeated; a task that was found held goes on if its job is not paused.
func TestHoldFails(t *testing.T) {
	l := newLending(t, true, 1)
	id := l.start()[0]
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	order := l.decide()[0]
	l.enter(cluster.Event{Kind: cluster.DecisionFailed, Task: id, Decision: order.ID, Detail: "no freezer"})
	if h := l.book.Snapshot().task(id).Hold; !h.Failed || h.InForce {
		t.Errorf("%+v", h)
	}
	if again := l.decide(); len(again) != 0 {
		t.Errorf("decided %+v", again)
	}
	l = newLending(t, true, 1)
	l.book.Snapshot().Synced = false
	l.put(cluster.Event{Kind: cluster.TaskAdopted, Task: id, Grant: l.book.Snapshot().Jobs[0].Stages[0].Ideal,
		Found: &cluster.Condition{HeldBy: cluster.HeldByOwner}})
	l.put(cluster.Event{Kind: cluster.Synced})
	if orders := l.decide(); len(orders) != 1 || orders[0].Kind != cluster.Resume {
		t.Errorf("decided %+v", orders)
	}
}

func TestImpossiblePauses(t *testing.T) {
	l := newLending(t, true, 2)
	l.start()
	for _, c := range []struct {
		event cluster.Event
		want  string
	}{
		{cluster.Event{Kind: cluster.JobPaused, Job: 7}, "job 7: not here"},
		{cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 1, Index: 2}}, "has no such task"},
		{cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 2}}, "has no such task"},
		{cluster.Event{Kind: cluster.JobResumed, Job: 1}, "is not paused"},
		{cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: cluster.TaskID{Job: 1, Index: 1}}, "is not paused"},
	} {
		if err := l.book.Enter(l.now, &c.event); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.event, err, c.want)
		}
	}
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	if err := l.book.Enter(l.now, &cluster.Event{Kind: cluster.JobPaused, Job: 1}); err == nil ||
		!strings.Contains(err.Error(), "paused already") {
		t.Errorf("error %v", err)
	}
}
