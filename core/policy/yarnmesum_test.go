package policy

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// sumCase is a node of 10 cores and 10GB. One of the three tasks of job 1, of 6GB, has run there since 0s. Job 2 has
// two tasks of 1GB and two cores, job 3 one task of 4GB; none of them has started.
func sumCase(t *testing.T) *book.Book {
	t.Helper()
	job := func(id cluster.JobID, tasks int, cores, gb resource.Amount, run time.Duration) *cluster.Job {
		return &cluster.Job{ID: id, Name: "j", Weight: 1, MaxAttempts: 1,
			Stages: []cluster.Stage{{Name: "s", Tasks: tasks, Ideal: resource.Of(cores*resource.Core, gb*resource.GB),
				Duration: run}}}
	}
	b := book.NewBook(nil)
	apply := func(e cluster.Event) {
		t.Helper()
		if err := b.Enter(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	apply(cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(10*resource.Core, 10*resource.GB)}})
	for _, j := range []*cluster.Job{job(1, 3, 1, 6, 100*time.Second), job(2, 2, 2, 1, 50*time.Second),
		job(3, 1, 1, 4, 20*time.Second)} {
		apply(cluster.Event{Kind: cluster.JobSubmitted, NewJob: j})
	}
	apply(cluster.Event{Kind: cluster.Synced})
	p, s := b.Open(0), b.Snapshot()
	p.Start(s.Jobs[0], 0, s.Nodes[0], 6*resource.GB, cluster.BecauseFits(6*resource.GB))
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
	apply(cluster.Event{Kind: cluster.DecisionDone, Task: cluster.TaskID{Job: 1}})
	return b
}

// TestSum compares the estimates of sum with results worked out by hand, at 40s. The running task uses 6GB for 60s
// more: 360GBs. Tasks take 10, 2 (one fifth, because of the cores) and 5GB of a node, so that 2000, 200 and 100GBs are
// queued. Each job waits for its own queued work, for all work of jobs with less, and for as much as its own of each
// job with more: 2300, 500 and 300GBs. A reservation keeps 4GB idle for 60s: 240GBs.
//
// A task that came to stand still at 20s needs 80s more, whenever it goes on: 480GBs.
func TestSum(t *testing.T) {
	at := func(s float64) timeline.Time { return timeline.Time(s * 1e9) }
	type times struct{ end, started float64 }
	for name, c := range map[string]struct {
		reserve bool
		now     float64
		want    []times
	}{
		"plain":    {false, 40, []times{{306, 206}, {126, 76}, {106, 86}}},
		"reserved": {true, 40, []times{{330, 230}, {150, 100}, {130, 110}}},
		// The task should have ended: no memory is in use until a known time.
		"overdue": {false, 120, []times{{350, 250}, {170, 120}, {150, 130}}},
		"still":   {false, 50, []times{{328, 228}, {148, 98}, {128, 108}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := sumCase(t)
			if name == "still" {
				enter(t, b, at(20), cluster.Event{Kind: cluster.TaskSuspended, Task: cluster.TaskID{Job: 1},
					By: cluster.HeldByMemory})
			}
			p, s := b.Open(at(c.now)), b.Snapshot()
			if c.reserve {
				p.Reserve(s.Nodes[0], s.Jobs[0], 0, cluster.BecauseReserved(resource.Vector{}, resource.Vector{}))
			}
			var by sum
			by.Estimate(at(40), p) // It must not keep what is no longer true.
			for range 2 {
				by.Estimate(at(c.now), p)
				for i, want := range c.want {
					j := s.Jobs[i]
					if !near(j.Estimate.End, at(want.end)) || !near(j.Estimate.AllStarted, at(want.started)) ||
						!j.Estimate.EndKnown || !j.Estimate.AllStartedKnown {
						t.Errorf("job %d should end at %v (%v) and have started all at %v (%v), want %vs and %vs", j.ID, j.Estimate.End,
							j.Estimate.EndKnown, j.Estimate.AllStarted, j.Estimate.AllStartedKnown, want.end, want.started)
					}
				}
			}
		})
	}
}

// TestSumOfLittle: on an idle cluster a job takes as long as its longest task, however little it requests; a job with
// all of its tasks running takes as long as they do.
func TestSumOfLittle(t *testing.T) {
	b := book.NewBook(nil)
	for _, e := range []cluster.Event{
		{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(10*resource.Core, 10*resource.GB)}},
		{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: 1, Name: "j", Weight: 1, MaxAttempts: 1,
			Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB),
				Duration: 100 * time.Second}}}},
		{Kind: cluster.Synced},
	} {
		if err := b.Enter(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	var by sum
	p, s := b.Open(timeline.Time(7e9)), b.Snapshot()
	by.Estimate(timeline.Time(7e9), p)
	if j := s.Jobs[0]; j.Estimate.End != timeline.Time(107e9) || j.Estimate.AllStarted != timeline.Time(7e9) ||
		!j.Estimate.AllStartedKnown {
		t.Errorf("it should end at %v, with all started at %v", j.Estimate.End, j.Estimate.AllStarted)
	}
	p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
	by.Estimate(timeline.Time(30e9), p)
	if j := s.Jobs[0]; j.Estimate.End != timeline.Time(107e9) || j.Estimate.AllStartedKnown {
		t.Errorf("once it runs it should end at %v; more to start: %v", j.Estimate.End, j.Estimate.AllStartedKnown)
	}
	// Launched at 30s, it stands still from 60s on, 70s before its end.
	id := cluster.TaskID{Job: 1}
	enter(t, b, timeline.Time(30e9), cluster.Event{Kind: cluster.DecisionDone, Task: id})
	enter(t, b, timeline.Time(60e9), cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory})
	for _, now := range []float64{60, 80} {
		by.Estimate(timeline.Seconds(now), p)
		if j := s.Jobs[0]; j.Estimate.End != timeline.Seconds(now+70) {
			t.Errorf("at %vs it stands still and should end at %v", now, j.Estimate.End)
		}
	}
}

func enter(t *testing.T, b *book.Book, now timeline.Time, e cluster.Event) {
	t.Helper()
	if err := b.Enter(now, &e); err != nil {
		t.Fatal(err)
	}
}

// near allows for rounding of floating-point numbers.
func near(a, b timeline.Time) bool { return max(a-b, b-a) < timeline.Time(time.Microsecond) }
