package ecs

import (
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// prepared is a node with a job of tasks whose second phase needs more memory than the first, under ecs.
type prepared struct {
	*table
	policy *ecs
}

// newPrepared is a node with tasks that need the memory of first for 100 s, and then that of second, under ecs with
// that look ahead.
func newPrepared(t *testing.T, ahead string, tasks int, first, second resource.Amount) *prepared {
	s := &prepared{newTable(t, 16), withSettings(t, "ecs.memory", "phase", "ecs.short", "false", "ecs.leveling", "false",
		"ecs.ahead", ahead)}
	stage := phasesOf(tasks, "100s:1 100s:1")
	stage.Ideal[resource.Memory] = second
	stage.Phases[0].Demand[resource.Memory], stage.Phases[1].Demand[resource.Memory] = first, second
	s.enter(0, cluster.Event{Kind: cluster.JobSubmitted, Job: 1,
		NewJob: &cluster.Job{ID: 1, Name: "1", Class: cluster.Flex, Stages: []cluster.Stage{stage}}})
	s.decide(0)
	return s
}

// decide returns the reasons of what is decided at a time about the task while it runs, and carries that out.
func (s *prepared) decide(second float64) string {
	s.Helper()
	now := timeline.Seconds(second)
	s.policy.Decide(now, s.book.Open(now))
	decisions, err := s.book.Close()
	if err != nil {
		s.Fatal(err)
	}
	var reasons []string
	for i := range decisions {
		d := &decisions[i]
		if d.Kind == cluster.Wake {
			continue
		}
		if d.Kind != cluster.Start {
			reasons = append(reasons, d.Reason.Words(nil))
		}
		s.enter(now, cluster.Event{Kind: cluster.DecisionDone, Decision: d.ID, Task: d.Task})
	}
	return strings.Join(reasons, "; ")
}

// found reports at a time that the task is in its first phase, and has done a part of it.
func (s *prepared) found(second, done float64) {
	s.Helper()
	e := cluster.Event{Kind: cluster.TaskPhase, Task: cluster.TaskID{Job: 1}}
	e.SetCondition(cluster.Condition{Progress: &cluster.Progress{PhaseSince: timeline.Seconds(second - done)}})
	s.enter(timeline.Seconds(second), e)
}

// A task is granted the memory of its second phase 10 s before that should begin. If the phase does not begin, the
// task gives the memory back 10 s after that at the latest, or as soon as it is known to be further away, and then
// has it when it is in the phase.
func TestPreparedForAPhase(t *testing.T) {
	const (
		ahead = "is granted 6GB for its phase 2, which should begin when it has run for 1m40s"
		late  = "is further from its phase 2 than was forecast: until that begins, it is granted 2GB"
		now   = "its phase 2 is granted 1 core and 6GB"
	)
	type moment struct {
		second, done float64 // done is 0 if nothing is reported
		want         string
	}
	for name, moments := range map[string][]moment{
		"as forecast":          {{second: 89}, {second: 90, want: ahead}, {second: 100}, {second: 150}},
		"found where it seems": {{second: 90, want: ahead}, {second: 95, done: 94}, {second: 101}, {second: 150}},
		"found again and again": {{second: 90, want: ahead}, {second: 97, done: 90}, {second: 106, done: 90},
			{second: 109}, {second: 110, want: late}, {second: 115}, {second: 116, want: now}},
		"further away": {{second: 90, want: ahead}, {second: 95, done: 50, want: late}, {second: 135},
			{second: 144}, {second: 145, want: now}},
		"further away afterwards": {{second: 90, want: ahead}, {second: 104, done: 50, want: late}, {second: 144},
			{second: 154, want: now}},
		"further away before": {{second: 80, done: 50}, {second: 90},
			{second: 120, want: strings.Replace(ahead, "1m40s", "2m10s", 1)}, {second: 130}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPrepared(t, "2s", 1, 2*resource.GB, 6*resource.GB)
			for _, m := range moments {
				if m.done > 0 {
					s.found(m.second, m.done)
				}
				if got := s.decide(m.second); got != m.want {
					t.Errorf("after %v s decided %q, want %q", m.second, got, m.want)
				}
			}
		})
	}
}

// Of two tasks that fill a node and come to larger phases at the same time, one goes on with what it has. That is
// recorded, so that it keeps its turn.
func TestTurnWithTheSameGrant(t *testing.T) {
	s := newPrepared(t, "0s", 2, 50*resource.GB, 100*resource.GB)
	if got := s.decide(100); !strings.HasPrefix(got, "its phase 2 is granted 1 core and ") ||
		!strings.Contains(got, "; its phase 2 waits for 100GB of memory") {
		t.Errorf("decided %q", got)
	}
	if got := s.decide(101); got != "" {
		t.Errorf("and then %q", got)
	}
	if memory := s.node().Tasks[0].Grant[resource.Memory]; memory != 50*resource.GB-page {
		t.Errorf("the first task is granted %d bytes", memory)
	}
}

// A policy asks for a step when a task is to be prepared, and when it gives up.
func TestNextPreparation(t *testing.T) {
	s := newPrepared(t, "2s", 1, 2*resource.GB, 6*resource.GB)
	check := func(second, want float64) {
		t.Helper()
		if got := s.policy.next(timeline.Seconds(second), s.book.Snapshot(), s.node()); got != timeline.Seconds(want) {
			t.Errorf("after %v s the next step is at %v, want %v s", second, got, want)
		}
	}
	check(0, 90)
	s.decide(90)
	check(90, 100)
	s.found(106, 90)
	s.decide(106)
	check(106, 110)
	s.decide(110)
	check(110, 116)
}

func TestLead(t *testing.T) {
	l := lookAhead{least: 5 * time.Second, share: 0.1}
	for _, c := range []struct {
		before, want time.Duration
		told         cluster.Provenance
	}{
		{20 * time.Second, 5 * time.Second, cluster.Provenance{}},
		{100 * time.Second, 10 * time.Second, cluster.Provenance{}},
		{4 * time.Second, 2 * time.Second, cluster.Provenance{}},
		{100 * time.Second, 10 * time.Second, cluster.Provenance{Samples: 1}}, // of which no error is known
		{100 * time.Second, 30 * time.Second, cluster.Provenance{Samples: 3, Error: 0.3}},
		{100 * time.Second, 5 * time.Second, cluster.Provenance{Samples: 3, Error: 0.01}},
		{100 * time.Second, 50 * time.Second, cluster.Provenance{Samples: 3, Error: 1e300}},
	} {
		if got := l.lead(&c.told, c.before); got != c.want {
			t.Errorf("before a phase after %v, told %+v, the lead is %v, want %v", c.before, c.told, got, c.want)
		}
	}
}
