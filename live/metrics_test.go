package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

func sum(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		r.fake.events <- cluster.Event{Kind: cluster.TaskStill, Task: first.Task, Run: 1, By: cluster.HeldByMemory}
		time.Sleep(10 * time.Second)
		r.fake.events <- cluster.Event{Kind: cluster.TaskStill, Task: first.Task, Run: 1,
			By: cluster.HeldByMemory | cluster.HeldByOwner}
		time.Sleep(5 * time.Second)
		r.fake.readings = map[cluster.ContainerID]cluster.Reading{first.Container: {Swap: new(int64(7))},
			second.Container: {}}
		memory, owner := Holds{By: cluster.HeldByMemory, Begun: 1, Tasks: 1, Time: 15 * time.Second},
			Holds{By: cluster.HeldByOwner, Begun: 1, Tasks: 1, Time: 5 * time.Second}
		if m := r.Metrics(); m.Holds[0] != memory || m.Holds[1] != owner ||
			m.Holds[2] != (Holds{By: cluster.HeldByLeveling}) || m.Swapped != 7 {
			t.Errorf("while a task stands still, the metrics are %+v", m)
		} else if m.Open[cluster.StatusRunning] != 1 || sum(m.Open) != 1 {
			t.Errorf("the jobs that have not ended are %v", m.Open)
		}
		r.fake.events <- cluster.Event{Kind: cluster.TaskGoesOn, Task: first.Task, Run: 1}
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		r.fake.ended(second.Container, cluster.Failed, 1)
		if j := r.wait(id); j.Status != cluster.StatusFailed {
			t.Errorf("the job has %s", j.Status)
		}
		synctest.Wait()
		m := r.Metrics()
		memory.Tasks, owner.Tasks = 0, 0
		if m.Holds[0] != memory || m.Holds[1] != owner {
			t.Errorf("afterwards the tasks were held as %+v", m.Holds)
		}
		for kind, want := range map[cluster.EventKind]int64{cluster.NodeJoined: 1, cluster.JobSubmitted: 1,
			cluster.DecisionDone: 2, cluster.TaskStill: 2, cluster.TaskGoesOn: 1, cluster.TaskEnded: 2} {
			if m.Events[kind] != want {
				t.Errorf("%d events %s, want %d", m.Events[kind], kind, want)
			}
		}
		if m.Decisions[cluster.Start] != 2 || m.Runs[cluster.Succeeded] != 1 || m.Runs[cluster.Failed] != 1 ||
			m.Jobs[cluster.StatusFailed] != 1 || sum(m.Jobs) != 1 || sum(m.Open) != 0 {
			t.Errorf("metrics are %+v", m)
		}
		s, err := r.Status(t.Context())
		if err != nil || sum(m.Steps.Counts) != s.Steps || sum(m.Writes.Counts) == 0 || m.WriteFailures != 0 || m.Hangs != 0 {
			t.Errorf("%d steps (%v), metrics %+v", s.Steps, err, m)
		}
	})
}

// A task that an earlier daemon left standing still is held, but did not begin to be.
func TestHoldsThatAreFound(t *testing.T) {
	var c counts
	const second = 1_000_000_000
	e := cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Run: 1}
	e.SetCondition(cluster.Condition{Progress: &cluster.Progress{StillBy: cluster.HeldByOwner}})
	c.event(10*second, &e)
	c.event(12*second, &cluster.Event{Kind: cluster.TaskEnded, Task: e.Task, Run: 1})
	if got, want := c.holds.read(99 * second)[1], (Holds{By: cluster.HeldByOwner, Time: 2 * time.Second}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for _, d := range []time.Duration{0, 10 * time.Microsecond, 11 * time.Microsecond, 3 * time.Second, time.Hour} {
		h.add(d)
	}
	got := h.read()
	last := len(HistogramBounds)
	if got.Counts[0] != 2 || got.Counts[1] != 1 || got.Counts[last-1] != 1 || got.Counts[last] != 1 ||
		sum(got.Counts) != 5 || got.Sum != time.Hour+3*time.Second+21*time.Microsecond {
		t.Errorf("the histogram is %+v", got)
	}
}

// BenchmarkCounting is what counting adds to a step.
func BenchmarkCounting(b *testing.B) {
	var c counts
	e := cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Run: 1}
	for b.Loop() {
		c.event(1, &e)
		begun := time.Now()
		c.steps.add(time.Since(begun))
		c.decisions[cluster.Start].Add(1)
	}
}
