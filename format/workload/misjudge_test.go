package workload

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

func TestParseMisjudgement(t *testing.T) {
	for text, want := range map[string]Misjudgement{
		"none":                          {},
		"":                              {},
		"duration=0.15":                 {Duration: Deviation{0, 0.15}},
		"memory=-0.5,penalty=0.5":       {Memory: Deviation{-0.5, 0}, Penalty: Deviation{0, 0.5}},
		"demand=-0.25":                  {Demand: Deviation{-0.25, 0}},
		"duration=-0.5:0.5,memory=+1e0": {Duration: Deviation{-0.5, 0.5}, Memory: Deviation{0, 1}},
	} {
		got, err := ParseMisjudgement(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseMisjudgement("memory=" + got.Memory.String()); err != nil || again.Memory != got.Memory {
			t.Errorf("%q: memory prints as %q, which is %+v, %v", text, got.Memory, again.Memory, err)
		}
	}
	for text, want := range map[string]string{
		"speed=1":                     `misjudgement "speed=1": must be none, or one each of duration=, memory=, penalty= and demand= with an error such as 0.15 or -0.5:0.5`,
		"duration=0.1,duration=0.2":   `misjudgement "duration=0.1,duration=0.2": must be none, or one each of duration=, memory=, penalty= and demand= with an error such as 0.15 or -0.5:0.5`,
		"duration":                    `misjudgement duration "": must be a number, or two with a colon between them`,
		"duration=0.1:":               `misjudgement duration "0.1:": must be a number, or two with a colon between them`,
		"memory=-1":                   `misjudgement memory "-1": must be ascending, above -1 and at most 10`,
		"memory=NaN":                  `misjudgement memory "NaN": must be ascending, above -1 and at most 10`,
		"memory=0.5:0.1":              `misjudgement memory "0.5:0.1": must be ascending, above -1 and at most 10`,
		"duration=0.1,penalty=0:1e99": `misjudgement penalty "0:1e99": must be ascending, above -1 and at most 10`,
	} {
		if _, err := ParseMisjudgement(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", text, err, want)
		}
	}
}

// Errors lie in their interval: the truth of duration and memory relative to the estimate, the estimate of the penalty
// relative to the truth. What is not misjudged is unchanged, and so is the original.
func TestMisjudgeStaysInItsInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &Workload{}
		const jobs, tasks = 3, 4
		phaseDemand := resource.Of(resource.Core, 10*resource.GB).With(resource.Disk, 80*resource.MB)
		for i := range jobs {
			w.Jobs = append(w.Jobs, Job{After: -1, Job: cluster.Job{ID: cluster.JobID(i + 1), Stages: []cluster.Stage{
				{Tasks: tasks, Ideal: resource.Of(resource.Core, 10*resource.GB), MinMemory: resource.GB, Duration: time.Hour,
					Elasticity: cluster.Elasticity{Kind: cluster.SawTooth, Factor: 3},
					Phases: []cluster.Phase{{Duration: 20 * time.Minute, Demand: resource.Of(0, resource.GB)},
						{Duration: 40 * time.Minute, Demand: phaseDemand}}}}}})
		}
		before := &Workload{}
		*before = *w
		before.Jobs = append([]Job(nil), w.Jobs...)
		end := rapid.SampledFrom([]float64{0.15, 0.5, -0.15, -0.5})
		interval := func(name string) Deviation {
			v := end.Draw(t, name)
			return Deviation{min(v, 0), max(v, 0)}
		}
		m := Misjudgement{interval("duration"), interval("memory"), interval("penalty"), interval("demand")}
		seed := rapid.Uint64().Draw(t, "seed")
		off := Misjudge(w, m, seed)
		if !reflect.DeepEqual(w, before) {
			t.Fatal("the workload was changed")
		}
		if again := Misjudge(w, m, seed); !reflect.DeepEqual(off, again) {
			t.Fatal("another workload with the same seed")
		}
		within := func(what string, d Deviation, ratio float64) {
			const rounding = 1e-6
			if x := ratio - 1; x < d.Low-rounding || x > d.High+rounding || d.Low == 0 && x < -rounding || d.High == 0 &&
				x > rounding {
				t.Fatalf("%s is off by %v, want within %v", what, x, d)
			}
		}
		distinct := map[time.Duration]bool{}
		for i := range off.Jobs {
			s, tr := &off.Jobs[i].Stages[0], &off.Jobs[i].Truth[0]
			for _, d := range tr.Duration.Values() {
				within("duration", m.Duration, float64(d)/float64(time.Hour))
				distinct[d] = true
			}
			memory, _ := tr.IdealMemory.Of(0)
			within("memory", m.Memory, float64(memory)/float64(10*resource.GB))
			within("penalty", m.Penalty, s.Elasticity.Factor/3)
			for _, k := range []resource.Kind{resource.CPU, resource.Memory, resource.Disk} {
				within("demand", m.Demand, float64(s.Phases[1].Demand[k])/float64(phaseDemand[k]))
			}
			if tr.Elasticity.Factor != 3 || s.Duration != time.Hour || s.Ideal != w.Jobs[i].Stages[0].Ideal {
				t.Fatalf("more was changed than should be: %+v, %+v", s, tr)
			}
		}
		if len(distinct) < jobs*tasks-1 {
			t.Fatalf("only %d different durations of %d tasks", len(distinct), jobs*tasks)
		}
		if p := off.Jobs[0].Stages[0].Phases; p[0].Demand[resource.CPU] != 0 || p[0].Duration != 20*time.Minute ||
			p[1].Duration != 40*time.Minute {
			t.Fatalf("more of the forecast was changed than its demands: %+v", p)
		}
		alone := Misjudge(w, Misjudgement{Memory: m.Memory}, seed)
		if !reflect.DeepEqual(alone.Jobs[0].Truth[0].IdealMemory, off.Jobs[0].Truth[0].IdealMemory) {
			t.Fatal("the draw of memory depends on what else is misjudged")
		}
	})
}

// All parts of the truth of memory are scaled together.
func TestMisjudgeMovesTheWholeTruthOfMemory(t *testing.T) {
	phase := []cluster.Phase{{Duration: time.Second, Demand: resource.Of(resource.Core, resource.GB)},
		{Duration: time.Second}}
	ideal := resource.Of(resource.Core, 2*resource.GB)
	w := &Workload{Jobs: []Job{{After: -1, Job: cluster.Job{Stages: []cluster.Stage{
		{Coordinator: true, Tasks: 1},
		{Tasks: 1, Ideal: ideal, Elasticity: cluster.Elasticity{Kind: cluster.Points,
			Points: []cluster.ElasticityPoint{{Memory: 1, Slowdown: 3}, {Memory: 5, Slowdown: 2}, {Memory: 9, Slowdown: 0.9}}}},
		{Tasks: 1, Ideal: ideal},
	}}, Truth: []StageTruth{{},
		{Phases: ForEach([][]cluster.Phase{phase}), IdealMemory: ForEach([]resource.Amount{resource.GB}),
			Heap: &Heap{Live: resource.GB, Size: 5}},
		{Phases: ForAll(phase)}}}}}
	off := Misjudge(w, Misjudgement{Memory: Deviation{0.5, 0.5}, Penalty: Deviation{-0.5, -0.5}}, 1).Jobs[0]
	const more = resource.GB * 3 / 2
	tr, given, assumed := off.Truth[1], off.Task(1, 0), off.Task(2, 0)
	if given.IdealMemory != more || given.Phases[0].Demand[resource.Memory] != more || tr.Heap.Live != more ||
		tr.Heap.Size != 5 ||
		given.Phases[1].Demand[resource.Memory] != 0 || assumed.IdealMemory != 2*more ||
		assumed.Phases[0].Demand[resource.Memory] != more {
		t.Errorf("truth is %+v, heap %+v, and %+v", tr, tr.Heap, assumed)
	}
	if p := off.Stages[1].Elasticity.Points; p[0].Slowdown != 1.5 || p[1].Slowdown != 1.25 || p[2].Slowdown != 0.9 {
		t.Errorf("the policy sees %+v", p)
	}
	if !reflect.DeepEqual(off.Truth[0], StageTruth{}) {
		t.Errorf("the coordinator is misjudged: %+v", off.Truth[0])
	}
	if phase[0].Demand[resource.Memory] != resource.GB {
		t.Error("the original was changed")
	}
}

// Whatever is wrong about a forecast, the tasks do what they did before.
func TestMisjudgedDemandKeepsTheTruth(t *testing.T) {
	forecast := []cluster.Phase{{Duration: time.Second, Demand: resource.Of(resource.Core, resource.GB)},
		{Duration: time.Second}}
	own := []cluster.Phase{{Duration: 5 * time.Second, Demand: resource.Of(resource.Core, 3*resource.GB)}}
	ideal := resource.Of(resource.Core, 2*resource.GB)
	stage := cluster.Stage{Tasks: 2, Ideal: ideal, Phases: forecast}
	longer, bare, timed := stage, stage, stage
	longer.Duration = 7 * time.Second
	bare.Phases = nil
	bare.Duration = time.Second
	timed.Phases = []cluster.Phase{{Demand: ideal}}
	w := &Workload{Jobs: []Job{
		{After: -1, Job: cluster.Job{Stages: []cluster.Stage{stage, longer, bare, timed}}},
		{After: -1, Job: cluster.Job{Stages: []cluster.Stage{stage, stage, longer}},
			Truth: []StageTruth{{Phases: ForAll(own)}, {Duration: ForEach([]time.Duration{3 * time.Second, 4 * time.Second})},
				{IdealMemory: ForAll(3 * resource.GB)}}},
	}}
	off := Misjudge(w, Misjudgement{Demand: Deviation{1, 1}}, 1)
	for i := range w.Jobs {
		for k := range w.Jobs[i].Stages {
			for task := range 2 {
				if was, is := w.Jobs[i].Task(k, task), off.Jobs[i].Task(k, task); was.Duration != is.Duration ||
					was.IdealMemory != is.IdealMemory || !reflect.DeepEqual(was.Phases, is.Phases) {
					t.Errorf("task %d of stage %d of job %d did %+v, and does %+v", task, k, i, was, is)
				}
			}
			for n, p := range off.Jobs[i].Stages[k].Phases {
				if was := w.Jobs[i].Stages[k].Phases[n]; p.Demand != was.Demand.Scale(2) || p.Duration != was.Duration {
					t.Errorf("phase %d of stage %d of job %d is said to be %+v, and was %+v", n, k, i, p, was)
				}
			}
		}
		if err := off.Jobs[i].CheckTruth(); err != nil {
			t.Error(err)
		}
	}
	if forecast[0].Demand != resource.Of(resource.Core, resource.GB) {
		t.Error("the original was changed")
	}
}

// The run times of tasks on executors that are not warm deviate as those on warm ones do.
func TestMisjudgeMovesEveryWave(t *testing.T) {
	w := &Workload{Jobs: []Job{{After: -1,
		Job: cluster.Job{Stages: []cluster.Stage{{Tasks: 3, Duration: 10 * time.Second}}},
		Truth: []StageTruth{{Fresh: []time.Duration{40 * time.Second, time.Minute},
			First: []time.Duration{20 * time.Second}}}}}}
	off := Misjudge(w, Misjudgement{Duration: Deviation{0.5, 0.5}}, 1).Jobs[0].Truth[0]
	for task, want := range []time.Duration{time.Minute, 90 * time.Second, time.Minute} {
		if fresh, first := off.DurationIn(Fresh, task, 0), off.DurationIn(First, task, 0); fresh != want ||
			first != 30*time.Second {
			t.Errorf("task %d takes %v on a fresh executor and %v as the first of the stage", task, fresh, first)
		}
	}
	if w.Jobs[0].Truth[0].Fresh[0] != 40*time.Second {
		t.Error("the original was changed")
	}
}
