package book

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// pageOut pauses a task, with its memory, and reports that some has left.
func (l *lending) pageOut(id cluster.TaskID, out resource.Amount) {
	l.Helper()
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: id, Found: &cluster.Condition{PageOut: true}})
	orders := l.decide()
	if len(orders) != 1 || orders[0].Kind != cluster.Suspend || !orders[0].PageOut {
		l.Fatalf("decided %+v", orders)
	}
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByOwner})
	l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id, Decision: orders[0].ID})
	l.enter(cluster.Event{Kind: cluster.TaskPagedOut, Task: id, Found: &cluster.Condition{Out: out}})
}

// Only the memory that has left a paused task is lent. It is taken back with the order to resume, and the node is
// overdrawn until a borrower ends, also if the memory manager holds the task meanwhile.
func TestPageOut(t *testing.T) {
	for _, lends := range []bool{false, true} {
		l := newLending(t, lends, 4)
		id := l.start()[0]
		l.pageOut(id, resource.GB/2)
		if free := l.node().Free[resource.Memory]; free != 4*resource.GB+resource.GB/2 ||
			l.node().Tasks[0].Holds()[resource.Memory] != resource.GB/2 {
			t.Errorf("%d bytes are free", free)
		}
		coherent(t, l.book.Snapshot())
		l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: id})
		orders := l.decide()
		if len(orders) != 1 || orders[0].Kind != cluster.Resume || orders[0].PageOut {
			t.Fatalf("decided %+v", orders)
		}
		l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory})
		l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id, Decision: orders[0].ID})
		if free := l.node().Free[resource.Memory]; free != 4*resource.GB {
			t.Errorf("%d bytes are free, and the task is to come back", free)
		}
		l.enter(cluster.Event{Kind: cluster.TaskPagedOut, Task: id})
		l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: id})
		coherent(t, l.book.Snapshot())
		if task := l.book.Snapshot().task(id); task.Out != 0 || task.Holds() != task.Grant {
			t.Errorf("back it holds %v", task.Holds())
		}
	}
}

// A pause can be given its page-out later, which is a second order, and a task that runs again is paged out, too.
func TestPageOutLater(t *testing.T) {
	l := newLending(t, true, 4)
	id := l.start()[0]
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1})
	if orders := l.decide(); len(orders) != 4 || orders[0].PageOut {
		t.Fatalf("decided %+v", orders)
	}
	l.put(cluster.Event{Kind: cluster.JobPaused, Job: 1, Found: &cluster.Condition{PageOut: true}})
	if orders := l.decide(); len(orders) != 4 || orders[0].Kind != cluster.Suspend || !orders[0].PageOut {
		t.Fatalf("decided %+v", orders)
	}
	if again := l.decide(); len(again) != 0 {
		t.Errorf("decided %+v again", again)
	}
	if err := l.book.Enter(l.now,
		&cluster.Event{Kind: cluster.JobPaused, Job: 1, Found: &cluster.Condition{PageOut: true}}); err == nil {
		t.Error("it was paged out twice")
	}
	if err := l.book.Enter(l.now,
		&cluster.Event{Kind: cluster.TaskPagedOut, Task: id, Found: &cluster.Condition{Out: -1}}); err == nil {
		t.Error("less than nothing is out")
	}
}

// Found tasks may have been granted more memory than the node has, if it is out or is to come back.
func TestAdoptOut(t *testing.T) {
	found := func(index int32, memory resource.Amount, c cluster.Condition) cluster.Event {
		e := cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: index},
			Grant: resource.Of(resource.Core, memory)}
		e.SetCondition(c)
		return e
	}
	s := newSnapshot()
	for _, e := range []cluster.Event{
		joins(0), {Kind: cluster.JobSubmitted,
			NewJob: &cluster.Job{ID: 1, Name: "j",
				Stages: []cluster.Stage{{Tasks: 9, Ideal: resource.Of(resource.Core, resource.GB)}}}},
		found(0, 6*resource.GB, cluster.Condition{HeldBy: cluster.HeldByOwner, PageOut: true, Out: 5 * resource.GB}),
		found(1, 5*resource.GB, cluster.Condition{Out: 4 * resource.GB}),
		found(2, 8*resource.GB, cluster.Condition{}),
	} {
		if err := s.apply(1, &e); err != nil {
			t.Fatal(err)
		}
		coherent(t, s)
	}
	if over := s.Nodes[0].Overdrawn()[resource.Memory]; over != 4*resource.GB {
		t.Errorf("%d bytes are overdrawn", over)
	}
	for _, e := range []cluster.Event{found(3, 1, cluster.Condition{}), found(3, 2, cluster.Condition{Out: 3}),
		found(3, 2, cluster.Condition{Out: -1})} {
		if s.apply(1, &e) == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
}
