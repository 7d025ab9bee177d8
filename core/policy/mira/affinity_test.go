package mira

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// drawn is a pool with jobs that start their own tasks, of which executors keep something, or on which they fail, and
// with executors whose memory is in swap.
type drawn struct {
	*executors
	random *rand.Rand
}

func draw(t *testing.T, seed uint64) *drawn {
	r := rand.New(rand.NewPCG(seed, 0))
	x := &drawn{newExecutors(t, 2+r.IntN(7)), r}
	jobs := 2 + r.IntN(3)
	for n := range jobs {
		id := cluster.JobID(n + 1)
		x.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: id, NewJob: &cluster.Job{ID: id, Open: true,
			Drives: r.IntN(4) > 0, Stages: []cluster.Stage{{Ideal: resource.Of(resource.Core, resource.GB)}}}})
	}
	for range r.IntN(30) {
		x.enter(0, cluster.Event{Kind: cluster.NodeSuits, Node: x.node(), Job: cluster.JobID(1 + r.IntN(jobs)),
			Found: &cluster.Condition{Keeps: r.IntN(4) > 0, Fails: r.IntN(6) == 0}})
	}
	for range r.IntN(10) {
		x.enter(0, cluster.Event{Kind: cluster.NodePagedOut, Node: x.node(), Held: resource.Amount(r.IntN(3))})
	}
	return x
}

func (x *drawn) node() cluster.NodeID {
	return cluster.NodeID(x.random.IntN(len(x.book.Snapshot().Nodes)))
}

// demands lets each job demand some executors.
func (x *drawn) demands() {
	for _, j := range x.book.Snapshot().Jobs {
		growth := &cluster.Growth{Demands: []cluster.Demand{{Tasks: x.random.IntN(5)}}}
		if !j.Drives {
			growth = &cluster.Growth{Tasks: []cluster.MoreTasks{{Tasks: 1 + x.random.IntN(4)}}}
		}
		x.enter(0, cluster.Event{Kind: cluster.JobGrew, Job: j.ID, Found: &cluster.Condition{Growth: growth}})
	}
}

// missedSlowly is how much jobs other than j want n, in millionths of an executor: now, and if each lacked one.
func missedSlowly(m *mira, p *book.Plan, j *book.JobState, n *book.NodeState) (now, later int64) {
	for _, other := range p.Jobs {
		keep := int64(0)
		for _, s := range other.Suits {
			if s.Keeps {
				keep++
			}
		}
		if other != j && other.SuitOf(n.ID).Keeps {
			lacks := max(0, m.app(other).entitled-other.Reservations)
			now, later = now+int64(lacks)*(1_000_000/keep), later+1_000_000/keep
		}
	}
	return now, later
}

// freeSlowly looks at all executors. Those that keep something of j come first, and those on which it fails last. Then
// those come first whose memory is there, or most of it; then those that others miss less.
func freeSlowly(m *mira, p *book.Plan, j *book.JobState) *book.NodeState {
	type place struct{ kind, out, now, later int64 }
	var best *book.NodeState
	var least place
	for _, n := range p.Nodes {
		if n.ReservedFor != nil || n.Paused || len(n.Tasks) > 0 {
			continue
		}
		var at place
		now, later := missedSlowly(m, p, j, n)
		switch suit := j.SuitOf(n.ID); {
		case suit.Fails:
			at.kind = 2
		case suit.Keeps:
			at = place{0, int64(n.Out), now, later}
		default:
			at = place{kind: 1, out: int64(n.Out)}
			if j.Drives {
				at.now = min(now, 1)
			}
		}
		if best == nil || cmp.Or(cmp.Compare(at.kind, least.kind), cmp.Compare(at.out, least.out),
			cmp.Compare(at.now, least.now), cmp.Compare(at.later, least.later)) < 0 {
			best, least = n, at
		}
	}
	return best
}

// Of free executors a job gets the one that a function finds which looks at all of them, one after the other.
func TestFreeExecutorBySlowFunction(t *testing.T) {
	outs := 0
	for seed := range uint64(3000) {
		x := draw(t, seed)
		m := x.policy.(*mira)
		x.demands()
		for _, n := range x.book.Snapshot().Nodes { // so that jobs are entitled to executors, and hold none
			x.enter(0, cluster.Event{Kind: cluster.NodePaused, Node: n.ID})
		}
		x.decide(0)
		for _, n := range x.book.Snapshot().Nodes {
			if x.random.IntN(5) > 0 {
				x.enter(0, cluster.Event{Kind: cluster.NodeResumed, Node: n.ID})
			}
		}
		p := x.book.Open(0)
		for _, j := range p.Jobs {
			m.affinity.known = false
			got, _ := m.freeExecutor(p, j, need())
			if want := freeSlowly(m, p, j); got != want {
				t.Fatalf("seed %d: job %d gets executor %v, want %v", seed, j.ID, number(got), number(want))
			} else if want != nil && want.Out > 0 {
				outs++
			}
		}
		if _, err := x.book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if outs == 0 {
		t.Error("no job has got an executor whose memory is in swap")
	}
}

func need() resource.Vector { return resource.Of(resource.Core, resource.GB) }

func number(n *book.NodeState) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(n.ID)
}

// A job is asked for executors in the order that a function finds which takes the best one again and again: for other
// jobs which lack executors those that they are missed by, then any, and of these first those whose memory is there,
// and then the coldest.
func TestAskedBackBySlowFunction(t *testing.T) {
	asked, outs := 0, 0
	for seed := range uint64(3000) {
		x := draw(t, seed)
		m := x.policy.(*mira)
		for range 2 {
			x.demands()
			x.decide(0)
		}
		p := x.book.Open(0)
		m.findLacking(p)
		for _, j := range p.Jobs {
			var left []*book.TaskState
			for _, task := range j.Tasks {
				if !task.Killing {
					left = append(left, task)
				}
			}
			over := len(left) - m.app(j).entitled
			var want []cluster.NodeID
			take := func(may func(*book.TaskState) bool) bool {
				at := -1
				for i, task := range left {
					if may(task) && (at < 0 || cmp.Or(cmp.Compare(task.Node.Out, left[at].Node.Out),
						cmp.Compare(left[at].Node.ID, task.Node.ID)) < 0) {
						at = i
					}
				}
				if at >= 0 {
					want = append(want, left[at].Node.ID)
					left = slices.Delete(left, at, at+1)
				}
				return at >= 0
			}
			for _, other := range m.affinity.lacking {
				keeps := func(task *book.TaskState) bool { return other.SuitOf(task.Node.ID).Keeps }
				for lacks := m.app(other).lacks(); lacks > 0 && len(want) < over && take(keeps); lacks-- {
				}
			}
			for take(func(*book.TaskState) bool { return true }) {
			}
			var got []cluster.NodeID
			for i, task := range m.keptBy(m.app(j)) {
				got = append(got, task.Node.ID)
				if i < over {
					asked++
					outs += min(1, int(task.Node.Out))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: job %d is asked for executors in the order %v, want %v", seed, j.ID, got, want)
			}
		}
		if _, err := x.book.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if asked < 100 || outs == 0 {
		t.Errorf("jobs are asked for %d executors, %d of which have memory in swap", asked, outs)
	}
}
