package cluster

import (
	"strings"
	"testing"
)

// A preempted task runs again and the run does not count as an attempt, whatever outcome is reported. But a task that
// succeeds before it can be ended has succeeded, a task that fails has failed, and a job that was cancelled in the
// meantime ends.
func TestPreempt(t *testing.T) {
	for _, c := range []struct {
		name    string
		outcome Outcome
		cancel  bool
		pending int
		status  JobStatus
	}{
		{"killed", Killed, false, 2, StatusRunning},
		{"preempted", Preempted, false, 2, StatusRunning},
		{"lost", Lost, false, 2, StatusRunning},
		{"succeeded", Succeeded, false, 1, StatusRunning},
		{"failed", Failed, false, 1, StatusFailed},
		{"cancelled", Killed, true, 1, StatusCancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := example(t)
			j, task := s.Jobs[0], TaskID{1, 0, 0}
			p := newPlan(5, s, 0)
			p.Mark(s.task(task))
			p.Preempt(s.task(task), BecauseQueueOverShare(1, 2, 3))
			p.Preempt(s.task(task), BecauseQueueOverShare(1, 2, 3))
			p.Kill(s.task(task), Because(CancelledByOwner))
			decisions, err := p.close(nil)
			if err != nil || len(decisions) != 1 || decisions[0].Kind != Kill || !decisions[0].Preempt || decisions[0].Task != task {
				t.Fatalf("decisions are %+v (%v)", decisions, err)
			}
			if !s.task(task).Mark.Set || s.task(task).Mark.At != 5 {
				t.Error("the mark is not kept")
			}
			if c.cancel {
				if err := s.apply(6, &Event{Kind: JobCancelled, Job: 1}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.apply(7, &Event{Kind: TaskEnded, Task: task, Outcome: c.outcome}); err != nil {
				t.Fatal(err)
			}
			if j.Status != c.status || j.Progress[0].Pending != c.pending {
				t.Errorf("job is %v with %d pending tasks, want %v with %d", j.Status, j.Progress[0].Pending, c.status, c.pending)
			}
			if c.status != StatusRunning {
				return
			}
			p = newPlan(8, s, 1)
			if again := p.Start(j, 0, s.Nodes[0], j.Stages[0].Ideal[1], BecauseFits(0)); again == nil || len(j.Progress[0].attempts) > 0 || again.Preempting || again.Mark.Set {
				t.Errorf("the next task is %+v", again)
			}
		})
	}
}

// A run that was preempted while the engine was not running does not count as an attempt either.
func TestPreemptedBeforeSync(t *testing.T) {
	s := newSnapshot()
	for _, e := range []Event{joins(0), {Kind: JobSubmitted, NewJob: twoStages(1)}, {Kind: TaskEnded, Task: TaskID{1, 0, 0}, Outcome: Preempted}} {
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
	s.task(TaskID{1, 0, 0}).Steers = true
	p := newPlan(5, s, 0)
	p.Preempt(s.task(TaskID{1, 0, 0}), BecauseQueueOverShare(0, 0, 0))
	if _, err := p.close(nil); err == nil || !strings.Contains(err.Error(), "preempt task 1.0.0: it is the coordinator of its job") {
		t.Errorf("error is %v", err)
	}
}

func TestPreemptionIsPlanned(t *testing.T) {
	s := example(t)
	p := newPlan(5, s, 0)
	p.PlanPreemption(8, Because(PreemptionDue))
	decisions, err := p.close(nil)
	if err != nil || len(decisions) != 1 || decisions[0].Kind != Wake || decisions[0].At != 8 || s.Preemption.At != 8 {
		t.Errorf("decisions are %+v (%v)", decisions, err)
	}
	if p.EndPreemption(); s.Preemption.At != 0 {
		t.Error("the end is not kept")
	}
}
