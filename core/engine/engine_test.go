package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/engine"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// made is a policy whose decisions the test supplies.
type made struct {
	decide func(timeline.Time, *book.Plan)
}

func (made) Name() string                                        { return "made" }
func (made) Traits() policy.Traits                               { return policy.Traits{} }
func (m made) Decide(now timeline.Time, p *book.Plan)            { m.decide(now, p) }
func rejectAll(_ timeline.Time, _ *book.Plan)                    {}
func newEngine(f func(timeline.Time, *book.Plan)) *engine.Engine { return engine.New(made{f}, nil) }

func node() cluster.Event {
	return cluster.Event{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n1", Capacity: resource.Of(4*resource.Core, 8*resource.GB)}}
}

func submitted(id cluster.JobID, tasks int) cluster.Event {
	return cluster.Event{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: id, Name: fmt.Sprint("J", id),
		Stages: []cluster.Stage{{Tasks: tasks, Ideal: resource.Of(resource.Core, resource.GB), Duration: time.Second}}}}
}

func step(t *testing.T, e *engine.Engine, now timeline.Time, events ...cluster.Event) []cluster.Decision {
	t.Helper()
	decisions, err := e.Step(now, events...)
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

// caching is a policy that counts how often its caches are dropped.
type caching struct {
	made
	dropped *int
}

func (c caching) Traits() policy.Traits { return policy.Traits{DropCaches: func() { *c.dropped++ }} }

// What a policy has cached of the cluster of one engine is nothing to the next.
func TestCachesOfAnotherEngineAreDropped(t *testing.T) {
	p := caching{dropped: new(int)}
	for n := range 2 {
		if engine.New(p, nil); *p.dropped != n+1 {
			t.Errorf("engine %d: the caches were dropped %d times in all", n+1, *p.dropped)
		}
	}
}

func TestTimeNeverGoesBack(t *testing.T) {
	e := newEngine(rejectAll)
	step(t, e, 10, node())
	step(t, e, 10, cluster.Event{Kind: cluster.Synced})
	if _, err := e.Step(9, cluster.Event{Kind: cluster.Woken}); err == nil ||
		!strings.Contains(err.Error(), "step at 9ns after one at 10ns") {
		t.Errorf("error is %v", err)
	}
	if e.Steps() != 2 {
		t.Errorf("%d steps were counted, want 2", e.Steps())
	}
}

func TestImpossibleEventIsNamed(t *testing.T) {
	e := newEngine(rejectAll)
	_, err := e.Step(3, cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: cluster.Succeeded})
	if err == nil || err.Error() != "engine: event task-ended at 3ns: task 1.0.0: ended, but is not running" {
		t.Errorf("error is %v", err)
	}
}

func TestNothingIsDecidedBeforeTheInventoryIsComplete(t *testing.T) {
	calls := 0
	e := newEngine(func(timeline.Time, *book.Plan) { calls++ })
	step(t, e, 0, node(), submitted(1, 1))
	if calls != 0 {
		t.Errorf("the policy was asked %d times", calls)
	}
	step(t, e, 0, cluster.Event{Kind: cluster.Synced})
	step(t, e, 0)
	if calls != 2 {
		t.Errorf("the policy was asked %d times, want 2", calls)
	}
}

func TestImpossibleDecisionIsAnError(t *testing.T) {
	e := newEngine(func(_ timeline.Time, p *book.Plan) {
		for _, j := range p.Jobs {
			p.Start(j, 0, p.Nodes[0], 100*resource.GB, cluster.BecauseFits(0))
		}
	})
	step(t, e, 0, node(), cluster.Event{Kind: cluster.Synced})
	if _, err := e.Step(1, submitted(1, 1)); err == nil ||
		!strings.Contains(err.Error(), "policy at 1ns: start of a task of job 1") {
		t.Errorf("error is %v", err)
	}
}

// The changes that a policy sees are the changes since its last decision, and no older ones.
func TestChangesAreForgotten(t *testing.T) {
	var seen []book.Changes
	e := newEngine(func(_ timeline.Time, p *book.Plan) { seen = append(seen, p.Changes) })
	step(t, e, 0, node(), cluster.Event{Kind: cluster.Synced})
	step(t, e, 1, submitted(1, 1))
	step(t, e, 2, cluster.Event{Kind: cluster.Woken})
	if len(seen[0].Nodes) != 1 || !seen[1].Arrived || !seen[1].Demand || len(seen[1].Nodes) != 0 || !seen[2].Woken ||
		seen[2].Arrived || len(seen[2].Jobs) != 0 {
		t.Errorf("changes are %+v", seen)
	}
}

// Jobs that are to end have their tasks killed, once, regardless of the policy; the numbers of decisions continue.
func TestStoppedJobsAreKilled(t *testing.T) {
	for _, c := range []struct {
		name string
		e    cluster.Event
		why  cluster.ReasonCode
		left int
	}{
		{"cancelled", cluster.Event{Kind: cluster.JobCancelled, Job: 1}, cluster.CancelledByOwner, 3},
		{"failed", cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: cluster.Failed},
			cluster.JobGaveUp, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := policy.New("fifo", nil)
			if err != nil {
				t.Fatal(err)
			}
			e := engine.New(p, func(s *book.Snapshot) { s.LaunchDelay = time.Second })
			step(t, e, 0, node(), cluster.Event{Kind: cluster.Synced})
			if started := step(t, e, 1, submitted(1, 3)); len(started) != 3 || started[2].ID != 3 {
				t.Fatalf("decisions are %+v", started)
			}
			kills := step(t, e, 2, c.e)
			if len(kills) != c.left {
				t.Fatalf("decisions are %+v", kills)
			}
			for i, k := range kills {
				if k.Kind != cluster.Kill || k.Reason.Code != c.why || k.ID != cluster.DecisionID(4+i) {
					t.Errorf("decision is %+v", k)
				}
			}
			j, here := e.Snapshot().Job(1)
			if !here || !j.Status.Ended() {
				t.Fatalf("job is %v (%v), want ended and still here", j.Status, here)
			}
			for _, k := range kills {
				if again := step(t, e, 3, cluster.Event{Kind: cluster.TaskEnded, Task: k.Task, Outcome: cluster.Killed}); len(
					again) != 0 {
					t.Errorf("decisions are %+v, want none", again)
				}
			}
			if _, here := e.Snapshot().Job(1); here {
				t.Error("the job is still here")
			}
		})
	}
}
