package book

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// diskBound is a bound on disk bandwidth, bytes per second.
func diskBound(a resource.Amount) resource.Vector { return resource.Vector{}.With(resource.Disk, a) }

// throttleTask takes decisions about task 1.0.0 of the example at a time, and returns them.
func throttleTask(t *testing.T, s *Snapshot, now timeline.Time, last cluster.DecisionID,
	decide func(*Plan, *TaskState)) ([]cluster.Decision, error) {
	t.Helper()
	p := newPlan(now, s, last)
	decide(&p, s.task(cluster.TaskID{Job: 1}))
	return p.close(nil)
}

// A task is throttled from the decision on, until the given time or until the throttle ends, fails or is replaced.
func TestThrottle(t *testing.T) {
	s := example(t)
	id, why := cluster.TaskID{Job: 1}, cluster.BecauseNodePressure(resource.Disk, 3, 9)
	answer := func(kind cluster.EventKind, decision cluster.DecisionID, want string) {
		t.Helper()
		err := s.apply(6, &cluster.Event{Kind: kind, Task: id, Decision: decision})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Fatalf("%v of decision %d: %v, want %q", kind, decision, err, want)
		}
	}
	throttled := func(now timeline.Time, bound resource.Amount, inForce bool) {
		t.Helper()
		th, ok := s.task(id).Bounded(now)
		if ok != (bound > 0) || ok && (th.Most != diskBound(bound) || th.InForce != inForce) {
			t.Fatalf("at %v it is bounded (%v): %+v, want %d, in force %v", now, ok, th, bound, inForce)
		}
	}
	order := func(last cluster.DecisionID, bound resource.Amount, until timeline.Time) {
		t.Helper()
		version := s.task(id).Node.Version
		decisions, err := throttleTask(t, s, 5, last, func(p *Plan, task *TaskState) {
			p.Throttle(task, diskBound(bound), until, why)
		})
		if err != nil || len(decisions) != 1 || decisions[0].Kind != cluster.Throttle ||
			decisions[0].Bound != diskBound(bound) || decisions[0].Task != id || decisions[0].Reason != why {
			t.Fatalf("decisions are %+v (%v)", decisions, err)
		}
		if s.task(id).Node.Version == version {
			t.Error("the version of the node is the same")
		}
	}

	order(10, 7, 20)
	throttled(5, 7, false)
	throttled(19, 7, false)
	throttled(20, 0, false)
	answer(cluster.DecisionSuperseded, 11, "it is the newest")
	answer(cluster.DecisionDone, 12, "launched twice")
	answer(cluster.DecisionDone, 11, "")
	throttled(6, 7, true)
	answer(cluster.DecisionDone, 11, "launched twice") // it is answered already

	order(11, 5, 30) // 12 is replaced before it is carried out
	order(12, 4, 40)
	throttled(6, 4, false)
	answer(cluster.DecisionSuperseded, 12, "")
	answer(cluster.DecisionSuperseded, 12, "not under way")
	answer(cluster.DecisionDone, 13, "")
	throttled(39, 4, true)
	for now, want := range map[timeline.Time]time.Duration{4: 0, 5: 0, 12: 7, 40: 35, 99: 35} {
		if got := s.task(id).ThrottledFor(now); got != want {
			t.Errorf("at %v it was throttled for %v, want %v", now, got, want)
		}
	}

	order(13, 3, 50) // a failure ends the throttle, also the one before
	answer(cluster.DecisionFailed, 14, "")
	throttled(6, 0, false)
	if !s.task(id).Running {
		t.Error("the task ended with its throttle")
	}

	order(14, 2, 60)
	answer(cluster.DecisionDone, 15, "")
	decisions, err := throttleTask(t, s, 5, 15, func(p *Plan, task *TaskState) {
		p.Throttle(task, resource.Vector{}, 99, why)
	})
	if err != nil || len(decisions) != 1 || decisions[0].At != 0 || decisions[0].Bound != (resource.Vector{}) {
		t.Fatalf("decisions are %+v (%v)", decisions, err)
	}
	throttled(6, 0, false)
	answer(cluster.DecisionDone, 16, "")
	if s.task(id).Throttled != nil {
		t.Errorf("%+v is left", s.task(id).Throttled)
	}
	order(16, 1, 70) // with the task, the order ends
	if err := s.apply(8, &cluster.Event{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Killed}); err != nil {
		t.Fatal(err)
	}
	answer(cluster.DecisionSuperseded, 17, "not under way")
}

// An impossible throttle fails the step; one that would change nothing is no decision.
func TestThrottleIsChecked(t *testing.T) {
	why := cluster.BecauseNodePressure(resource.Disk, 3, 9)
	for _, c := range []struct {
		name   string
		decide func(*Plan, *TaskState)
		want   string
	}{
		{"memory", func(p *Plan, t *TaskState) { p.Throttle(t, resource.Of(0, 5), 9, why) },
			"throttle task 1.0.0 to 5 of memory: only rates can be bounded"},
		{"cores", func(p *Plan, t *TaskState) { p.Throttle(t, resource.Of(5, 0), 9, why) }, "to 5 of cpu"},
		{"negative", func(p *Plan, t *TaskState) { p.Throttle(t, diskBound(-1), 9, why) }, "to -1 of disk"},
		{"past", func(p *Plan, t *TaskState) { p.Throttle(t, diskBound(1), 5, why) }, "must be after now"},
		{"for ever", func(p *Plan, t *TaskState) { p.Throttle(t, diskBound(1), timeline.Never, why) }, "not for ever"},
		{"not running", func(p *Plan, t *TaskState) { t.Running = false; p.Throttle(t, diskBound(1), 9, why) },
			"it is not running"},
		{"end of none", func(p *Plan, t *TaskState) { p.Throttle(t, resource.Vector{}, 0, why) }, ""},
		{"killed", func(p *Plan, t *TaskState) { t.Killing = true; p.Throttle(t, diskBound(1), 9, why) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			decisions, err := throttleTask(t, example(t), 5, 10, c.decide)
			if len(decisions) > 0 || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("decisions are %+v (%v), want %q", decisions, err, c.want)
			}
		})
	}
}

// A task that was found throttled stays so.
func TestAdoptedThrottle(t *testing.T) {
	s := newSnapshot()
	for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: twoStages(1)},
		{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1}, Launched: 3,
			Found: &cluster.Condition{Bound: diskBound(7), Until: 20}}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	if th, ok := s.task(cluster.TaskID{Job: 1}).Bounded(19); !ok || !th.InForce || th.Most != diskBound(7) {
		t.Errorf("it is bounded (%v): %+v", ok, th)
	}
	if err := s.apply(0, &cluster.Event{Kind: cluster.TaskAdopted, Task: cluster.TaskID{Job: 1, Index: 1},
		Found: &cluster.Condition{Bound: diskBound(-7)}}); err == nil ||
		!strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("error is %v", err)
	}
}
