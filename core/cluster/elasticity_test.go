package cluster

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"pgregory.net/rapid"
)

// The shares are those of YARN-ME section 2.3: a reducer with an input of 2.01 GB spills 2 GB with a buffer of 0.5, 1
// and 2 GB, 1.5 GB with a buffer of 1.5 GB, and nothing with a buffer of 2.5 GB. The spill has its minimum just above
// one half of the input: 83 % is worse than 52 %.
func TestSawTooth(t *testing.T) {
	const input = 2010 * resource.MB
	for _, c := range []struct {
		buffer, spilled resource.Amount
	}{
		{500 * resource.MB, 2000 * resource.MB},
		{1000 * resource.MB, 2000 * resource.MB},
		{1500 * resource.MB, 1500 * resource.MB},
		{2000 * resource.MB, 2000 * resource.MB},
		{2500 * resource.MB, 0},
		{input, 0},
		{input / 2, input / 2}, // a buffer that divides the input: the last buffer stays in memory
		{1, input - 1},
	} {
		e := Elasticity{Kind: SawTooth, Factor: 2}
		want := 1 + float64(c.spilled)/float64(input)
		if got := e.Slowdown(input, c.buffer); math.Abs(got-want) > 1e-12 {
			t.Errorf("slowdown with a buffer of %s is %v, want %v", resource.FormatMemory(c.buffer), got, want)
		}
	}
}

// The points are those of the YARN-ME authors' table, as far as the notes list them: (ceil(100/r)-1)*r/100 for r
// percent, truncated to whole segments of 1155, and 1 at 25.
func TestSawToothTable(t *testing.T) {
	e := Elasticity{Kind: SawToothTable, Factor: 2}
	for _, c := range []struct {
		percent resource.Amount
		want    float64
	}{
		{10, .90}, {25, 1}, {26, .78}, {34, .68}, {50, .4996}, {52, .52}, {83, .83}, {99, .99}, {100, 0},
	} {
		if got := e.Slowdown(100*resource.MB, c.percent*resource.MB) - 1; math.Abs(got-c.want) > 1e-3 {
			t.Errorf("share at %d %% is %v, want %v", c.percent, got, c.want)
		}
		if c.percent < 100 {
			if below := e.Slowdown(100*resource.MB, (c.percent+1)*resource.MB-1) - 1; math.Abs(below-c.want) > 1e-3 {
				t.Errorf("share just below %d %% is %v, want %v: it is looked up by whole percent", c.percent+1, below, c.want)
			}
		}
	}
	// Three tasks of the authors' simulator: 100 s at 6000 MB.
	for memory, want := range map[resource.Amount]time.Duration{3000: 149956 * time.Millisecond,
		600: 189956 * time.Millisecond, 6000: 100 * time.Second} {
		if got := e.Duration(100*time.Second, 6000*resource.MB, memory*resource.MB); got != want {
			t.Errorf("it takes %v with %d MB, want %v", got, memory, want)
		}
	}
}

func TestStepAndPoints(t *testing.T) {
	step := Elasticity{Kind: Step, Factor: 3}
	points := Elasticity{Kind: Points, Points: []ElasticityPoint{{100, 3}, {200, 1.5}, {400, 1}}}
	none := Elasticity{}
	for _, c := range []struct {
		e      *Elasticity
		memory resource.Amount
		want   float64
	}{
		{&step, 1, 3}, {&step, 399, 3}, {&step, 400, 1}, {&step, 1000, 1},
		{&points, 1, 3}, {&points, 100, 3}, {&points, 150, 2.25}, {&points, 200, 1.5}, {&points, 300, 1.25},
		{&points, 400, 1}, {&points, 500, 1},
		{&none, 1, 1},
	} {
		if got := c.e.Slowdown(400, c.memory); got != c.want {
			t.Errorf("%v: slowdown with %d is %v, want %v", c.e, c.memory, got, c.want)
		}
	}
	if got := (&Elasticity{Kind: Points}).Slowdown(400, 1); got != 1 {
		t.Errorf("slowdown without points is %v, want 1", got)
	}
	if step.Worst() != 3 || points.Worst() != 3 || none.Worst() != 1 {
		t.Errorf("worst slowdowns are %v, %v and %v, want 3, 3 and 1", step.Worst(), points.Worst(), none.Worst())
	}
	for want, e := range map[string]*Elasticity{"step 3x": &step, "3 measured points": &points, "none": &none} {
		if e.String() != want {
			t.Errorf("it is described as %q, want %q", e, want)
		}
	}
}

// A duration in milliseconds is not rounded down because of a binary rounding error, and does not overflow.
func TestDurationRounds(t *testing.T) {
	for _, c := range []struct {
		factor float64
		d      time.Duration
		want   time.Duration
	}{
		{1.1, 10 * time.Second, 11 * time.Second},
		{1.15, 100 * time.Second, 115 * time.Second},
		{3, 100 * time.Millisecond, 300 * time.Millisecond},
		{1.5, time.Millisecond, time.Millisecond},
		{1.5, 3, 0},
		{1, 3, 3},
		{1e300, time.Hour, math.MaxInt64},
	} {
		if got := (&Elasticity{Kind: Step, Factor: c.factor}).Duration(c.d, 2, 1); got != c.want {
			t.Errorf("%v at %v times is %v, want %v", c.d, c.factor, got, c.want)
		}
	}
}

// TestSlowdownProperties: under-sizing with a step or a saw-tooth never helps nor costs more than the worst case, and a
// larger factor never makes a task faster.
func TestSlowdownProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom([]ElasticityKind{Step, SawTooth, SawToothTable}).Draw(rt, "kind")
		factor := rapid.Float64Range(1, 100).Draw(rt, "factor")
		more := rapid.Float64Range(factor, 200).Draw(rt, "more")
		ideal := rapid.Int64Range(1, math.MaxInt64).Draw(rt, "ideal")
		memory := rapid.Int64Range(1, math.MaxInt64).Draw(rt, "memory")
		if rapid.Bool().Draw(rt, "under-sized") {
			memory = 1 + memory%ideal
		}
		d := time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(rt, "duration"))
		a, b := Elasticity{Kind: kind, Factor: factor}, Elasticity{Kind: kind, Factor: more}
		i, m := resource.Amount(ideal), resource.Amount(memory)
		s := a.Slowdown(i, m)
		if !(s >= 1) || s > a.Worst()*(1+1e-12) {
			rt.Fatalf("%v: slowdown with %d of %d is %v, not from 1 to %v", a, memory, ideal, s, a.Worst())
		}
		if memory >= ideal && s != 1 {
			rt.Fatalf("%v: slowdown with ideal memory is %v", a, s)
		}
		// Durations are whole milliseconds only if there is a slowdown.
		da, db := a.Duration(d, i, m), b.Duration(d, i, m)
		if da.Truncate(time.Millisecond) > db {
			rt.Fatalf("%v takes %v, and %v only %v", a, da, b, db)
		}
		if da < d.Truncate(time.Millisecond) {
			rt.Fatalf("%v takes %v of %v", a, da, d)
		}
	})
}

func TestElasticityCheck(t *testing.T) {
	for _, c := range []struct {
		e    Elasticity
		want string
	}{
		{Elasticity{}, ""},
		{Elasticity{Kind: Step, Factor: 1}, ""},
		{Elasticity{Kind: Points, Points: []ElasticityPoint{{1, .9}, {2, 1}}}, ""},
		{Elasticity{Kind: Step}, "elasticity factor 0: must be a number of at least 1"},
		{Elasticity{Kind: SawTooth, Factor: .5}, "elasticity factor 0.5: must be a number of at least 1"},
		{Elasticity{Kind: SawToothTable, Factor: math.NaN()}, "elasticity factor NaN: must be a number of at least 1"},
		{Elasticity{Kind: Step, Factor: math.Inf(1)}, "elasticity factor +Inf: must be a number of at least 1"},
		{Elasticity{Kind: Points}, "elasticity points 0: must be at least one"},
		{Elasticity{Kind: Points, Points: []ElasticityPoint{{0, 1}}},
			"elasticity point 1 memory 0B: must be positive and ascending"},
		{Elasticity{Kind: Points, Points: []ElasticityPoint{{5, 2}, {5, 1}}},
			"elasticity point 2 memory 5B: must be positive and ascending"},
		{Elasticity{Kind: Points, Points: []ElasticityPoint{{5, 0}}},
			"elasticity point 1 slowdown 0: must be a positive number"},
		{Elasticity{Kind: Points, Points: []ElasticityPoint{{5, math.Inf(1)}}},
			"elasticity point 1 slowdown +Inf: must be a positive number"},
		{Elasticity{Kind: 9, Factor: 1}, "elasticity kind 9: unknown"},
		{Elasticity{DiskRate: -1}, "elasticity disk_rate -1B/s: must be 0 to 1000PB/s"},
	} {
		if err := c.e.Check(); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%+v: error is %v, want %q", c.e, err, c.want)
		}
	}
}

// TestJobCheck checks that errors name field, value and limit.
func TestJobCheck(t *testing.T) {
	ideal := resource.Of(resource.Core, resource.GB)
	stage := func(change func(*Stage)) *Job {
		s := Stage{Name: "map", Tasks: 1, Ideal: ideal}
		change(&s)
		return &Job{Name: "A", Stages: []Stage{s}}
	}
	for _, c := range []struct {
		job  *Job
		want string
	}{
		{stage(func(*Stage) {}), ""},
		{&Job{Name: "A"}, `job "A" stages: must be at least one`},
		{&Job{Name: "A", MaxAttempts: -1, Stages: []Stage{{Tasks: 1, Ideal: ideal}}}, "retry -2: must be 0 to 999"},
		{&Job{Name: "A", Weight: math.NaN(), Stages: []Stage{{Tasks: 1, Ideal: ideal}}}, "weight NaN: must be"},
		{&Job{Name: "A", Weight: math.Inf(1), Stages: []Stage{{Tasks: 1, Ideal: ideal}}}, "weight +Inf: must be"},
		{&Job{Name: "A", Weight: -1, Stages: []Stage{{Tasks: 1, Ideal: ideal}}}, "weight -1: must be"},
		{stage(func(s *Stage) { s.Tasks = 0 }), `stage "map" tasks 0: must be 1 to 1073741824`},
		{stage(func(s *Stage) { s.Tasks = 2; s.Coordinator = true }), "tasks 2: a coordinator is 1 task"},
		{stage(func(s *Stage) { s.Duration = -1 }), "duration -1ns: must not be negative"},
		{stage(func(s *Stage) { s.MinMemory = 2 * resource.GB }), "min_memory 2GB: must be at most memory, which is 1GB"},
		{stage(func(s *Stage) { s.MinMemory = -1 }), "min_memory -1B: must be"},
		{stage(func(s *Stage) { s.Ideal = resource.Of(1, 0) }), "memory 0B: must be above 0"},
		{stage(func(s *Stage) { s.Ideal[resource.CPU] = -5 }), "cpus -5m cores: must not be negative"},
		{stage(func(s *Stage) { s.Elasticity.Kind = Step }), "elasticity factor 0: must be"},
		{stage(func(s *Stage) { s.Parents = []int{1} }), "after 1: must be the index of a stage, 0 to 0"},
		{stage(func(s *Stage) { s.Parents = []int{-1} }), "after -1: must be"},
		{stage(func(s *Stage) { s.Parents = []int{0} }), "must not form a cycle, but map waits for map"},
		{&Job{Name: "A", Stages: []Stage{{Name: "a", Tasks: 1, Ideal: ideal, Parents: []int{2}},
			{Tasks: 1, Ideal: ideal, Parents: []int{0}}, {Name: "c", Tasks: 1, Ideal: ideal, Parents: []int{1}}}},
			"must not form a cycle, but a waits for c waits for 1 waits for a"},
	} {
		if err := c.job.Check(); c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error is %v, want %q", c.job, err, c.want)
		}
	}
}
