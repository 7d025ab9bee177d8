package book

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// forecastTask is a cluster with one running task, launched at 10s, of a stage with the given run time and a forecast
// of phases of 2s, 3s and 5s.
func forecastTask(t *testing.T, runs time.Duration) (*Snapshot, *TaskState) {
	t.Helper()
	s := newSnapshot()
	job := &cluster.Job{ID: 1,
		Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB), Duration: runs,
			Phases: []cluster.Phase{{Duration: 2 * time.Second}, {Duration: 3 * time.Second}, {Duration: 5 * time.Second}}}}}
	for _, e := range []cluster.Event{joins(0), {Kind: cluster.JobSubmitted, NewJob: job}, {Kind: cluster.Synced}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	p := newPlan(0, s, 0)
	task := p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
	if err := s.apply(timeline.Seconds(10), &cluster.Event{Kind: cluster.DecisionDone, Task: task.ID}); err != nil {
		t.Fatal(err)
	}
	return s, task
}

// The end of a task follows from the phase that it has entered, and is later by as long as the task stands still.
func TestEstimatedEndFollowsTheTask(t *testing.T) {
	id := cluster.TaskID{Job: 1}
	still, on := cluster.Event{Kind: cluster.TaskSuspended, Task: id, By: cluster.HeldByMemory},
		cluster.Event{Kind: cluster.TaskResumed, Task: id}
	phase := func(k int32) cluster.Event { return cluster.Event{Kind: cluster.TaskPhase, Task: id, Phase: k} }
	since := func(k int32, seconds float64) cluster.Event { return phaseSince(id, k, seconds) }
	type happens struct {
		at float64
		e  cluster.Event
	}
	for name, c := range map[string]struct {
		runs   time.Duration
		events []happens
		at     float64
		want   float64
	}{
		"as told":                       {0, nil, 12, 20},
		"overdue":                       {0, nil, 21, 21},
		"early in its second phase":     {0, []happens{{11, phase(1)}}, 12, 19},
		"late in its last phase":        {0, []happens{{19, phase(2)}}, 20, 24},
		"the phases are stretched":      {20 * time.Second, []happens{{14, phase(1)}}, 15, 30},
		"back in its first phase":       {0, []happens{{11, phase(2)}, {12, phase(0)}}, 13, 22},
		"stands still":                  {0, []happens{{13, still}}, 13, 20},
		"stands still for a while":      {0, []happens{{13, still}}, 17, 24},
		"stood still":                   {0, []happens{{13, still}, {17, on}}, 18, 24},
		"stood still twice":             {0, []happens{{13, still}, {17, on}, {18, still}}, 20, 26},
		"was overdue as it stood still": {0, []happens{{22, still}}, 25, 25},
		"in a phase after it stood":     {0, []happens{{11, still}, {14, on}, {15, phase(1)}}, 16, 23},
		"a phase was found late":        {0, []happens{{15, since(1, 14)}}, 16, 22},
		"found late and stretched":      {20 * time.Second, []happens{{20, since(1, 18)}}, 21, 34},
		"its phase ended before":        {0, []happens{{25, since(2, 15)}}, 26, 26},
		"slower than forecast":          {0, []happens{{14, since(0, 12.5)}, {16, since(0, 14)}}, 17, 24},
		"faster than forecast":          {0, []happens{{13, phase(1)}, {14, since(1, 12)}}, 15, 20},
		"begins its phase again":        {0, []happens{{13, since(0, 13)}}, 13, 23},
		"in no later phase after all":   {0, []happens{{14, phase(2)}, {15, since(1, 13.5)}}, 16, 21.5},
		"found after it stood":          {0, []happens{{11, still}, {14, on}, {16, since(1, 15)}}, 16, 23},
	} {
		t.Run(name, func(t *testing.T) {
			s, task := forecastTask(t, c.runs)
			for _, h := range c.events {
				versions := [2]uint64{task.Node.Version, task.Job.Version}
				s.Estimates.StaleSince = timeline.Never
				if err := s.apply(timeline.Seconds(h.at), &h.e); err != nil {
					t.Fatal(err)
				}
				if versions[0] == task.Node.Version || versions[1] == task.Job.Version ||
					s.Estimates.StaleSince != timeline.Seconds(h.at) {
					t.Errorf("%v: versions %d and %d, estimates stale since %v", h.e.Kind, task.Node.Version, task.Job.Version,
						s.Estimates.StaleSince)
				}
			}
			if end, ok := s.EstimatedEnd(task, timeline.Seconds(c.at)); !ok || end != timeline.Seconds(c.want) {
				t.Errorf("should end at %v (%v), want %vs", end, ok, c.want)
			}
		})
	}
}

// phaseSince is the event that a task was found in a phase that it entered at a time, in seconds.
func phaseSince(id cluster.TaskID, phase int32, since float64) cluster.Event {
	return cluster.Event{Kind: cluster.TaskPhase, Task: id, Phase: phase,
		Found: &cluster.Condition{Progress: &cluster.Progress{PhaseSince: timeline.Seconds(since)}}}
}

// What a snapshot tells of a task that stands still.
func TestStillness(t *testing.T) {
	s, task := forecastTask(t, 0)
	apply := func(at float64, e cluster.Event) {
		t.Helper()
		if err := s.apply(timeline.Seconds(at), &e); err != nil {
			t.Fatal(err)
		}
	}
	if task.Phase != 0 || task.PhaseSince != timeline.Seconds(10) {
		t.Errorf("in phase %d since %v", task.Phase, task.PhaseSince)
	}
	apply(12, cluster.Event{Kind: cluster.TaskPhase, Task: task.ID, Phase: 1})
	apply(13, cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory})
	if !task.Suspended || task.SuspendedBy != cluster.HeldByMemory || task.SuspendedSince != timeline.Seconds(13) ||
		task.PhaseSince != timeline.Seconds(12) {
		t.Errorf("%+v", task)
	}
	before := dump(s)
	for _, e := range []cluster.Event{{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory},
		{Kind: cluster.TaskPhase, Task: task.ID, Phase: 2}} {
		if err := s.apply(timeline.Seconds(14), &e); err == nil || dump(s) != before {
			t.Errorf("%v of a task that stands still: %v", e.Kind, err)
		}
	}
	apply(15, cluster.Event{Kind: cluster.TaskResumed, Task: task.ID})
	apply(16, cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory})
	apply(19, cluster.Event{Kind: cluster.TaskResumed, Task: task.ID})
	if task.Suspended || task.SuspendedBy != 0 || task.SuspendedFor != 5*time.Second {
		t.Errorf("%+v", task)
	}
	apply(20, phaseSince(task.ID, 1, 18))
	if task.Phase != 1 || task.PhaseSince != timeline.Seconds(18) {
		t.Errorf("in phase %d since %v", task.Phase, task.PhaseSince)
	}
	before = dump(s)
	for _, c := range []struct {
		phase int32
		since float64
	}{{1, 18}, {2, 9.9}, {2, 20.1}, {3, 18}} {
		if e := phaseSince(task.ID, c.phase, c.since); s.apply(timeline.Seconds(20), &e) == nil || dump(s) != before {
			t.Errorf("phase %d since %vs: no error, or another snapshot", c.phase, c.since)
		}
	}
	apply(20, cluster.Event{Kind: cluster.TaskSuspended, Task: task.ID, By: cluster.HeldByMemory})
	apply(21, cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: cluster.Killed})
}
