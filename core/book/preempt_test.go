package book

import (
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
)

// A preempted task runs again and the run does not count as an attempt, whatever outcome is reported. But a task that
// succeeds before it can be ended has succeeded, a task that fails has failed, and a job that was cancelled in the
// meantime ends.
func TestPreempt(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome cluster.Outcome
		cancel  bool
		pending int
		status  cluster.JobStatus
	}{
		{"killed", cluster.Killed, false, 2, cluster.StatusRunning},
		{"preempted", cluster.Preempted, false, 2, cluster.StatusRunning},
		{"lost", cluster.Lost, false, 2, cluster.StatusRunning},
		{"succeeded", cluster.Succeeded, false, 1, cluster.StatusRunning},
		{"failed", cluster.Failed, false, 1, cluster.StatusFailed},
		{"cancelled", cluster.Killed, true, 1, cluster.StatusCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example(t)
			j, task := s.Jobs[0], cluster.TaskID{Job: 1}
			p := newPlan(5, s, 0)
			p.Mark(s.task(task))
			p.Preempt(s.task(task), cluster.BecauseQueueOverShare(1, 2, 3))
			p.Preempt(s.task(task), cluster.BecauseQueueOverShare(1, 2, 3))
			p.Kill(s.task(task), cluster.Because(cluster.CancelledByOwner))
			decisions, err := p.close(nil)
			if err != nil || len(decisions) != 1 || decisions[0].Kind != cluster.Kill || !decisions[0].Preempt ||
				decisions[0].Task != task {
				t.Fatalf("decisions are %+v (%v)", decisions, err)
			}
			if !s.task(task).Mark.Set || s.task(task).Mark.At != 5 {
				t.Error("the mark is not kept")
			}
			if c.cancel {
				if err := s.apply(6, &cluster.Event{Kind: cluster.JobCancelled, Job: 1}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.apply(7, &cluster.Event{Kind: cluster.TaskEnded, Task: task, Outcome: c.outcome}); err != nil {
				t.Fatal(err)
			}
			if j.Status != c.status || j.Progress[0].Pending != c.pending {
				t.Errorf("job is %v with %d pending tasks, want %v with %d", j.Status, j.Progress[0].Pending, c.status, c.pending)
			}
			if c.status != cluster.StatusRunning {
				return
			}
			p = newPlan(8, s, 1)
			if again := p.Start(j, 0, s.Nodes[0], j.Stages[0].Ideal[1], cluster.BecauseFits(0)); again == nil ||
				len(j.Progress[0].attempts) > 0 || again.Preempting || again.Mark.Set {
				t.Errorf("the next task is %+v", again)
			}
		})
	}
}

// A run that was preempted while the engine was not running does not count as an attempt either.
func TestPreemptedBeforeSync(t *testing.T) {
	s := newSnapshot()
	for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: twoStages(1)},
		{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: cluster.Preempted}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	if j, here := s.Job(1); !here || j.Progress[0].Pending != 3 {
		t.Errorf("the job is here: %v", here)
	}
}

func TestCoordinatorsAreNotPreempted(t *testing.T) {
	s := example(t)
	s.task(cluster.TaskID{Job: 1}).Steers = true
	p := newPlan(5, s, 0)
	p.Preempt(s.task(cluster.TaskID{Job: 1}), cluster.BecauseQueueOverShare(0, 0, 0))
	if _, err := p.close(nil); err == nil ||
		!strings.Contains(err.Error(), "preempt task 1.0.0: it is the coordinator of its job") {
		t.Errorf("error is %v", err)
	}
}

func TestPreemptionIsPlanned(t *testing.T) {
	s := example(t)
	p := newPlan(5, s, 0)
	p.PlanPreemption(8, cluster.Because(cluster.PreemptionDue))
	decisions, err := p.close(nil)
	if err != nil || len(decisions) != 1 || decisions[0].Kind != cluster.Wake || decisions[0].At != 8 ||
		s.Preemption.At != 8 {
		t.Errorf("decisions are %+v (%v)", decisions, err)
	}
	if p.EndPreemption(); s.Preemption.At != 0 {
		t.Error("the end is not kept")
	}
}
