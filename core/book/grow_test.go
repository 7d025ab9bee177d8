package book

import (
	"fmt"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

func grows(id cluster.JobID, by cluster.Growth) cluster.Event {
	return cluster.Event{Kind: cluster.JobGrew, Job: id, Found: &cluster.Condition{Growth: &by}}
}

func stageOf(tasks int, parents ...int) cluster.Stage {
	return cluster.Stage{Tasks: tasks, Ideal: resource.Of(resource.Core, resource.GB), Parents: parents}
}

// bookOf returns a synced cluster of one node with many cores.
func bookOf(t interface{ Fatal(...any) }, jobs ...*cluster.Job) *Snapshot {
	s := newSnapshot()
	events := []cluster.Event{{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(1000*resource.Core, 1000*resource.GB)}}}
	for _, j := range jobs {
		events = append(events, cluster.Event{Kind: cluster.JobSubmitted, NewJob: j})
	}
	for _, e := range append(events, cluster.Event{Kind: cluster.Synced}) {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// runAll runs all tasks of a stage that may start, to their ends.
func runAll(t interface{ Fatal(...any) }, s *Snapshot, j *JobState, stage int) {
	for j.Ready(stage) {
		p := newPlan(1, s, 0)
		task := p.Start(j, stage, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
		if _, err := p.close(nil); err != nil {
			t.Fatal(err)
		}
		id := task.ID
		for _, e := range []cluster.Event{{Kind: cluster.DecisionDone, Task: id},
			{Kind: cluster.TaskEnded, Task: id, Outcome: cluster.Succeeded}} {
			if err := s.apply(1, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An open job that grows in a way that cannot be is left as it was.
func TestImpossibleGrowth(t *testing.T) {
	for _, c := range []struct {
		e    cluster.Event
		want string
	}{
		{cluster.Event{Kind: cluster.JobGrew, Job: 1}, "job 1: grows by nothing"},
		{grows(1, cluster.Growth{}), "job 1: grows by nothing"},
		{grows(7, cluster.Growth{Closes: true}), "job 7: grows, but it is not here"},
		{grows(2, cluster.Growth{Closes: true}), "job 2: grows, but is not open"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 0, Tasks: 1}}}),
			"must not be added, because the stage has ended and another stage depends on it"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 3, Tasks: 1}}}),
			"stage 3 gets more tasks: must be one of the 3"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: -1, Tasks: 1}}}), "stage -1 gets more tasks"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 2, Tasks: 1}, {Stage: 1, Tasks: 1}}}),
			"in ascending order"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 1, Tasks: 1}, {Stage: 1, Tasks: 1}}}),
			"in ascending order"},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 1, Tasks: 0}}}),
			`job "A" stage "1" tasks 0: must be 1 to`},
		{grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 1, Tasks: cluster.MostTasks}}}), "must be 1 to"},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(1, 3)}}),
			`job "A" stage "3" after 3: must be the index of an earlier stage, 0 to 2`},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(1, -1)}}), "after -1"},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(-1)}}), `stage "3" tasks -1: must be 0 to`},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{{Name: "c", Tasks: 1, Coordinator: true}}}),
			`stage "c" coordinator true: must not be added`},
		{grows(1, cluster.Growth{Stages: []cluster.Stage{{Tasks: 1}}}), "memory 0B: must be above 0"},
		{grows(1, cluster.Growth{Demands: []cluster.Demand{{Tasks: 1}}}),
			"job 1: demands executors, but does not start its own tasks"},
		{cluster.Event{Kind: cluster.JobSubmitted, NewJob: &cluster.Job{ID: 3, Name: "C", Drives: true,
			Stages: []cluster.Stage{stageOf(1)}}}, `job "C" drives true: must be false unless the job is open`},
		{cluster.Event{Kind: cluster.JobSubmitted,
			NewJob: &cluster.Job{ID: 3, Name: "C", Stages: []cluster.Stage{stageOf(0)}}}, `tasks 0: must be 1 to`},
	} {
		s := bookOf(t, &cluster.Job{ID: 1, Name: "A", Open: true, Stages: []cluster.Stage{stageOf(1), stageOf(2, 0),
			stageOf(0)}}, &cluster.Job{ID: 2, Name: "B", Stages: []cluster.Stage{stageOf(1)}})
		runAll(t, s, s.Jobs[0], 0)
		refuses(t, s, &c.e, c.want)
	}
}

// An open job without work does not end before it closes. A stage without tasks holds up those that depend on it
// until it has tasks that succeed, or until then.
func TestOpenJobEnds(t *testing.T) {
	s := bookOf(t, &cluster.Job{ID: 1, Name: "A", Open: true})
	j := s.Jobs[0]
	enter := func(by cluster.Growth) {
		t.Helper()
		e := grows(1, by)
		if err := s.apply(2, &e); err != nil {
			t.Fatal(err)
		}
	}
	enter(cluster.Growth{Stages: []cluster.Stage{stageOf(0), stageOf(1, 0), stageOf(0), stageOf(1, 2)}})
	if _, ready := j.NextStage(); ready {
		t.Error("a stage is ready that depends on one without tasks")
	}
	enter(cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 0, Tasks: 2}}})
	runAll(t, s, j, 0)
	if stage, ready := j.NextStage(); !ready || stage != 1 {
		t.Errorf("stage %d is next (%v), want 1", stage, ready)
	}
	runAll(t, s, j, 1)
	enter(cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 1, Tasks: 1}}}) // nothing depends on it
	if runAll(t, s, j, 1); j.Status.Ended() || j.FirstLeft() != 2 {
		t.Errorf("%s, stage %d has not ended", j.Status, j.FirstLeft())
	}
	enter(cluster.Growth{Closes: true})
	if stage, ready := j.NextStage(); !ready || stage != 3 || j.Status.Ended() {
		t.Errorf("after it closed, stage %d is next (%v), %s", stage, ready, j.Status)
	}
	if found := j.inventory(0); !found[0].NewJob.Open || found[len(found)-1].Kind != cluster.JobGrew {
		t.Errorf("a closed job with a stage without tasks is found as %+v", found)
	}
	if runAll(t, s, j, 3); j.Status != cluster.StatusSucceeded || len(s.Jobs) != 0 {
		t.Errorf("%s", j.Status)
	}
	s = bookOf(t, &cluster.Job{ID: 1, Name: "A", Open: true})
	if j = s.Jobs[0]; j.Status.Ended() {
		t.Error("a job has ended that is open")
	}
	if enter(cluster.Growth{Closes: true}); j.Status != cluster.StatusSucceeded || len(s.Jobs) != 0 {
		t.Error("a job has not ended that closed without work")
	}
}

// A job that grows step by step is in the end as one that was submitted whole.
func TestGrowthEndsInTheSameBook(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := func(what string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, what) }
		whole := &cluster.Job{ID: 1, Name: "A", Open: true}
		for i := range number("stages", 0, 6) {
			stage := stageOf(number("tasks", 0, 4))
			for p := range i {
				if number("parent", 0, 2) == 0 {
					stage.Parents = append(stage.Parents, p)
				}
			}
			whole.Stages = append(whole.Stages, stage)
		}
		steps := bookOf(rt, &cluster.Job{ID: 1, Name: "A", Open: true})
		grown := steps.Jobs[0]
		have := make([]int, len(whole.Stages))
		apply := func(by cluster.Growth) {
			if len(by.Tasks)+len(by.Stages) == 0 && !by.Closes {
				return
			}
			text := fmt.Sprintf("%+v", by)
			e := grows(1, by)
			if err := steps.apply(0, &e); err != nil {
				rt.Fatal(err)
			}
			if now := fmt.Sprintf("%+v", by); now != text {
				rt.Fatalf("the event was %s, and is %s", text, now)
			}
		}
		for begun := 0; begun < len(have); {
			var by cluster.Growth
			for k := range begun {
				if more := number("more tasks", 0, whole.Stages[k].Tasks-have[k]); more > 0 {
					by.Tasks, have[k] = append(by.Tasks, cluster.MoreTasks{Stage: k, Tasks: more}), have[k]+more
				}
			}
			for range number("more stages", 0, len(have)-begun) {
				stage := whole.Stages[begun]
				have[begun] = number("tasks at first", 0, stage.Tasks)
				stage.Tasks = have[begun]
				by.Stages, begun = append(by.Stages, stage), begun+1
			}
			apply(by)
		}
		var rest cluster.Growth
		for k := range have {
			if more := whole.Stages[k].Tasks - have[k]; more > 0 {
				rest.Tasks = append(rest.Tasks, cluster.MoreTasks{Stage: k, Tasks: more})
			}
		}
		apply(rest)
		at := bookOf(rt, whole)
		if got, want := fmt.Sprintf("%+v %+v", grown.Stages, grown.Progress),
			fmt.Sprintf("%+v %+v", at.Jobs[0].Stages, at.Jobs[0].Progress); got != want {
			rt.Fatalf("it grew to\n%s\nand as a whole it is\n%s", got, want)
		}
		// Another engine that learns of both, at any point of their work, knows the same.
		for i := range whole.Stages {
			if number("works", 0, 2) > 0 {
				runAll(rt, steps, grown, i)
				runAll(rt, at, at.Jobs[0], i)
			}
		}
		if number("closes", 0, 1) > 0 {
			e := grows(1, cluster.Growth{Closes: true})
			if err := at.apply(2, &e); err != nil {
				rt.Fatal(err)
			}
			if err := steps.apply(2, &e); err != nil {
				rt.Fatal(err)
			}
		}
		if grown.Status.Ended() {
			return
		}
		for _, s := range []*Snapshot{steps, at} {
			other := newSnapshot()
			for _, e := range s.Inventory(2) {
				if err := other.apply(2, &e); err != nil {
					rt.Fatal(err)
				}
			}
			if got, want := stateOf(other.Jobs[0]), stateOf(grown); got != want {
				rt.Fatalf("another engine knows\n%s\ninstead of\n%s", got, want)
			}
		}
	})
}

// stateOf is what decides what a job may start.
func stateOf(j *JobState) (text string) {
	for i := range j.Progress {
		p := &j.Progress[i]
		text += fmt.Sprintf("tasks %d pending %d ended %d next %d waits for %d read %v ready %v\n", j.Stages[i].Tasks,
			p.Pending, p.Ended, p.next, p.parentsLeft, p.read, j.Ready(i))
	}
	return text + fmt.Sprintf("open %v passed %d", j.Open, j.passed)
}

// Growth costs as much as it adds: not more if the job has many stages already, or stages of many tasks.
func TestGrowthIsCheap(t *testing.T) {
	s := bookOf(t, &cluster.Job{ID: 1, Name: "A", Open: true, Stages: []cluster.Stage{stageOf(100_000)}})
	stages := []cluster.Event{grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(0)}}),
		grows(1, cluster.Growth{Tasks: []cluster.MoreTasks{{Stage: 0, Tasks: 1}}})}
	if n := testing.AllocsPerRun(2000, func() {
		s.Changes.reset()
		for i := range stages {
			if err := s.apply(1, &stages[i]); err != nil {
				t.Fatal(err)
			}
		}
	}); n > 3 {
		t.Errorf("%v allocations for a stage and a task, want one for each copy of the job, without its stages", n)
	}
}

// What a job demands that starts its own tasks costs the same however many stages of it have ended.
func TestDemandIsCheap(t *testing.T) {
	s := bookOf(t, &cluster.Job{ID: 1, Name: "A", Open: true, Drives: true})
	for i := range 20_000 {
		for _, e := range []cluster.Event{grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(0)},
			Demands: []cluster.Demand{{Stage: i, Tasks: 1}}}), demands(cluster.Demand{Stage: i})} {
			if err := s.apply(1, &e); err != nil {
				t.Fatal(err)
			}
		}
	}
	j, last := s.Jobs[0], 19_999
	if j.FirstLeft() != 20_000 {
		t.Errorf("stage %d has not ended", j.FirstLeft())
	}
	again := stageOf(0)
	events := []cluster.Event{demands(cluster.Demand{Stage: last, Tasks: 2}), demands(cluster.Demand{Stage: 7}),
		demands(cluster.Demand{Stage: last}), demands(cluster.Demand{Stage: last, As: &again})}
	if n := testing.AllocsPerRun(100, func() {
		s.Changes.reset()
		for i := range events {
			if err := s.apply(1, &events[i]); err != nil {
				t.Fatal(err)
			}
			if j.FirstLeft() < last {
				t.Fatalf("after event %d, loops over what is left begin at stage %d", i, j.FirstLeft())
			}
		}
	}); n > float64(len(events)) {
		t.Errorf("%v allocations for %d growths, want one for each copy of the job, without its stages", n, len(events))
	}
}

// A stage takes the number of one that has ended, and demands nothing before its tasks start. None comes after itself.
func TestStageTakesANumber(t *testing.T) {
	s := bookOf(t, driven()) // stage 1 after stage 0
	j := s.Jobs[0]
	enter := func(d cluster.Demand) {
		t.Helper()
		if e := demands(d); s.apply(2, &e) != nil {
			t.Fatal(s.apply(2, &e))
		}
	}
	enter(cluster.Demand{Stage: 0, Tasks: 2})
	other, first := stageOf(0, 1), stageOf(0)
	bad := demands(cluster.Demand{Stage: 0, As: &other})
	refuses(t, s, &bad, "stage 0 would come after itself")
	enter(cluster.Demand{Stage: 1, As: &first})
	enter(cluster.Demand{Stage: 0, Tasks: 3, Coming: true, As: &other})
	if got := fmt.Sprint(j.Stages[0].Parents, j.Stages[0].Tasks, j.Stages[1].Parents); got != "[1] 3 []" {
		t.Errorf("it is %s", got)
	}
	if stage, ready := j.NextStage(); ready || j.Progress[0].Pending != 0 || j.StageEnded(0) {
		t.Errorf("stage %d is ready: %v; %+v", stage, ready, j.Progress[0])
	}
	enter(cluster.Demand{Stage: 0, Tasks: 3})
	if stage, ready := j.NextStage(); !ready || stage != 0 || j.Progress[0].Pending != 3 {
		t.Errorf("stage %d is ready: %v; %+v", stage, ready, j.Progress[0])
	}
	self := stageOf(0, 0)
	bad = demands(cluster.Demand{Stage: 0, As: &self})
	refuses(t, s, &bad, "stage 0 would come after itself")
	bad = demands(cluster.Demand{Stage: 2, As: &other})
	refuses(t, s, &bad, "must be one of its 2 stages")
}

// BenchmarkGrow is a stage of a job that has grown by as many stages before, from its arrival to the end of its only
// task.
func BenchmarkGrow(b *testing.B) {
	s := bookOf(b, &cluster.Job{ID: 1, Name: "A", Open: true})
	for b.Loop() {
		s.Changes.reset()
		j := s.Jobs[0]
		e := grows(1, cluster.Growth{Stages: []cluster.Stage{stageOf(1)}})
		if err := s.apply(1, &e); err != nil {
			b.Fatal(err)
		}
		runAll(b, s, j, len(j.Stages)-1)
	}
}
