package workload

import (
	"reflect"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// boxable is a FLEX job with a coordinator, phases per task and a heap, and a REGULAR one.
func boxable() *Workload {
	need := func(memory resource.Amount) []cluster.Phase {
		return []cluster.Phase{{Duration: 1, Demand: resource.Of(1, memory)}}
	}
	return &Workload{Jobs: []Job{
		{After: -1, Job: cluster.Job{ID: 1, Class: cluster.Flex, Stages: []cluster.Stage{
			{Tasks: 1, Coordinator: true, Ideal: resource.Of(1, 10)},
			{Tasks: 2, Ideal: resource.Of(1, 20), MinMemory: 15, MaxMemory: 100,
				Elasticity: cluster.Elasticity{Kind: cluster.Step, Factor: 2}},
			{Tasks: 1, Ideal: resource.Of(1, 30)}}},
			Truth: []StageTruth{{}, {Phases: ForEach([][]cluster.Phase{need(40), need(70)}), Heap: &Heap{Live: 35, Size: 90}},
				{}}},
		{After: -1, Job: cluster.Job{ID: 2, Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(1, 50)}}}},
	}}
}

func TestBoxed(t *testing.T) {
	for _, c := range []struct {
		name string
		of   func(*Workload) *Workload
		want func(*Workload) // what changes
	}{
		{"one size", func(w *Workload) *Workload { return Boxed(w, 64) }, func(w *Workload) {
			w.Jobs[0].Class = cluster.Regular
			w.Jobs[0].Stages[1] = cluster.Stage{Tasks: 2, Ideal: resource.Of(1, 64)}
			w.Jobs[0].Stages[2].Ideal = resource.Of(1, 64)
			w.Jobs[0].Truth[1].Heap = &Heap{Live: 35}
		}},
		{"peaks", func(w *Workload) *Workload { return Boxed(w, 0) }, func(w *Workload) {
			w.Jobs[0].Class = cluster.Regular
			w.Jobs[0].Stages[1] = cluster.Stage{Tasks: 2, Ideal: resource.Of(1, 70)}
			w.Jobs[0].Truth[1].Heap = &Heap{Live: 35}
		}},
		{"smaller starts", func(w *Workload) *Workload { return StartWith(w, 12) }, func(w *Workload) {
			w.Jobs[0].Stages[1].Ideal, w.Jobs[0].Stages[1].MinMemory = resource.Of(1, 12), 12
			w.Jobs[0].Stages[2].Ideal = resource.Of(1, 12)
		}},
		{"larger starts", func(w *Workload) *Workload { return StartWith(w, 120) }, func(w *Workload) {
			w.Jobs[0].Stages[1].Ideal, w.Jobs[0].Stages[1].MaxMemory = resource.Of(1, 120), 120
			w.Jobs[0].Stages[2].Ideal = resource.Of(1, 120)
		}},
	} {
		from, want := boxable(), boxable()
		c.want(want)
		if got := c.of(from); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.name, got, want)
		}
		if !reflect.DeepEqual(from, boxable()) {
			t.Errorf("%s: the workload that it was made of has changed", c.name)
		}
	}
}

// A generated FLEX job starts with the memory that policies see, grows to the memory that was drawn, and takes the time
// that policies expect.
func TestGenerateFlex(t *testing.T) {
	o := DefaultGenerateOptions(Flex)
	o.Jobs = 200
	w := generate(t, Flex, o)
	o.Memory.Max = o.Memory.Min
	small := generate(t, Flex, o)
	for i := range w.Jobs {
		j := &w.Jobs[i]
		s, truth := &j.Stages[0], &j.Truth[0]
		var total time.Duration
		before := s.Ideal[resource.Memory]
		for _, p := range j.Task(0, 0).Phases {
			total += p.Duration
			if p.Name == "grow" && p.Demand[resource.Memory] <= before {
				t.Errorf("job %d: grows from %d to %d bytes", i, before, p.Demand[resource.Memory])
			}
			before = p.Demand[resource.Memory]
		}
		peak := truth.peak(s)
		if j.Class != cluster.Flex || s.Ideal[resource.Memory] != flexStart || total != s.Duration ||
			peak < 2*resource.GB || peak > 8*resource.GB || peak%(100*resource.MB) != 0 {
			t.Errorf("job %d: %v from %d to %d bytes in %v of %v", i, j.Class, s.Ideal[resource.Memory], peak, total, s.Duration)
		}
		if err := j.Check(); err != nil {
			t.Error(err)
		}
		if err := j.CheckTruth(); err != nil {
			t.Error(err)
		}
		if other := &small.Jobs[i]; other.Submitted != j.Submitted || other.Stages[0].Duration != s.Duration ||
			other.Stages[0].Tasks != s.Tasks {
			t.Errorf("job %d: less memory changed other draws", i)
		}
	}
}
