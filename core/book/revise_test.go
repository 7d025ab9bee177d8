package book

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Only the forecasts of a job none of whose tasks has been started can be revised.
func TestRevise(t *testing.T) {
	job := func() *cluster.Job {
		return &cluster.Job{ID: 1, Name: "j", App: "a",
			Stages: []cluster.Stage{{Name: "s", Tasks: 2, Ideal: resource.Of(resource.Core, resource.GiB),
				Duration: time.Minute}}}
	}
	const beyond = "job 1: revised in more than its forecasts and learned reservations"
	for _, c := range []struct {
		change  func(j *cluster.Job)
		started bool
		want    string
	}{
		{func(j *cluster.Job) {
			j.Stages[0].Duration, j.Stages[0].Told = time.Second, cluster.Provenance{Model: "median", Samples: 3, Error: 0.1}
			j.Stages[0].Phases = []cluster.Phase{{Name: "read", Duration: time.Second, Demand: resource.Of(100, resource.MiB)}}
		}, false, ""},
		{func(j *cluster.Job) { j.Stages[0].Duration = 0 }, true,
			"job 1: revised in more than its learned reservations, and a task of it has been started"},
		{func(j *cluster.Job) { j.ID = 2 }, false, "job 2: revised, but it is not here, or already ended"},
		{func(j *cluster.Job) { j.Stages[0].Ideal[resource.Memory]-- }, false, beyond},
		{func(j *cluster.Job) { j.Stages[0].Tasks = 3 }, false, beyond},
		{func(j *cluster.Job) { j.Stages = nil }, false, beyond},
		{func(j *cluster.Job) { j.Deadline = 1 }, false, beyond},
		{func(j *cluster.Job) { j.Stages[0].Phases = []cluster.Phase{{Duration: -1}} }, false,
			`job "j" stage "s" phase 1 duration -1ns: must not be negative`},
	} {
		s := newSnapshot()
		tell := func(e cluster.Event) error {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var read cluster.Event
			if err := json.Unmarshal(text, &read); err != nil {
				t.Fatal(err)
			}
			return s.apply(5, &read)
		}
		for _, e := range []cluster.Event{{Kind: cluster.NodeJoined,
			NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(4*resource.Core, 4*resource.GiB)}},
			{Kind: cluster.JobSubmitted, NewJob: job()}, {Kind: cluster.Synced}} {
			if err := tell(e); err != nil {
				t.Fatal(err)
			}
		}
		if c.started {
			p := newPlan(1, s, 0)
			p.Start(s.Jobs[0], 0, s.Nodes[0], resource.GiB, cluster.BecauseFits(resource.GiB))
		}
		s.Changes.reset()
		revised := job()
		c.change(revised)
		err := tell(cluster.Event{Kind: cluster.JobRevised, Job: revised.ID, NewJob: revised})
		if c.want != "" {
			if err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
			continue
		}
		if got := s.Jobs[0]; err != nil || got.Stages[0].Told.Samples != 3 || got.Stages[0].Duration != time.Second ||
			len(got.Stages[0].Phases) != 1 || len(s.Changes.Jobs) != 1 {
			t.Errorf("%v %+v", err, got.Stages[0])
		}
	}
	if err := newSnapshot().apply(0, &cluster.Event{Kind: cluster.JobRevised}); err == nil {
		t.Error("a revision without a job")
	}
}

// Learned reservations can change while tasks run: these keep what they were granted, and what is free stays.
func TestReviseReservations(t *testing.T) {
	s := newSnapshot()
	learned := func(memory resource.Amount) *cluster.Job {
		return &cluster.Job{ID: 1, Class: cluster.Flex, Reserve: cluster.ReserveLearned, Owner: "ada",
			Stages: []cluster.Stage{{Tasks: 3, Ideal: resource.Of(resource.Core, memory), MaxMemory: 3 * resource.GiB,
				Reserved: &cluster.Reservation{Bytes: memory}, Duration: time.Minute,
				Phases: []cluster.Phase{{Duration: time.Minute}}}}}
	}
	quotas := &cluster.Quotas{Users: map[string]cluster.Limits{
		"": {cluster.QuotaMemory: {Most: int64(3 * resource.GiB)}}}}
	for _, e := range []cluster.Event{{Kind: cluster.NodeJoined,
		NewNode: &cluster.Node{Name: "n", Capacity: resource.Of(4*resource.Core, 4*resource.GiB)}},
		{Kind: cluster.QuotasSet, Found: &cluster.Condition{Quotas: quotas}},
		{Kind: cluster.JobSubmitted, NewJob: learned(resource.GiB)}, {Kind: cluster.Synced}} {
		if err := s.apply(0, &e); err != nil {
			t.Fatal(err)
		}
	}
	j, n := s.Jobs[0], s.Nodes[0]
	p := newPlan(1, s, 0)
	s.gate.pass(&p)
	task := p.Start(j, 0, n, resource.GiB, cluster.BecauseFits(resource.GiB))
	p.Reserve(n, j, 0, cluster.Reason{})
	if _, err := p.close(nil); err != nil || task == nil {
		t.Fatal(err)
	}
	if err := s.apply(2, &cluster.Event{Kind: cluster.DecisionDone, Task: task.ID}); err != nil {
		t.Fatal(err)
	}
	free, version := n.Free, n.Version
	revised := learned(2 * resource.GiB)
	revised.Stages[0].Duration = 0
	if err := s.apply(3, &cluster.Event{Kind: cluster.JobRevised, NewJob: revised}); err == nil ||
		!strings.Contains(err.Error(), "in more than its learned reservations") {
		t.Errorf("a forecast changes while a task runs: %v", err)
	}
	revised = learned(2 * resource.GiB)
	if err := s.apply(3, &cluster.Event{Kind: cluster.JobRevised, NewJob: revised}); err != nil {
		t.Fatal(err)
	}
	if n.Free != free || task.Grant[resource.Memory] != resource.GiB || task.UnderSized || n.ReservedFor != nil ||
		n.Version == version || !s.Changes.Demand || j.Stages[0].Ideal[resource.Memory] != 2*resource.GiB {
		t.Errorf("free %v, granted %v, under-sized %v, reserved for %v", n.Free, task.Grant, task.UnderSized, n.ReservedFor)
	}
	p = newPlan(4, s, 9)
	s.gate.pass(&p)
	if j.Progress[0].Withheld != 2 { // 3 x 2 GiB exceed the quota
		t.Errorf("withheld %+v", j.Progress[0])
	}
	if _, err := p.close(nil); err != nil {
		t.Fatal(err)
	}
	if err := s.apply(5, &cluster.Event{Kind: cluster.JobRevised, NewJob: learned(resource.GiB / 2)}); err != nil {
		t.Fatal(err)
	}
	p = newPlan(5, s, 19)
	s.gate.pass(&p)
	if j.Progress[0].Withheld != 0 {
		t.Errorf("withheld %+v", j.Progress[0])
	}
}
