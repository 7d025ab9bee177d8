package live

import (
	"context"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// TestInputStartsOnce makes the machine fail while a program reads input: input cannot be read twice.
func TestInputStartsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		started bool
		outcome cluster.Outcome
		again   bool
	}{
		"lost before it began": {false, cluster.Lost, true},
		"lost":                 {true, cluster.Lost, false},
		"preempted":            {true, cluster.Preempted, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			s := submission(1)
			s.Input, s.Job.MaxAttempts = true, 1
			id, err := r.Submit(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			o := r.order(cluster.Start)
			if !o.Launch.Input {
				t.Error("the launch does not say that its program has input")
			}
			if c.started {
				r.fake.launched(o)
				r.fake.ended(o.Container, c.outcome, 0)
			} else {
				r.fake.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: 1, Decision: o.ID,
					Detail: "no room for a process"}
			}
			if c.again {
				if o := r.order(cluster.Start); o.Container.Run != 2 {
					t.Errorf("run %d", o.Container.Run)
				}
				return
			}
			j, err := r.Wait(context.Background(), id)
			if err != nil || j.Status != cluster.StatusFailed ||
				!strings.Contains(j.Detail, "does not start again, because its input was read once") {
				t.Errorf("%s: %q, %v", j.Status, j.Detail, err)
			}
			if _, err := r.Input(context.Background(), id); api.KindOf(err) != api.Invalid {
				t.Errorf("input of a job that has ended: %v", err)
			}
		})
	}
}

// TestInputRefused submits jobs for which it is unclear which program gets the input.
func TestInputRefused(t *testing.T) {
	r := newRig(t, fifo(t))
	defer r.end()
	for want, change := range map[string]func(*Submission){
		"job of one task":   func(s *Submission) { s.Job.Stages[0].Tasks = 2 },
		"retry 1":           func(s *Submission) { s.Job.MaxAttempts = 2 },
		`or come from file`: func(s *Submission) { s.Job.Stages[0].Stdin = "in" },
	} {
		s := submission(1)
		s.Input, s.Job.MaxAttempts = true, 1
		change(&s)
		if _, err := r.Submit(context.Background(), s); api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	id, err := r.Submit(context.Background(), submission(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Input(context.Background(), id); api.KindOf(err) != api.Invalid {
		t.Errorf("input of a job without: %v", err)
	}
}
