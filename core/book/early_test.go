package book

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// A stage that starts early may start when a share of its parent has ended and none of the rest waits to start. Its
// tasks are in their first phase until all of the parent has ended.
func TestStageStartsEarly(t *testing.T) {
	reduce := stageOf(1, 0)
	reduce.StartShare = 0.5
	for _, lasts := range []time.Duration{30, 20} {
		reduce.Phases = append(reduce.Phases, cluster.Phase{Duration: lasts * time.Second, Demand: reduce.Ideal})
	}
	job := &cluster.Job{ID: 1, MaxAttempts: 2, RetryOn: cluster.RetryOnAny, Stages: []cluster.Stage{stageOf(3), reduce}}
	s := bookOf(t, job)
	j, _ := s.Job(1)
	apply := func(at float64, e cluster.Event) {
		t.Helper()
		if err := s.apply(timeline.Seconds(at), &e); err != nil {
			t.Fatal(err)
		}
	}
	start := func(at float64, stage int) *TaskState {
		t.Helper()
		p := newPlan(timeline.Seconds(at), s, 0)
		task := p.Start(j, stage, s.Nodes[0], resource.GB, cluster.BecauseFits(resource.GB))
		if _, err := p.close(nil); err != nil {
			t.Fatal(err)
		}
		apply(at, cluster.Event{Kind: cluster.DecisionDone, Task: task.ID})
		return task
	}
	ready := func(when string, want bool) {
		t.Helper()
		if j.Ready(1) != want {
			t.Errorf("%s: the reduce may start: %v", when, !want)
		}
	}
	end := func(at float64, task *TaskState, how cluster.Outcome) {
		t.Helper()
		apply(at, cluster.Event{Kind: cluster.TaskEnded, Task: task.ID, Outcome: how})
	}
	a, b := start(0, 0), start(0, 0)
	end(5, a, cluster.Succeeded)
	ready("one of three maps has ended, and one has not started", false)
	c := start(5, 0)
	ready("one of three maps has ended", false)
	end(10, b, cluster.Succeeded)
	ready("two of three maps have ended", true)
	end(10, c, cluster.Failed)
	ready("a map has failed, and runs again", false)
	c = start(10, 0)
	ready("the map runs again", true)
	r := start(10, 1)
	for at, want := range map[float64]float64{20: 60, 40: 60, 45: 65, 90: 110} {
		if got, ok := s.EstimatedEnd(r, timeline.Seconds(at)); !ok || got != timeline.Seconds(want) {
			t.Errorf("at %v s the reduce should end at %v, want %v s", at, got, want)
		}
		if phase, ok := r.PhaseAt(timeline.Seconds(at)); !ok || phase != 0 || !r.Waits {
			t.Errorf("at %v s the reduce is in phase %d, %v", at, phase, ok)
		}
	}
	end(100, c, cluster.Succeeded)
	if got, _ := s.EstimatedEnd(r, timeline.Seconds(100)); got != timeline.Seconds(120) || r.Waits {
		t.Errorf("when the last map has ended, the reduce should end at %v, and waits: %v", got, r.Waits)
	}
	if phase, _ := r.PhaseAt(timeline.Seconds(101)); phase != 1 {
		t.Errorf("then it is in phase %d", phase)
	}
}

// What a stage that starts early must be.
func TestStartShareIsChecked(t *testing.T) {
	for _, c := range []struct {
		share   float64
		open    bool
		parents []int
		want    string
	}{
		{0.05, false, []int{0}, ""},
		{1, false, []int{0}, `job "j" stage "1" start_share 1: must be above 0 and below 1`},
		{-0.1, false, []int{0}, `job "j" stage "1" start_share -0.1: must be above 0 and below 1`},
		{0.5, false, nil, `job "j" stage "1" start_share 0.5: needs stages in after`},
		{0.5, true, []int{0}, `job "j" stage "1" start_share 0.5: must not be in a job that is open: its stages may get more tasks`},
	} {
		s := stageOf(1, c.parents...)
		s.StartShare = c.share
		got := ""
		if err := (&cluster.Job{ID: 1, Name: "j", Open: c.open, Stages: []cluster.Stage{stageOf(1), s}}).Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.share, got, c.want)
		}
	}
}
