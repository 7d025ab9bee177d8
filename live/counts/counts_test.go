package counts

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A task that an earlier daemon left standing still is held, but did not begin to be.
func TestHoldsThatAreFound(t *testing.T) {
	var c Counters
	const second = 1_000_000_000
	e := cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Run: 1}
	e.SetCondition(cluster.Condition{Progress: &cluster.Progress{SuspendedBy: cluster.HeldByOwner}})
	c.Event(10*second, &e)
	c.Event(12*second, &cluster.Event{Kind: cluster.TaskEnded, Task: e.Task, Run: 1})
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
		got.Counts[2] != 0 || got.Sum != time.Hour+3*time.Second+21*time.Microsecond {
		t.Errorf("the histogram is %+v", got)
	}
}

// BenchmarkCounting is what counting adds to a step.
func BenchmarkCounting(b *testing.B) {
	var c Counters
	e := cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Run: 1}
	for b.Loop() {
		c.Event(1, &e)
		begun := time.Now()
		c.Step(time.Since(begun))
		c.Decision(cluster.Start)
	}
}
