package sim_test

import (
	"encoding/json"
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

// A run is remembered with the cores that it requested, by which a program sizes itself, and not with those that it was
// granted last.
func TestRunsHaveTheCoresTheyRequested(t *testing.T) {
	w := recurring(0, time.Hour)
	for i := range w.Jobs {
		w.Jobs[i].Truth[0].Phases = workload.ForAll([]cluster.Phase{{Duration: 10 * time.Minute,
			Demand: resource.Of(1000, resource.GiB)}, {Duration: 10 * time.Minute, Demand: resource.Of(200, resource.GiB)}})
	}
	h, resized := &profile.History{}, 0
	p, err := policy.New("ecs", map[string]string{"ecs.short": "false"})
	if err != nil {
		t.Fatal(err)
	}
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 4, 400, 0)), History: h,
		Observers: sim.Observers{Observe: func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
			for _, d := range decisions {
				if d.Kind == cluster.Resize && d.Grant[resource.CPU] < resource.Core {
					resized++
				}
			}
		}}}
	if r, err := sim.Run(c, w, p); err != nil || len(r.Unfinished()) > 0 || resized == 0 {
		t.Fatal(err, r, resized)
	}
	runs, _ := h.Runs(h.Apps()[0])
	for _, r := range runs {
		if r.Cores != resource.Core {
			t.Errorf("a run of %d cores: %+v", r.Cores, r)
		}
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

// A run that ended for want of memory is remembered with the cores that it requested, too, and with what it was granted
// of memory, as a daemon remembers it.
func TestShortfallsHaveTheCoresTheyRequested(t *testing.T) {
	w := recurring(0)
	j := &w.Jobs[0]
	j.Class, j.Reserve = cluster.Flex, cluster.ReserveLearned
	s := &j.Stages[0]
	s.Ideal, s.MaxMemory = resource.Of(resource.Core, cluster.FirstReservation), 500*resource.MiB
	of := func(cores, memory resource.Amount) cluster.Phase {
		return cluster.Phase{Duration: 10 * time.Minute, Demand: resource.Of(cores, memory)}
	}
	s.Phases = []cluster.Phase{of(1000, cluster.FirstReservation), of(200, cluster.FirstReservation)}
	j.Truth[0].Phases = workload.ForAll([]cluster.Phase{s.Phases[0], of(200, 3*resource.GiB)})
	h, resized := &profile.History{}, 0
	p, err := policy.New("ecs", map[string]string{"ecs.short": "false"})
	if err != nil {
		t.Fatal(err)
	}
	m, err := sim.MachineOf("measured")
	if err != nil {
		t.Fatal(err)
	}
	m.Swap, m.SwapSpeed = resource.MiB, 0
	c := sim.Config{Nodes: sim.Uniform(1, vector(1, 4, 400, 0)), Machine: m, History: h,
		Observers: sim.Observers{Observe: func(_ timeline.Time, _ []cluster.Event, decisions []cluster.Decision) {
			for _, d := range decisions {
				if d.Kind == cluster.Resize && d.Grant[resource.CPU] < resource.Core {
					resized++
				}
			}
		}}}
	if r, err := sim.Run(c, w, p); err != nil || !r.Jobs[0].Failed || resized == 0 {
		t.Fatal(err, r, resized)
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var known struct {
		Apps []struct{ Shortfalls []profile.Shortfall }
	}
	if err := json.Unmarshal(text, &known); err != nil || len(known.Apps) != 1 || len(known.Apps[0].Shortfalls) != 1 {
		t.Fatal(err, string(text))
	}
	want := profile.Features{Cores: resource.Core, Input: s.Input, Memory: s.Ideal[resource.Memory]}
	if got := known.Apps[0].Shortfalls[0]; got.Features != want {
		t.Errorf("remembered with %+v, want %+v", got.Features, want)
	}
}

// What is reserved is learned where a job says so, from the runs that ended before, also while it waits. A task that
// needs more than its reservation grows up to its limit; one that ends for want of memory reserves at least twice what
// it held when it runs again.
func TestLearnedReservations(t *testing.T) {
	mib := resource.MiB
	job := func(id int, needs, limit resource.Amount, behind ...int) workload.Job {
		return workload.Job{After: -1, Part: id, Behind: behind, Job: cluster.Job{ID: cluster.JobID(id), Name: "j", App: "a",
			Class: cluster.Flex, Reserve: cluster.ReserveLearned, MaxAttempts: 8,
			Stages: []cluster.Stage{{Tasks: 1, Ideal: resource.Of(resource.Core, cluster.FirstReservation), MaxMemory: limit,
				Duration: time.Minute}}},
			Truth: []workload.StageTruth{{Phases: workload.ForAll([]cluster.Phase{{Duration: time.Minute,
				Demand: resource.Of(resource.Core, needs)}})}}}
	}
	run := func(swap resource.Amount, jobs ...workload.Job) *sim.Result {
		t.Helper()
		p, err := policy.New("fair", nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := sim.MachineOf("measured")
		if err != nil {
			t.Fatal(err)
		}
		m.Swap, m.SwapSpeed = swap, 0
		r, err := sim.Run(sim.Config{Nodes: sim.Uniform(1, resource.Of(2*resource.Core, 4*resource.GiB)), Machine: m,
			History: &profile.History{}, KeepTasks: true}, &workload.Workload{Jobs: jobs}, p)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	// Two run at once. The third starts in the step in which the first of them ends, which has taught nothing yet, and the
	// fourth is revised before the other one ends.
	r := run(4*resource.GiB, job(1, 1000*mib, 2*resource.GiB), job(2, 1010*mib, 2*resource.GiB),
		job(3, 950*mib, 2*resource.GiB), job(4, 950*mib, 2*resource.GiB))
	for i, want := range []resource.Amount{64 * mib, 64 * mib, 64 * mib, 1000 * mib} {
		if got := r.Tasks[i].Memory; got < want || got > want+want/2 || r.Jobs[i].OutOfMemory > 0 || !r.Jobs[i].Done {
			t.Errorf("job %d reserves %s, want %s: %+v", i+1, resource.FormatMemory(got), resource.FormatMemory(want), r.Jobs[i])
		}
	}
	// A run beyond the limit fails in every attempt, each with at least twice the memory of the one before, up to the
	// limit, and what it held is the least that is known of the need.
	r = run(mib, job(1, 3*resource.GiB, 500*mib), job(2, 100*mib, 2*resource.GiB, 1))
	var held []resource.Amount
	for i := range r.Tasks {
		held = append(held, r.Tasks[i].Memory)
	}
	last := len(held) - 1
	for i := 1; i < last; i++ {
		if held[i] < min(2*held[i-1], 500*mib) || held[i] > 500*mib {
			t.Errorf("the attempts reserve %v", held)
		}
	}
	if last < 2 || !r.Jobs[0].Failed || held[last] <= 500*mib || !r.Jobs[1].Done {
		t.Errorf("the attempts reserve %v: %+v", held, r.Jobs)
	}
}
