package cluster

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// runnable is a job within all bounds.
func runnable() *Job {
	return &Job{ID: 1, Name: "sort", Queue: "q", Class: Flex,
		Stages: []Stage{{Name: "map", Tasks: 2, Ideal: resource.Of(resource.Core, resource.GiB), MinMemory: resource.MiB,
			MaxMemory: 2 * resource.GiB, HeartbeatTimeout: LeastHeartbeatTimeout, DataOn: []string{"n1"},
			Duration: time.Minute, Elasticity: Elasticity{Kind: SawTooth, Factor: 2}}}}
}

// A value equal to a bound is accepted. A value beyond it is rejected with an error that names the value and the bound.
func TestBoundsOfEveryJob(t *testing.T) {
	tests := []struct {
		edge, beyond func(s *Stage)
		want         string
	}{
		{func(s *Stage) { s.Tasks = MostTasks }, func(s *Stage) { s.Tasks++ }, "tasks 1073741825: must be 1 to 1073741824"},
		{func(s *Stage) { s.Ideal[resource.Memory], s.MaxMemory = resource.MostMemory, 0 },
			func(s *Stage) { s.Ideal[resource.Memory] = 8000 * 1024 * resource.TiB }, "memory 8000PiB: must be at most 1000PB"},
		{func(s *Stage) {}, func(s *Stage) { s.Ideal[resource.Memory], s.MaxMemory = math.MaxInt64, 0 },
			"must be at most 1000PB"},
		{func(s *Stage) { s.Ideal[resource.CPU] = resource.MostCPU }, func(s *Stage) { s.Ideal[resource.CPU]++ },
			"cpus 1000000.001 cores: must be at most 1000000 cores"},
		{func(s *Stage) { s.Ideal[resource.Disk] = resource.MostRate }, func(s *Stage) { s.Ideal[resource.Disk]++ }, "disk"},
		{func(s *Stage) { s.Ideal[resource.Network] = resource.MostRate }, func(s *Stage) { s.Ideal[resource.Network]++ },
			"network"},
		{func(s *Stage) { s.MaxMemory = resource.MostMemory }, func(s *Stage) { s.MaxMemory++ }, "max_memory"},
		{func(s *Stage) {
			s.Duration = LongestTime
		}, func(s *Stage) { s.Duration++ }, "duration 87600h0m0.000000001s: must be at most 87600h0m0s"},
		{func(s *Stage) { s.HeartbeatTimeout = LongestTime }, func(s *Stage) { s.HeartbeatTimeout++ }, "heartbeat_timeout"},
		{func(s *Stage) { s.Elasticity.Factor = MostSlowdown }, func(s *Stage) { s.Elasticity.Factor *= 2 },
			"elasticity slowdown 2e+06: must be at most 1000000"},
		{func(s *Stage) {
			s.Elasticity = Elasticity{Kind: Points, Points: []ElasticityPoint{{resource.MostMemory, 1}}}
		}, func(s *Stage) { s.Elasticity.Points[0].Memory++ }, "elasticity point 1 memory 1000000000000000001B: must be at " +
			"most 1000PB"},
		{func(s *Stage) { s.Elasticity.DiskRate = resource.MostRate }, func(s *Stage) { s.Elasticity.DiskRate++ },
			"elasticity disk_rate"},
	}
	for _, tt := range tests {
		j := runnable()
		tt.edge(&j.Stages[0])
		if err := j.Check(); err != nil {
			t.Errorf("on the edge of %q: %v", tt.want, err)
		}
		tt.beyond(&j.Stages[0])
		err := j.Check()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error is %v, want %s", err, tt.want)
		}
		if j.CheckRuns() == nil {
			t.Errorf("beyond %q: it counts as one that can be run", tt.want)
		}
		if j.Stages[0].Tasks <= MostTasks && (!j.BringIntoBounds() || j.Check() != nil) {
			t.Errorf("beyond %q: brought into bounds it is %+v, %v", tt.want, j.Stages[0], j.Check())
		}
	}
	if j := runnable(); j.BringIntoBounds() {
		t.Errorf("a job that keeps the bounds was changed to %+v", j)
	}
}

// What a REGULAR job cannot have is removed from an old record, and from nothing else.
func TestOldRegularJobsLoseWhatNeedsFlex(t *testing.T) {
	j := runnable()
	j.Class, j.Stages[0].Runtime = Regular, JVM
	if j.Check() == nil || !j.BringIntoBounds() || j.Check() != nil {
		t.Errorf("%+v: %v", j.Stages[0], j.Check())
	}
	want := runnable().Stages[0]
	want.MaxMemory = 0
	if !reflect.DeepEqual(j.Stages[0], want) {
		t.Errorf("got  %+v\nwant %+v", j.Stages[0], want)
	}
}

func TestBoundsOfRunnableJobs(t *testing.T) {
	if err := runnable().CheckRuns(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		beyond func(j *Job)
		want   string
	}{
		{func(j *Job) { j.Stages[0].Ideal[resource.CPU] = 0 }, "cpus 0: must be at least 1m"},
		{func(j *Job) { j.Stages[0].MinMemory-- }, "min_memory 1048575B: must be at least 1MiB"},
		{func(j *Job) { j.Stages[0].MinMemory, j.Stages[0].Ideal[resource.Memory] = 0, 1 },
			"memory 1B: must be at least 1MiB"},
		{func(j *Job) { j.Stages[0].HeartbeatTimeout = 1 }, "heartbeat_timeout 1ns: must be at least 2s"},
		{func(j *Job) { j.Stages[0].Tasks = MostRunTasks + 1 }, "tasks 100001: must be at most 100000"},
		{func(j *Job) { j.Stages = make([]Stage, MostRunStages+1) }, "stages 10001: must be at most 10000"},
		{func(j *Job) { j.MaxAttempts = MostAttempts + 1 }, "retry 1000: must be 0 to 999"},
		{func(j *Job) { j.Weight = MostWeight + 1 }, "weight 1.000001e+06: must be a number from 0 to 1000000"},
		{func(j *Job) { j.Name = strings.Repeat("x", LongestName+1) }, "job name \"xxx"},
		{func(j *Job) { j.Name = "evil\x1b[2J" }, `job name "evil\x1b[2J": must be`},
		{func(j *Job) { j.Name = " x" }, `job name " x": must be`},
		{func(j *Job) { j.Queue = "a\nb" }, `queue "a\nb": must be`},
		{func(j *Job) { j.Stages[0].Name = "\u202egnp.exe" }, `stage "0" name "\u202egnp.exe": must be`},
		{func(j *Job) { j.Stages[0].DataOn = []string{"a\tb"} }, `data_on "a\tb": must be`},
	}
	for _, tt := range tests {
		j := runnable()
		tt.beyond(j)
		err := j.CheckRuns()
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error is %v, want %s", err, tt.want)
		} else if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("error is not one line for people: %q", err)
		}
	}
	// Values that only a simulation can have are accepted for simulations.
	j := runnable()
	j.Stages[0].Ideal, j.Stages[0].MinMemory = resource.Of(0, 1), 0
	if err := j.Check(); err != nil {
		t.Error(err)
	}
}

// No field of a job or of its stages takes a value beyond its bounds: an enumeration none that it does not have, an
// amount and a time none that is negative or too large. The error is one sentence that names the field.
func TestBoundsOfEveryField(t *testing.T) {
	base := func() *Job {
		j := runnable()
		s := &j.Stages[0]
		s.MaxMemory = 0 // which only one class may have
		s.Phases = []Phase{{Duration: time.Minute, Demand: s.Ideal}}
		s.Elasticity = Elasticity{Kind: Points, Points: []ElasticityPoint{{resource.MiB, 3}, {s.Ideal[resource.Memory], 1}}}
		return j
	}
	if err := base().CheckRuns(); err != nil {
		t.Fatal(err)
	}
	// each calls f with a setter of every number in a value that is bounded by its type.
	var each func(path string, v func(*Job) reflect.Value, f func(path string, set func(*Job, int64), values []int64))
	each = func(path string, v func(*Job) reflect.Value, f func(string, func(*Job, int64), []int64)) {
		is := v(base())
		switch text := reflect.TypeFor[encoding.TextUnmarshaler](); {
		case is.Type() == reflect.TypeFor[Provenance]() || is.Type() == reflect.TypeFor[timeline.Time](): // no request has it
		case is.Kind() == reflect.Uint8 && is.Addr().Type().Implements(text):
			f(path, func(j *Job, a int64) { v(j).SetUint(uint64(a)) }, []int64{255})
		case is.Type() == reflect.TypeFor[resource.Amount]() || is.Type() == reflect.TypeFor[time.Duration]():
			f(path, func(j *Job, a int64) { v(j).SetInt(a) }, []int64{-1, math.MinInt64, math.MaxInt64})
		case is.Kind() == reflect.Struct:
			for i := range is.NumField() {
				each(path+"."+is.Type().Field(i).Name, func(j *Job) reflect.Value { return v(j).Field(i) }, f)
			}
		case is.Kind() == reflect.Slice || is.Kind() == reflect.Array:
			for i := range is.Len() {
				each(fmt.Sprintf("%s[%d]", path, i), func(j *Job) reflect.Value { return v(j).Index(i) }, f)
			}
		}
	}
	seen := 0
	each("job", func(j *Job) reflect.Value { return reflect.ValueOf(j).Elem() },
		func(path string, set func(*Job, int64), values []int64) {
			for _, a := range values {
				seen++
				j := base()
				set(j, a)
				if err := j.CheckRuns(); err == nil || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s = %d: %v", path, a, err)
				}
			}
		})
	if seen < 60 {
		t.Errorf("only %d values were tried", seen)
	}
}
