package profile

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// A forecast fills in what is not stated, and what is reserved stays.
func TestForecast(t *testing.T) {
	var h History
	phases := []cluster.Phase{{Name: "read", Duration: 10 * time.Second,
		Demand: resource.Vector{100, resource.MiB, 80 * resource.MB}},
		{Name: "compute", Duration: 30 * time.Second, Demand: resource.Vector{1000, resource.GiB}}}
	for _, stage := range []string{"", "one"} {
		if _, err := h.Observe(App{Owner: "ada", Name: "a", Stage: stage}, Run{Phases: phases}); err != nil {
			t.Fatal(err)
		}
	}
	ideal := resource.Of(resource.Core, 2*resource.GiB)
	job := func(change func(j *cluster.Job, s *cluster.Stage)) (*cluster.Stage, bool) {
		j := cluster.Job{Owner: "ada", App: "a", Stages: []cluster.Stage{{Name: "one", Tasks: 1, Ideal: ideal}}}
		change(&j, &j.Stages[0])
		known := h.Forecast(&j, Untimed(&j))
		if s := &j.Stages[0]; s.Ideal != ideal {
			t.Errorf("what is reserved became %v", s.Ideal)
		}
		return &j.Stages[0], known
	}
	if s, known := job(func(*cluster.Job, *cluster.Stage) {}); !known || s.Duration != 40*time.Second ||
		len(s.Phases) != 2 || s.Told.Samples != 1 {
		t.Errorf("nothing stated: %+v", s)
	}
	if s, known := job(func(_ *cluster.Job, s *cluster.Stage) { s.Duration = 80 * time.Second }); !known ||
		s.Duration != 80*time.Second || s.Phases[0].Duration != 20*time.Second || s.Phases[1].Duration != time.Minute {
		t.Errorf("run time stated: %+v", s)
	}
	if s, known := job(func(_ *cluster.Job, s *cluster.Stage) { s.Phases = phases[:1] }); known || len(s.Phases) != 1 ||
		s.Duration != 0 {
		t.Errorf("phases stated: %+v", s)
	}
	if s, known := job(func(j *cluster.Job, _ *cluster.Stage) { j.Owner = "bob" }); known || s.Phases != nil {
		t.Errorf("another owner: %+v", s)
	}
	if s, known := job(func(j *cluster.Job, _ *cluster.Stage) { j.App = "" }); known || s.Phases != nil {
		t.Errorf("no application: %+v", s)
	}
	if s, known := job(func(j *cluster.Job, _ *cluster.Stage) {
		j.Stages = append(j.Stages, cluster.Stage{Name: "two", Tasks: 1})
	}); !known || len(s.Phases) != 2 {
		t.Errorf("two stages: %+v", s)
	}
	if _, err := h.Observe(App{Owner: "ada", Name: "b"},
		Run{Phases: phases, Unknown: resource.KindsOf(resource.Disk, resource.Memory)}); err != nil {
		t.Fatal(err)
	}
	if s, _ := job(func(j *cluster.Job, _ *cluster.Stage) {
		j.App = "b"
	}); s.Phases[0].Demand != (resource.Vector{100, 2 * resource.GiB}) {
		t.Errorf("what no run measured: %v", s.Phases[0].Demand)
	}
	if got := Lasting([]cluster.Phase{{}, {}}, time.Second); got[0].Duration+got[1].Duration != 0 {
		t.Errorf("phases without a duration: %v", got)
	}
}
