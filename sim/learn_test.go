package sim_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// recurring returns jobs of one application with two phases each, whose run time is about proportional to their input
// and which nobody has estimated. They are submitted at the given times.
func recurring(at ...time.Duration) *workload.Workload {
	w := &workload.Workload{}
	for i, t := range at {
		input := resource.Amount(1+i%3) * resource.GiB
		noise := 1 + 0.1*float64(i%2)
		read := time.Duration(noise * float64(10*time.Second) * float64(input/resource.GiB))
		ideal := resource.Vector{resource.Core, resource.GiB, 0, 0}
		w.Jobs = append(w.Jobs, workload.Job{After: -1,
			Job: cluster.Job{ID: cluster.JobID(i + 1), Name: fmt.Sprint("j", i+1), Owner: "ada", App: "sort",
				Submitted: timeline.Time(t), Stages: []cluster.Stage{{Name: "s", Tasks: 1, Ideal: ideal, Input: input}}},
			Truth: []workload.StageTruth{{Phases: workload.ForAll([]cluster.Phase{
				{Name: "read", Duration: read, Demand: ideal.With(resource.Disk, 100*resource.MB)},
				{Name: "sort", Duration: 2 * read, Demand: ideal}})}}})
	}
	return w
}

// learnedIn runs a workload and returns every job that the engine was told of, as it was told last before the job's
// start.
func learnedIn(t *testing.T, w *workload.Workload, c sim.Config, h *profile.History,
	name string) (told map[cluster.JobID]cluster.Stage, revised []cluster.JobID) {
	t.Helper()
	p, err := policy.New(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	told = map[cluster.JobID]cluster.Stage{}
	c.Nodes, c.History = sim.Uniform(1, vector(1, 4, 400, 0)), h
	c.Observe = func(_ timeline.Time, events []cluster.Event, _ []cluster.Decision) {
		for _, e := range events {
			if e.NewJob != nil {
				told[e.NewJob.ID] = e.NewJob.Stages[len(e.NewJob.Stages)-1]
			}
			if e.Kind == cluster.JobRevised {
				revised = append(revised, e.NewJob.ID)
			}
		}
	}
	r, err := sim.Run(c, w, p)
	if err != nil || len(r.Unfinished())+len(r.Failures()) > 0 {
		t.Fatal(err, r)
	}
	return told, revised
}

// The runs of an application teach what the next one takes: the third run is predicted better than the first, with and
// without heartbeats and coordinators, and the same run gives the same forecasts.
func TestLearningInVirtualTime(t *testing.T) {
	var apart []time.Duration
	for i := range 8 {
		apart = append(apart, time.Duration(i)*10*time.Minute)
	}
	for name, c := range map[string]sim.Config{"at once": {},
		"heartbeats": {Heartbeat: time.Second, CoordinatorHeartbeat: time.Second,
			Coordinator: resource.Of(0, resource.MiB)}} {
		t.Run(name, func(t *testing.T) {
			w := recurring(apart...)
			told, revised := learnedIn(t, w, c, &profile.History{}, "fifo")
			missed := func(i int) float64 {
				s := told[cluster.JobID(i+1)]
				return math.Abs(s.RunTime().Seconds()/w.Jobs[i].Task(0, 0).Duration.Seconds() - 1)
			}
			if missed(0) != 1 || told[1].Told.Samples != 0 {
				t.Errorf("the first run is told %+v, although nothing is known", told[1])
			}
			for i := 1; i < len(w.Jobs); i++ {
				if s := told[cluster.JobID(i+1)]; missed(i) > 0.15 || s.Told.Samples == 0 || len(s.Phases) != 2 ||
					s.Phases[0].Demand[resource.Disk] != 100*resource.MB {
					t.Errorf("run %d is told %+v, wrong by %.2f", i+1, s, missed(i))
				}
			}
			if missed(2) >= missed(0) || len(revised) > 0 {
				t.Errorf("the third run is missed by %.2f, the first by %.2f; revised %v", missed(2), missed(0), revised)
			}
			if again, _ := learnedIn(t, w, c, &profile.History{}, "fifo"); !reflect.DeepEqual(again, told) {
				t.Error("the same run teaches something else")
			}
			if nothing, _ := learnedIn(t, w, c, nil, "fifo"); nothing[8].Phases != nil {
				t.Errorf("without a history the last run is told %+v", nothing[8])
			}
		})
	}
}

// What a run teaches counts for jobs that wait, also for those that a policy that looks ahead places.
func TestLearningForJobsThatWait(t *testing.T) {
	for _, name := range []string{"fifo", "srjf", "prophet"} {
		w := recurring(0, time.Second, 2*time.Second, 3*time.Second)
		told, revised := learnedIn(t, w, sim.Config{}, &profile.History{}, name)
		if !slices.Contains(revised, 4) || told[4].Told.Samples == 0 || len(told[4].Phases) != 2 {
			t.Errorf("%s: job 4 is told %+v; revised %v", name, told[4], revised)
		}
		if slices.Contains(revised, 1) || told[1].Told.Samples != 0 {
			t.Errorf("%s: job 1 is told %+v", name, told[1])
		}
	}
}

// What was forecast is compared with what the tasks did; what people stated is not.
func TestForecastsAreJudged(t *testing.T) {
	run := func(w *workload.Workload, h *profile.History) sim.Forecasts {
		t.Helper()
		p, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, vector(1, 4, 400, 0)), History: h}, w, p)
		if err != nil {
			t.Fatal(err)
		}
		return r.Forecasts
	}
	w := recurring(0, time.Hour)
	w.Jobs[1].Stages[0].Input, w.Jobs[1].Truth = w.Jobs[0].Stages[0].Input, w.Jobs[0].Truth
	if f := run(w, &profile.History{}); f != (sim.Forecasts{Stages: 1, Timed: 1}) {
		t.Errorf("the same again: %+v", f)
	}
	if f := run(w, nil); f != (sim.Forecasts{}) {
		t.Errorf("without a history: %+v", f)
	}
	w = recurring(0, time.Hour) // 1 GiB in 30 s, and 2 GiB in 66 s
	if f := run(w, &profile.History{}); f.Stages != 1 || math.Abs(f.RunTimeError-6.0/66) > 1e-6 || f.DemandError <= 0 ||
		f.DemandError > 0.2 {
		t.Errorf("10 %% longer: %+v", f)
	}
	w.Jobs[1].Stages[0].Duration = 66 * time.Second
	if f := run(w, &profile.History{}); f.Stages != 1 || f.Timed != 0 || f.RunTimeError != 0 || f.DemandError > 1e-6 {
		t.Errorf("the run time is stated: %+v", f)
	}
	w.Jobs[1].Stages[0].Phases = []cluster.Phase{{Duration: 66 * time.Second}}
	if f := run(w, &profile.History{}); f != (sim.Forecasts{}) {
		t.Errorf("the phases are stated: %+v", f)
	}
}

// BenchmarkLearningForManyThatWait runs an application a thousand times of which most wait, and all are told of each
// run.
func BenchmarkLearningForManyThatWait(b *testing.B) {
	for b.Loop() {
		w := recurring(make([]time.Duration, 1000)...)
		p, err := policy.New("fifo", nil)
		if err != nil {
			b.Fatal(err)
		}
		r, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, vector(1, 4, 400, 0)), History: &profile.History{}}, w, p)
		if err != nil || len(r.Unfinished()) > 0 {
			b.Fatal(err, r)
		}
	}
}
