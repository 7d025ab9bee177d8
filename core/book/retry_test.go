package book

import (
	"fmt"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A task that has failed holds nothing and is not pending until its pause is over. A run that does not count as an
// attempt is followed by the next at once, and a task that its owner pauses meanwhile waits for its owner.
func TestRetryPauses(t *testing.T) {
	b := NewBook(nil)
	s, now := b.Snapshot(), timeline.Time(0)
	step := func(at timeline.Time, events ...cluster.Event) []cluster.Decision {
		t.Helper()
		now = at
		p := b.Open(now)
		for i := range events {
			if err := b.Enter(now, &events[i]); err != nil {
				t.Fatal(err)
			}
		}
		b.Retry()
		for j, ready := s.Job(1); ready; {
			stage, ok := j.NextStage()
			if ready = ok; ok {
				p.Start(j, stage, s.Nodes[0], j.Stages[stage].LeastNeed()[1], cluster.BecauseFits(0))
			}
		}
		decisions, err := b.Close()
		if err != nil {
			t.Fatal(err)
		}
		return decisions
	}
	job := twoStages(1)
	job.Stages, job.MaxAttempts, job.RetryDelay = job.Stages[:1], 5, 10
	job.Stages[0].Tasks = 1
	id := cluster.TaskID{Job: 1}
	ends := func(outcome cluster.Outcome) cluster.Event {
		return cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: outcome}
	}
	step(0, joins(0), cluster.Event{Kind: cluster.JobSubmitted, NewJob: job}, cluster.Event{Kind: cluster.Synced})
	j, _ := s.Job(1)
	runs := func(want bool) {
		t.Helper()
		if got := len(j.Tasks) == 1; got != want {
			t.Fatalf("at %v it runs: %v, want %v", now, got, want)
		}
	}
	runs(true)
	if d := step(5, ends(cluster.Failed)); len(d) != 1 || d[0].Kind != cluster.Wake || d[0].At != 15 {
		t.Fatalf("decided %+v, want to be woken at 15", d)
	}
	if why, ok := b.WhyWaits(now, j); !ok || why != cluster.BecauseRetryLater(2, 15) || j.Progress[0].Pending != 0 {
		t.Errorf("it waits for %q (%v), and %d are pending", why.Words(nil), ok, j.Progress[0].Pending)
	}
	step(14)
	runs(false)
	step(15, cluster.Event{Kind: cluster.Woken})
	runs(true)
	step(20, ends(cluster.Lost))
	runs(true)
	step(30, ends(cluster.OutOfMemory)) // the second failure: twice the pause
	step(49)
	runs(false)
	step(50, cluster.Event{Kind: cluster.Woken}, cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: id})
	runs(false)
	if why, ok := b.WhyWaits(now, j); !ok || why.Code != cluster.PausedByOwner {
		t.Errorf("it waits for %q (%v)", why.Words(nil), ok)
	}
	step(60, cluster.Event{Kind: cluster.JobResumed, Job: 1, Task: id})
	runs(true)
	step(70, ends(cluster.Failed))
	step(71, cluster.Event{Kind: cluster.JobCancelled, Job: 1})
	if _, here := s.Job(1); here {
		t.Error("it was cancelled in a pause, and is still here")
	}
	if d := step(110, cluster.Event{Kind: cluster.Woken}); len(d) != 0 {
		t.Errorf("decided %+v after its end", d)
	}
}

// The end of a pause between attempts costs as much with many jobs whose tasks pause as with few.
func BenchmarkRetryDue(b *testing.B) {
	for _, jobs := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			s := newSnapshot()
			for i := range jobs {
				if err := s.submit(&cluster.Job{ID: cluster.JobID(i + 1), Name: "j", Stages: []cluster.Stage{{Name: "s", Tasks: 1,
					Ideal: resource.Of(1000, resource.MiB)}}}); err != nil {
					b.Fatal(err)
				}
			}
			p := newPlan(0, s, 0)
			now, at, i := timeline.Time(0), timeline.Time(0), 0
			pause := func() {
				at = at.Add(time.Millisecond)
				s.pauseAfter(s.byJob[cluster.JobID(i%jobs+1)], 0, again{0, at})
				i++
			}
			for range jobs {
				pause()
			}
			for b.Loop() {
				now = now.Add(time.Millisecond)
				p.reset(now)
				p.retryDue()
				s.Changes.Jobs = s.Changes.Jobs[:0]
				pause()
			}
		})
	}
}

// A job fails at once after an end that is not tried again, and else when it has no attempt left.
func TestRetryOn(t *testing.T) {
	for _, c := range []struct {
		on      cluster.RetryOn
		ends    cluster.Outcome
		retried bool
	}{
		{cluster.RetryOnAny, cluster.Failed, true},
		{cluster.RetryOnAny, cluster.OutOfMemory, true},
		{cluster.RetryOnOOM, cluster.OutOfMemory, true},
		{cluster.RetryOnOOM, cluster.Failed, false},
		{cluster.RetryOnOOM, cluster.Killed, false},
		{cluster.RetryOnOOM, cluster.Lost, true}, // no attempt, as the next
		{cluster.RetryOnOOM, cluster.Preempted, true},
		{cluster.RetryOnError, cluster.OutOfMemory, false},
		{cluster.RetryOnError, cluster.Failed, true},
	} {
		t.Run(fmt.Sprintf("%s/%s", c.on, c.ends), func(t *testing.T) {
			s := newSnapshot()
			job := twoStages(1)
			job.Stages, job.MaxAttempts, job.RetryOn, job.RetryDelay = job.Stages[:1], 2, c.on, 0
			job.Stages[0].Tasks = 1
			apply := func(events ...cluster.Event) {
				t.Helper()
				for i := range events {
					if err := s.apply(0, &events[i]); err != nil {
						t.Fatal(err)
					}
				}
			}
			apply(joins(0), cluster.Event{Kind: cluster.JobSubmitted, NewJob: job}, cluster.Event{Kind: cluster.Synced})
			j := s.Jobs[0]
			p := newPlan(0, s, 0)
			id := p.Start(j, 0, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB)).ID
			apply(cluster.Event{Kind: cluster.DecisionDone, Task: id},
				cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: c.ends})
			if got := j.Status != cluster.StatusFailed && j.Progress[0].Pending == 1; got != c.retried {
				t.Errorf("it is %s, want that it is tried again: %v", j.Status, c.retried)
			}
		})
	}
}
