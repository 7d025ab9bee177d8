package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

func twoPhases() *Stage {
	return &Stage{Tasks: 1, Ideal: resource.Of(2*resource.Core, resource.GiB), Phases: []Phase{
		{Duration: 2 * time.Second, Demand: resource.Vector{resource.Core, 500 * resource.MiB, 100 * resource.MB}},
		{Duration: 3 * time.Second, Demand: resource.Vector{2 * resource.Core, 100 * resource.MiB, 0, resource.MB}}}}
}

func TestForecast(t *testing.T) {
	s := twoPhases()
	if got, want := s.Peak(),
		(resource.Vector{2 * resource.Core, 500 * resource.MiB, 100 * resource.MB, resource.MB}); got != want {
		t.Errorf("peak %v, want %v", got, want)
	}
	if d, ok := s.DurationAt(resource.GiB); d != 5*time.Second || !ok {
		t.Errorf("run time %v %v, want that of the phases, 5s", d, ok)
	}
	s.Duration = time.Minute
	if d := s.RunTime(); d != time.Minute {
		t.Errorf("run time %v, want the stated minute", d)
	}
	s.Phases = nil
	if s.Peak() != s.Ideal {
		t.Errorf("peak %v without a forecast, want the ideal need %v", s.Peak(), s.Ideal)
	}
}

func TestCheckPhases(t *testing.T) {
	for _, c := range []struct {
		change func(p []Phase)
		want   string
	}{
		{func([]Phase) {}, ""},
		{func(p []Phase) { p[0].Duration = 0 }, ""},
		{func(p []Phase) { p[1].Duration = -1 }, "phase 2 duration -1ns: must not be negative"},
		{func(p []Phase) { p[0].Duration = LongestTime }, "phases: must last 87600h0m0s at most together"},
		{func(p []Phase) { p[0].Demand[resource.Disk] = -1 }, "phase 1 disk -1B/s: must not be negative"},
		{func(p []Phase) {
			p[0].Demand[resource.CPU] = 1e15
		}, "phase 1 cpus 1000000000000 cores: must be at most 1000000 cores"},
		{func(p []Phase) { p[1].Name = "a\nb" }, `phase 2 name "a\nb": must be at most 200 bytes`},
	} {
		s := twoPhases()
		c.change(s.Phases)
		job := Job{Name: "j", Stages: []Stage{*s}}
		for _, err := range []error{CheckPhases(s.Phases), job.Check()} {
			if c.want == "" && err != nil || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		}
	}
	s := twoPhases()
	s.Phases = make([]Phase, MostPhases+1)
	if err := (&Job{Name: "j", Stages: []Stage{*s}}).Check(); err == nil ||
		!strings.Contains(err.Error(), "phases 101: must be at most 100") {
		t.Error(err)
	}
}
