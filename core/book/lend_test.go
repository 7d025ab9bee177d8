package book

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// lending is a node of 4 cores, 8 GB and 100 MB/s of disk on which tasks of one core, 1 GB and 20 MB/s run.
type lending struct {
	*testing.T
	book *Book
	now  timeline.Time
}

func newLending(t *testing.T, lends bool, tasks int) *lending {
	l := &lending{T: t, book: NewBook(nil)}
	l.book.Snapshot().Lends = lends
	need := resource.Vector{resource.Core, resource.GB, 20 * resource.MB, 0}
	l.enter(cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n", Capacity: resource.Vector{4 * resource.Core, 8 * resource.GB, 100 * resource.MB,
			0}}})
	l.enter(cluster.Event{Kind: cluster.JobSubmitted,
		NewJob: &cluster.Job{ID: 1, Name: "j",
			Stages: []cluster.Stage{{Tasks: tasks, Ideal: need, Duration: 100 * time.Second}}}})
	l.enter(cluster.Event{Kind: cluster.Synced})
	return l
}

func (l *lending) enter(e cluster.Event) {
	l.Helper()
	l.now++
	l.book.Open(l.now)
	if err := l.book.Enter(l.now, &e); err != nil {
		l.Fatal(err)
	}
	if _, err := l.book.Close(); err != nil {
		l.Fatal(err)
	}
}

// start starts and launches as many tasks as fit, and returns them.
func (l *lending) start() (ids []cluster.TaskID) {
	l.Helper()
	p := l.book.Open(l.now)
	for j := p.Jobs[0]; j.Ready(0) && j.Stages[0].Ideal.FitsIn(p.Nodes[0].Free); {
		ids = append(ids, p.Start(j, 0, p.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB)).ID)
	}
	if _, err := l.book.Close(); err != nil {
		l.Fatal(err)
	}
	for _, id := range ids {
		l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id})
	}
	return ids
}

func (l *lending) node() *NodeState { return l.book.Snapshot().Nodes[0] }

// A task that stands still lends all but its memory; when it goes on beside a borrower, the node starts nothing until
// one of the two has ended.
func TestLend(t *testing.T) {
	l := newLending(t, true, 10)
	first := l.start()
	if len(first) != 4 {
		t.Fatalf("%d tasks were started", len(first))
	}
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: first[0], By: cluster.HeldByMemory})
	n, j := l.node(), l.book.Snapshot().Jobs[0]
	if want := (resource.Vector{resource.Core, 4 * resource.GB, 40 * resource.MB, 0}); n.Free != want {
		t.Errorf("%v are free, want %v", n.Free, want)
	}
	if want := (resource.Vector{3 * resource.Core, 4 * resource.GB, 60 * resource.MB, 0}); j.Used != want {
		t.Errorf("the job uses %v, want %v", j.Used, want)
	}
	second := l.start()
	if len(second) != 1 {
		t.Fatalf("%d tasks borrow", len(second))
	}
	l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: first[0]})
	if n.Free[resource.CPU] != 0 || n.Overdrawn() != (resource.Vector{resource.Core, 0, 0, 0}) ||
		j.Used[resource.CPU] != 5*resource.Core {
		t.Errorf("%v are free, %v overdrawn, the job uses %v", n.Free, n.Overdrawn(), j.Used)
	}
	l.enter(cluster.Event{Kind: cluster.TaskEnded, Task: first[1], Outcome: cluster.Succeeded})
	if got := l.start(); len(got) != 0 || n.Overdrawn() != (resource.Vector{}) {
		t.Errorf("%d tasks were started after the first end, %v overdrawn", len(got), n.Overdrawn())
	}
	l.enter(cluster.Event{Kind: cluster.TaskEnded, Task: second[0], Outcome: cluster.Succeeded})
	if got := l.start(); len(got) != 1 {
		t.Errorf("%d tasks were started after the second end", len(got))
	}
}

// A task that has nothing to do lends as one that stands still does, also while it is stopped and goes on, and also
// in an engine that takes over.
func TestIdleLends(t *testing.T) {
	l := newLending(t, true, 10)
	first := l.start()
	idle := func(is bool) cluster.Event {
		return cluster.Event{Kind: cluster.TaskIdle, Task: first[0], Found: &cluster.Condition{Idle: is}}
	}
	l.enter(idle(true))
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: first[0], By: cluster.HeldByMemory})
	l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: first[0]})
	if n := l.node(); n.Free[resource.CPU] != resource.Core || n.Free[resource.Memory] != 4*resource.GB {
		t.Errorf("%v are free", n.Free)
	}
	next := &lending{T: t, book: NewBook(nil), now: l.now}
	next.book.Snapshot().Lends = true
	for _, e := range l.book.Snapshot().TakeOver(l.now) {
		next.enter(e)
	}
	if n := next.node(); n.Free != l.node().Free {
		t.Errorf("%v are free for the next engine, %v were", n.Free, l.node().Free)
	}
	l.start()
	l.enter(idle(false))
	if n := l.node(); n.Overdrawn() != (resource.Vector{resource.Core, 0, 0, 0}) {
		t.Errorf("%v overdrawn", n.Overdrawn())
	}
}

// A task lends the CPU that its programs leave, and all but memory while it stands still.
func TestLendsSome(t *testing.T) {
	l := newLending(t, true, 10)
	id := l.start()[0]
	free := func(when string, want resource.Vector) {
		t.Helper()
		if n := l.node(); n.Free != want {
			t.Errorf("%s: %v are free, want %v", when, n.Free, want)
		}
	}
	leaves := func(cpu resource.Amount) {
		l.enter(cluster.Event{Kind: cluster.TaskIdle, Task: id, Found: &cluster.Condition{Leaves: cpu}})
	}
	full := l.node().Free
	leaves(600)
	free("leaves some", full.With(resource.CPU, 600))
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory})
	free("suspended", full.Add(resource.Vector{resource.Core, 0, 20 * resource.MB, 0}))
	l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: id})
	free("resumed", full.With(resource.CPU, 600))
	leaves(2 * resource.Core) // more than it was granted
	free("leaves more than it has", full.With(resource.CPU, resource.Core))
	leaves(100)
	free("leaves less", full.With(resource.CPU, 100))
	leaves(0)
	free("leaves nothing", full)
}

// Without lending, a task that stands still keeps its grant.
func TestKeep(t *testing.T) {
	l := newLending(t, false, 10)
	l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: l.start()[0], By: cluster.HeldByMemory})
	if got := l.start(); len(got) != 0 || l.node().Free[resource.CPU] != 0 {
		t.Errorf("%d tasks were started, %v are free", len(got), l.node().Free)
	}
}

// Cores that were taken back for a task that is to go on are lent again once it is not about to: the memory manager
// holds it, it could not be resumed, or it is paused anew.
func TestLendAgain(t *testing.T) {
	still := func(by cluster.Holders) cluster.Event { return cluster.Event{Kind: cluster.TaskSuspended, By: by} }
	for name, c := range map[string]struct {
		after []cluster.Event // the order to resume the task
		lends bool
	}{
		"nothing yet":                   {nil, false},
		"it has gone on":                {[]cluster.Event{{Kind: cluster.TaskResumed}}, false},
		"carried out, and not yet seen": {[]cluster.Event{{Kind: cluster.DecisionDone}}, false},
		"suspended, then carried out": {[]cluster.Event{still(cluster.HeldByMemory | cluster.HeldByOwner),
			still(cluster.HeldByMemory), {Kind: cluster.DecisionDone}}, true},
		"carried out, then suspended": {[]cluster.Event{{Kind: cluster.DecisionDone}, still(cluster.HeldByMemory)},
			true},
		"suspended, and about to go on": {[]cluster.Event{still(cluster.HeldByMemory | cluster.HeldByOwner),
			still(cluster.HeldByOwner)}, false},
		"suspended, and the memory is there": {[]cluster.Event{still(cluster.HeldByMemory), {Kind: cluster.DecisionDone},
			{Kind: cluster.TaskResumed}}, false},
		"failed":      {[]cluster.Event{{Kind: cluster.DecisionFailed}}, true},
		"paused anew": {[]cluster.Event{{Kind: cluster.JobPaused, Job: 1}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLending(t, true, 4)
			id := l.start()[0]
			pause := cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: id}
			l.put(pause)
			l.enter(cluster.Event{Kind: cluster.DecisionDone, Task: id, Decision: l.decide()[0].ID})
			l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByOwner})
			if free := l.node().Free[resource.CPU]; free != resource.Core {
				t.Fatalf("%d millicores are lent", free)
			}
			l.put(cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: id})
			order := l.decide()[0]
			for _, e := range c.after {
				if e.Task = id; e.Kind == cluster.DecisionDone || e.Kind == cluster.DecisionFailed {
					e.Decision = order.ID
				}
				l.put(e)
				l.decide()
			}
			want := resource.Amount(0)
			if c.lends {
				want = resource.Core
			}
			if free := l.node().Free[resource.CPU]; free != want || l.node().Tasks[0].Lends() != c.lends {
				t.Errorf("%d millicores are free, want %d", free, want)
			}
		})
	}
}

// TestRandomLending: whatever happens, a node has free what it has less what its tasks hold, and at least nothing; and
// nothing starts on an overdrawn node.
func TestRandomLending(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		l := newLending(t, true, 500)
		running := l.start()
		for range 200 {
			at := random.IntN(len(running))
			id := running[at]
			switch task := l.book.Snapshot().task(id); {
			case random.IntN(3) == 0:
				l.enter(cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded})
				running = append(running[:at], running[at+1:]...)
			case task.Suspended:
				l.enter(cluster.Event{Kind: cluster.TaskResumed, Task: id})
			default:
				l.enter(cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory})
			}
			before := l.node().Overdrawn()
			started := l.start()
			if running = append(running, started...); before[resource.CPU] > 0 && len(started) > 0 {
				t.Fatalf("seed %d: %d tasks were started while %v were overdrawn", seed, len(started), before)
			}
			unused := l.node().Capacity
			for _, task := range l.node().Tasks {
				unused = unused.Sub(task.Holds())
			}
			if n := l.node(); n.Unused() != unused || n.Free != unused.Max(resource.Vector{}) {
				t.Fatalf("seed %d: unused %v, free %v; want %v", seed, n.Unused(), n.Free, unused)
			}
			if len(running) == 0 {
				running = l.start()
			}
		}
	}
}
