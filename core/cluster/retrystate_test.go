package cluster

import (
	"testing"

	"github.com/bellows-rm/bellows/core/timeline"
)

// A task that has failed holds nothing and is not pending until its pause is over. A run that does not count as an
// attempt is followed by the next at once, and a task that its owner pauses meanwhile waits for its owner.
func TestRetryPauses(t *testing.T) {
	b := NewBook(nil)
	s, now := b.Snapshot(), timeline.Time(0)
	step := func(at timeline.Time, events ...Event) []Decision {
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
				p.Start(j, stage, s.Nodes[0], j.Stages[stage].LeastNeed()[1], BecauseFits(0))
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
	id := TaskID{Job: 1}
	ends := func(outcome Outcome) Event { return Event{Kind: TaskEnded, Task: id, Outcome: outcome} }
	step(0, joins(0), Event{Kind: JobSubmitted, NewJob: job}, Event{Kind: Synced})
	j, _ := s.Job(1)
	runs := func(want bool) {
		t.Helper()
		if got := len(j.Tasks) == 1; got != want {
			t.Fatalf("at %v it runs: %v, want %v", now, got, want)
		}
	}
	runs(true)
	if d := step(5, ends(Failed)); len(d) != 1 || d[0].Kind != Wake || d[0].At != 15 {
		t.Fatalf("decided %+v, want to be woken at 15", d)
	}
	if why, ok := b.WhyWaits(now, j); !ok || why != BecauseRetryLater(2, 15) || j.Progress[0].Pending != 0 {
		t.Errorf("it waits for %q (%v), and %d are pending", why.Words(nil), ok, j.Progress[0].Pending)
	}
	step(14)
	runs(false)
	step(15, Event{Kind: Woken})
	runs(true)
	step(20, ends(Lost))
	runs(true)
	step(30, ends(OutOfMemory)) // the second failure: twice the pause
	step(49)
	runs(false)
	step(50, Event{Kind: Woken}, Event{Kind: JobPaused, Job: 1, Task: id})
	runs(false)
	if why, ok := b.WhyWaits(now, j); !ok || why.Code != PausedByOwner {
		t.Errorf("it waits for %q (%v)", why.Words(nil), ok)
	}
	step(60, Event{Kind: JobResumed, Job: 1, Task: id})
	runs(true)
	step(70, ends(Failed))
	step(71, Event{Kind: JobCancelled, Job: 1})
	if _, here := s.Job(1); here {
		t.Error("it was cancelled in a pause, and is still here")
	}
	if d := step(110, Event{Kind: Woken}); len(d) != 0 {
		t.Errorf("decided %+v after its end", d)
	}
}
