package book

import (
	"fmt"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// driven is a job that starts its own tasks, with two stages.
func driven() *cluster.Job {
	return &cluster.Job{ID: 1, Name: "A", Open: true, Drives: true, Stages: []cluster.Stage{stageOf(3), stageOf(2, 0)}}
}

func demands(of ...cluster.Demand) cluster.Event { return grows(1, cluster.Growth{Demands: of}) }

// A job that starts its own tasks demands executors for stages that it has, and nothing else of it grows.
func TestImpossibleDemands(t *testing.T) {
	for _, c := range []struct {
		e    cluster.Event
		want string
	}{
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Tasks: 1}}}), "job 1: gets tasks, but starts its own"},
		{demands(cluster.Demand{Stage: 2, Tasks: 1}), "job 1: demands executors for stage 2: must be one of its 2 stages"},
		{demands(cluster.Demand{Stage: -1, Tasks: 1}), "must be one of its 2 stages"},
		{demands(cluster.Demand{Stage: 1, Tasks: 1}, cluster.Demand{Tasks: 1}), "in ascending order"},
		{demands(cluster.Demand{Tasks: -1}), "job 1: demands -1 executors for stage 0: must be 0 to"},
		{demands(cluster.Demand{Tasks: cluster.MostTasks + 1}), "must be 0 to"},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB),
			Together: true}}}), `stage "2" together true: must not be in a job that starts its own tasks`},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, resource.GB),
			Coordinator: true}}}), `coordinator true: must not be in a job that starts its own tasks`},
		{cluster.Event{Kind: cluster.JobPaused, Job: 1, Task: cluster.TaskID{Job: 1}},
			"job 1 starts its own tasks: it can be paused as a whole"},
		{cluster.Event{Kind: cluster.TaskEnded, Task: cluster.TaskID{Job: 1}, Outcome: cluster.Succeeded},
			"task 1.0.0: ended, but is not running"},
	} {
		refuses(t, bookOf(t, driven()), &c.e, c.want)
	}
}

// Executors are attached to a stage while it demands more than it has. An attachment that ends, however it does, is
// replaced while it is demanded. The job ends when it has closed and the last attachment has ended.
func TestDemandsAreMet(t *testing.T) {
	s := bookOf(t, driven())
	j := s.Jobs[0]
	enter := func(e cluster.Event) {
		t.Helper()
		if err := s.apply(2, &e); err != nil {
			t.Fatal(err)
		}
	}
	attach := func(stage int) cluster.TaskID {
		t.Helper()
		p := newPlan(1, s, 0)
		task := p.Start(j, stage, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
		if _, err := p.close(nil); err != nil {
			t.Fatal(err)
		}
		enter(cluster.Event{Kind: cluster.DecisionDone, Task: task.ID})
		return task.ID
	}
	if _, ready := j.NextStage(); ready || j.FirstLeft() != 0 {
		t.Error("an executor is wanted before any is demanded")
	}
	enter(demands(cluster.Demand{Stage: 1, Tasks: 2})) // although another stage comes before: the job knows
	first, second := attach(1), attach(1)
	if _, ready := j.NextStage(); ready {
		t.Error("more is wanted than is demanded")
	}
	enter(cluster.Event{Kind: cluster.TaskEnded, Task: first, Outcome: cluster.Failed})
	if again := attach(1); again != first || j.Status != cluster.StatusRunning {
		t.Errorf("attachment %s replaces %s; %s", again, first, j.Status)
	}
	enter(demands(cluster.Demand{}, cluster.Demand{Stage: 1, Tasks: 1}))
	enter(cluster.Event{Kind: cluster.TaskEnded, Task: first, Outcome: cluster.Killed})
	if _, ready := j.NextStage(); ready || j.FirstLeft() != 1 {
		t.Errorf("ready %v, stage %d is the first; want none, 1", ready, j.FirstLeft())
	}
	enter(demands(cluster.Demand{Tasks: 1})) // again
	if stage, ready := j.NextStage(); !ready || stage != 0 {
		t.Errorf("stage %d is next (%v), want 0", stage, ready)
	}
	enter(grows(1, cluster.Growth{Closes: true}))
	if _, ready := j.NextStage(); ready || j.Status.Ended() {
		t.Errorf("after it closed: ready %v, %s", ready, j.Status)
	}
	if enter(cluster.Event{Kind: cluster.TaskEnded, Task: second,
		Outcome: cluster.Lost}); j.Status != cluster.StatusSucceeded || len(s.Jobs) != 0 {
		t.Errorf("%s", j.Status)
	}
}

// Another engine that learns of a job which starts its own tasks knows the same, whatever the job has demanded and
// been given before.
func TestAnotherEngineKnowsDemands(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := bookOf(rt, driven())
		j := s.Jobs[0]
		enter := func(e cluster.Event) {
			if err := s.apply(2, &e); err != nil {
				rt.Fatal(err)
			}
		}
		for range rapid.IntRange(0, 12).Draw(rt, "steps") {
			stage := rapid.IntRange(0, 1).Draw(rt, "stage")
			switch rapid.IntRange(0, 2).Draw(rt, "what") {
			case 0:
				d := cluster.Demand{Stage: stage, Tasks: rapid.IntRange(0, 4).Draw(rt, "demand"),
					Coming: rapid.IntRange(0, 3).Draw(rt, "coming") == 0}
				if as := stageOf(0, []int{0}[:stage]...); rapid.IntRange(0, 3).Draw(rt, "another stage") == 0 {
					d.As = &as
				}
				enter(demands(d))
			case 1:
				if !j.Ready(stage) {
					continue
				}
				p := newPlan(1, s, 0)
				task := p.Start(j, stage, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
				enter(cluster.Event{Kind: cluster.DecisionDone, Task: task.ID})
			case 2:
				if len(j.Tasks) > 0 {
					enter(cluster.Event{Kind: cluster.TaskEnded, Task: rapid.SampledFrom(j.Tasks).Draw(rt, "task").ID,
						Outcome: cluster.Preempted})
				}
			}
		}
		if len(j.Tasks) > 0 && rapid.Bool().Draw(rt, "closes") {
			enter(grows(1, cluster.Growth{Closes: true}))
		}
		other := newSnapshot()
		for _, e := range s.Inventory(2) {
			if err := other.apply(2, &e); err != nil {
				rt.Fatal(err)
			}
		}
		if got, want := stateOf(other.Jobs[0]), stateOf(j); got != want {
			rt.Fatalf("another engine knows\n%s\ninstead of\n%s", got, want)
		}
		for i := range j.Progress {
			if got, want := fmt.Sprint(other.Jobs[0].Progress[i].retry), fmt.Sprint(j.Progress[i].retry); got != want {
				rt.Fatalf("stage %d: the numbers that are free are %s instead of %s", i, got, want)
			}
		}
	})
}
