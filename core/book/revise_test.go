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
	for _, c := range []struct {
		change  func(j *cluster.Job)
		started bool
		want    string
	}{
		{func(j *cluster.Job) {
			j.Stages[0].Duration, j.Stages[0].Told = time.Second, cluster.Provenance{Model: "median", Samples: 3, Error: 0.1}
			j.Stages[0].Phases = []cluster.Phase{{Name: "read", Duration: time.Second, Demand: resource.Of(100, resource.MiB)}}
		}, false, ""},
		{func(j *cluster.Job) { j.Stages[0].Duration = 0 }, true, "job 1: revised, but a task of it has been started"},
		{func(j *cluster.Job) { j.ID = 2 }, false, "job 2: revised, but it is not here, or already ended"},
		{func(j *cluster.Job) { j.Stages[0].Ideal[resource.Memory]-- }, false, "job 1: revised in more than its forecasts"},
		{func(j *cluster.Job) { j.Stages[0].Tasks = 3 }, false, "job 1: revised in more than its forecasts"},
		{func(j *cluster.Job) { j.Stages = nil }, false, "job 1: revised in more than its forecasts"},
		{func(j *cluster.Job) { j.Deadline = 1 }, false, "job 1: revised in more than its forecasts"},
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
