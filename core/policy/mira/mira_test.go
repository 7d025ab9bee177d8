package mira

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy/contract"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// executors is a pool of executors under policy mira.
type executors struct {
	*testing.T
	policy contract.Policy
	book   *book.Book
}

func newExecutors(t *testing.T, n int) *executors {
	p := New(&contract.Settings{Policy: "mira"})
	x := &executors{T: t, policy: p, book: book.NewBook(p.Traits().Why)}
	for i := range n {
		node := cluster.Node{ID: cluster.NodeID(i), Name: fmt.Sprint("n", i)}
		node.Capacity = resource.Of(resource.Core, resource.GB)
		x.enter(0, cluster.Event{Kind: cluster.NodeJoined, NewNode: &node})
	}
	x.enter(0, cluster.Event{Kind: cluster.Synced})
	return x
}

func (x *executors) enter(now timeline.Time, e cluster.Event) {
	x.Helper()
	if err := x.book.Enter(now, &e); err != nil {
		x.Fatal(err)
	}
}

// submit submits a job with stages whose tasks take a whole executor, unless they need something else.
func (x *executors) submit(stages ...cluster.Stage) {
	x.Helper()
	for i := range stages {
		if stages[i].Ideal == (resource.Vector{}) {
			stages[i].Ideal = resource.Of(resource.Core, resource.GB)
		}
	}
	x.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: 1, NewJob: &cluster.Job{ID: 1, Stages: stages}})
}

// decide takes a step of the policy, launches what it starts, and returns the stage for which each executor works.
func (x *executors) decide(now timeline.Time) string {
	x.Helper()
	x.policy.Decide(now, x.book.Open(now))
	decisions, err := x.book.Close()
	if err != nil {
		x.Fatal(err)
	}
	for _, d := range slices.Clone(decisions) {
		if d.Kind == cluster.Start {
			x.enter(now, cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: d.Task})
		}
	}
	var all []string
	for _, n := range x.book.Snapshot().Nodes {
		switch {
		case len(n.Tasks) == 0:
			all = append(all, "-")
		case int(n.Tasks[0].ID.Stage) != n.ReservedStage:
			x.Errorf("executor %d runs %v and is assigned to stage %d", n.ID, n.Tasks[0].ID, n.ReservedStage)
		default:
			all = append(all, fmt.Sprint(n.ReservedStage))
		}
	}
	return strings.Join(all, " ")
}

// end ends the tasks of executors, in this order, within one step.
func (x *executors) end(now timeline.Time, which ...int) {
	x.Helper()
	for _, i := range which {
		task := x.book.Snapshot().Nodes[i].Tasks[0].ID
		x.enter(now, cluster.Event{Kind: cluster.TaskEnded, Outcome: cluster.Succeeded, Task: task})
	}
}

// The executors of a job stay with their stages, so that as many tasks as possible of a stage follow each other on one
// executor (section III.D, figure 8), also if several of them look for work at once. An executor whose stage needs no
// more of them goes to the first stage that does, or else to any whose tasks fit there.
func TestExecutorsStayWithTheirStages(t *testing.T) {
	for _, c := range []struct {
		name   string
		stages []cluster.Stage
		ends   []int // the executors that are free at the same time, in this order
		before string
		after  string
	}{
		{"all", []cluster.Stage{{Tasks: 9}, {Tasks: 9}}, []int{0, 1, 2, 3}, "0 1 0 1", "0 1 0 1"},
		{"all, the last one first", []cluster.Stage{{Tasks: 9}, {Tasks: 9}}, []int{3, 2, 1, 0}, "0 1 0 1", "0 1 0 1"},
		{"one of each stage", []cluster.Stage{{Tasks: 9}, {Tasks: 9}}, []int{1, 2}, "0 1 0 1", "0 1 0 1"},
		{"a stage has ended", []cluster.Stage{{Tasks: 2}, {Tasks: 9, Parents: []int{0}}, {Tasks: 9, Parents: []int{0}}},
			[]int{0, 1}, "0 0 - -", "1 2 1 2"},
		{"a stage needs fewer", []cluster.Stage{{Tasks: 3}, {Tasks: 9}, {Tasks: 9}}, []int{2}, "1 2 0 1", "1 2 2 1"},
		{"a stage does not fit", []cluster.Stage{{Tasks: 9}, {Tasks: 9, Ideal: resource.Of(resource.Core, 2*resource.GB)}},
			[]int{0}, "0 0 0 0", "0 0 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newExecutors(t, 4)
			x.submit(c.stages...)
			if got := x.decide(0); got != c.before {
				t.Fatalf("executors begin with stages %s, want %s", got, c.before)
			}
			x.end(1, c.ends...)
			if got := x.decide(1); got != c.after {
				t.Errorf("then they work for stages %s, want %s", got, c.after)
			}
		})
	}
}

// A job gets the executors that keep something of it, the lowest number first, and others only when these are taken.
func TestExecutorsThatKeepTheJob(t *testing.T) {
	x := newExecutors(t, 5)
	x.submit(cluster.Stage{Tasks: 4})
	for _, n := range []cluster.NodeID{3, 1, 4} {
		x.enter(0, cluster.Event{Kind: cluster.NodeSuits, Node: n, Job: 1, Found: &cluster.Condition{Keeps: true}})
	}
	x.enter(0, cluster.Event{Kind: cluster.NodeSuits, Node: 3, Job: 1})
	x.enter(0, cluster.Event{Kind: cluster.NodePaused, Node: 1})
	if got, want := x.decide(0), "0 - 0 0 0"; got != want {
		t.Fatalf("executors work for stages %s, want %s", got, want)
	}
	for i, want := range []cluster.NodeID{4, 0, 2, 3} {
		if got := x.book.Snapshot().Jobs[0].Tasks[i].Node.ID; got != want {
			t.Errorf("task %d runs on executor %d, want %d", i, got, want)
		}
	}
}

// A job that is to give executors back is asked first for those that keep something of jobs which lack executors, as
// many as these lack, and then for the coldest, which have the greatest numbers.
func TestAskedForWhatOthersKeep(t *testing.T) {
	for _, c := range []struct {
		keeps  []cluster.NodeID // something of the job that comes
		demand int              // of that job
		want   []cluster.NodeID
	}{
		{nil, 2, []cluster.NodeID{2, 3}},
		{[]cluster.NodeID{0}, 1, []cluster.NodeID{0}},
		{[]cluster.NodeID{0}, 2, []cluster.NodeID{0, 3}},
		{[]cluster.NodeID{0, 1, 2}, 2, []cluster.NodeID{1, 2}},
		{[]cluster.NodeID{0, 1, 2}, 0, nil},
	} {
		x := newExecutors(t, 4)
		stage := cluster.Stage{Ideal: resource.Of(resource.Core, resource.GB)}
		demands := func(id cluster.JobID, executors int) {
			x.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: id, NewJob: &cluster.Job{ID: id, Open: true,
				Drives: true, Stages: []cluster.Stage{stage}}})
			x.enter(0, cluster.Event{Kind: cluster.JobGrew, Job: id, Found: &cluster.Condition{
				Growth: &cluster.Growth{Demands: []cluster.Demand{{Tasks: executors}}}}})
		}
		demands(1, 4)
		x.decide(0)
		demands(2, c.demand)
		for _, n := range c.keeps {
			x.enter(0, cluster.Event{Kind: cluster.NodeSuits, Node: n, Job: 2, Found: &cluster.Condition{Keeps: true}})
		}
		x.decide(0)
		var asked []cluster.NodeID
		for _, n := range x.book.Snapshot().Nodes {
			if n.Tasks[0].Killing {
				asked = append(asked, n.ID)
			}
		}
		if !slices.Equal(asked, c.want) {
			t.Errorf("with %v kept and a demand of %d, the job is asked for %v, want %v", c.keeps, c.demand, asked, c.want)
		}
	}
}

// Of the executors that keep something of a job, it gets the one that others miss least: those that lack executors now
// more than others, and those of which fewer executors keep something.
func TestExecutorsThatOthersKeep(t *testing.T) {
	x := newExecutors(t, 4)
	keeps := map[cluster.JobID][]cluster.NodeID{1: {0, 1, 3}, 2: {0, 1, 2}, 3: {0}}
	for id := cluster.JobID(1); id <= 3; id++ {
		x.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: id, NewJob: &cluster.Job{ID: id, Stages: []cluster.Stage{
			{Tasks: map[cluster.JobID]int{1: 1, 2: 2, 3: 1}[id], Ideal: resource.Of(resource.Core, resource.GB)}}}})
		for _, n := range keeps[id] {
			x.enter(0, cluster.Event{Kind: cluster.NodeSuits, Node: n, Job: id, Found: &cluster.Condition{Keeps: true}})
		}
	}
	x.decide(0)
	for n, want := range []cluster.JobID{3, 2, 2, 1} {
		if got := x.book.Snapshot().Nodes[n].Tasks[0].ID.Job; got != want {
			t.Errorf("executor %d runs a task of job %d, want %d", n, got, want)
		}
	}
}

// A job that starts its own tasks is not asked at once for what it has just been assigned: an executor that it was
// asked for counts for its stage until it is given back.
func TestNotAskedForAtOnce(t *testing.T) {
	x := newExecutors(t, 4)
	stage := cluster.Stage{Ideal: resource.Of(resource.Core, resource.GB)}
	x.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: 1, NewJob: &cluster.Job{ID: 1, Open: true, Drives: true,
		Stages: []cluster.Stage{stage, stage}}})
	demands := func(now timeline.Time, tasks ...int) {
		t.Helper()
		g := &cluster.Growth{}
		for stage, n := range tasks {
			g.Demands = append(g.Demands, cluster.Demand{Stage: stage, Tasks: n})
		}
		x.enter(now, cluster.Event{Kind: cluster.JobGrew, Job: 1, Found: &cluster.Condition{Growth: g}})
		x.decide(now)
	}
	demands(0, 1, 0)
	gives := cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, resource.MB)}
	x.enter(1, cluster.Event{Kind: cluster.NodePressed, Node: 0, Found: &gives}) // so that it may have one
	demands(1, 0, 0)
	if tasks := x.book.Snapshot().Nodes[0].Tasks; !tasks[0].Killing {
		t.Fatal("it is not asked for executor 0")
	}
	demands(2, 1, 1)
	for range 3 {
		x.decide(2)
		for _, n := range x.book.Snapshot().Nodes[1:] {
			for _, task := range n.Tasks {
				if task.Killing {
					t.Fatalf("it is asked for executor %d, which it has just got for stage %d", n.ID, task.ID.Stage)
				}
			}
		}
	}
}
