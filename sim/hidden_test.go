package sim_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
)

// sentinel stands for every number that belongs to the truth and not to an estimate.
const sentinel = 1_234_567_891

// spy walks through everything that a policy can reach, including unexported fields, and records what it must not see.
type spy struct {
	policy.Policy
	seen  map[any]bool
	found []string
	looks int
}

func (s *spy) Decide(now timeline.Time, p *book.Plan) {
	s.seen = map[any]bool{}
	s.looks++
	s.walk("plan", reflect.ValueOf(p))
	s.Policy.Decide(now, p)
}

func (s *spy) walk(path string, v reflect.Value) {
	if !v.IsValid() || len(s.found) > 5 {
		return
	}
	if from := v.Type().PkgPath(); strings.HasSuffix(from, "bellows/sim") ||
		strings.HasSuffix(from, "bellows/format/workload") {
		s.found = append(s.found, fmt.Sprintf("%s is a %v", path, v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if v.Int() == sentinel {
			s.found = append(s.found, path+" is a number of the truth")
		}
	case reflect.Float32, reflect.Float64:
		if v.Float() == sentinel {
			s.found = append(s.found, path+" is a number of the truth")
		}
	case reflect.Pointer, reflect.Map:
		if v.IsNil() || s.seen[[2]any{v.Pointer(), v.Type()}] {
			return
		}
		s.seen[[2]any{v.Pointer(), v.Type()}] = true
		if v.Kind() == reflect.Pointer {
			s.walk(path, v.Elem())
			return
		}
		for it := v.MapRange(); it.Next(); {
			s.walk(path+" key", it.Key())
			s.walk(fmt.Sprintf("%s[%v]", path, it.Key()), it.Value())
		}
	case reflect.Interface:
		s.walk(path, v.Elem())
	case reflect.Slice:
		for i := range v.Cap() { // also elements beyond its length
			s.walk(fmt.Sprintf("%s[%d]", path, i), v.Slice(0, v.Cap()).Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			s.walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if field.CanAddr() { // unexported fields are reachable, too
				field = reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
			}
			s.walk(path+"."+v.Type().Field(i).Name, field)
		}
	case reflect.Func:
		if !v.IsNil() {
			s.found = append(s.found, path+" is a function, which may hold anything")
		}
	}
}

func truthOfSentinels() workload.StageTruth {
	return workload.StageTruth{Duration: workload.ForEach([]time.Duration{sentinel, sentinel}),
		IdealMemory: workload.ForEach([]resource.Amount{sentinel, sentinel}),
		Elasticity:  &cluster.Elasticity{Kind: cluster.Step, Factor: 2, DiskRate: sentinel},
		Phases: workload.ForAll(
			[]cluster.Phase{{Duration: sentinel, Demand: resource.Vector{sentinel, sentinel, sentinel, sentinel}}}),
		Heap: &workload.Heap{Live: 1, Size: sentinel}}
}

// Neither the truth nor the simulator can be reached from what a policy is given.
func TestPoliciesSeeNoTruth(t *testing.T) {
	for _, name := range policy.Names() {
		for _, a := range []sim.Acquisition{{}, sim.YARN()} {
			p, err := policy.New(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			watch := &spy{Policy: p}
			c := sim.Config{Nodes: sim.Uniform(2, vector(2, 4, 100, 100)),
				Machine: sim.Machine{Swap: 64 * resource.GiB, Paging: sim.SSDPaging}}
			a.Apply(&c)
			for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
				job := oneStage(1, 2, truthOfSentinels())
				job.Class = class
				other := oneStage(2, 2, workload.StageTruth{})
				other.After = 0
				if _, err := sim.Run(c, &workload.Workload{Jobs: []workload.Job{job, other}}, watch); err != nil {
					t.Fatal(err)
				}
				if watch.looks < 3 {
					t.Errorf("%s was asked %d times", name, watch.looks)
				}
				for _, what := range watch.found {
					t.Errorf("%s, %v: %s", name, class, what)
				}
				watch.looks = 0
			}
		}
	}
}

// The spy finds a truth that is reachable.
func TestTheSpySees(t *testing.T) {
	j := oneStage(1, 1, truthOfSentinels())
	s := spy{seen: map[any]bool{}}
	s.walk("truth", reflect.ValueOf(&j))
	durations := j.Truth[0].Duration.Values()
	hidden := struct{ inner []any }{append(make([]any, 0, 2), &durations)[:0]}
	s.walk("hidden", reflect.ValueOf(&hidden))
	if len(s.found) != 3 || !strings.Contains(s.found[0], "workload.Job") {
		t.Errorf("found %v", s.found)
	}
}

// Decisions depend only on what has happened so far, not on the rest of the truth.
func TestDecisionsDoNotDependOnTheTruth(t *testing.T) {
	type step struct {
		now               timeline.Time
		events, decisions string
	}
	slower := workload.StageTruth{Duration: workload.ForEach([]time.Duration{200 * time.Second, 300 * time.Second})}
	run := func(name string, truth workload.StageTruth) []step {
		p, err := policy.New(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		var steps []step
		c := sim.Config{Nodes: sim.Uniform(1, vector(2, 2, 100, 0))}
		c.Observe = func(now timeline.Time, e []cluster.Event, d []cluster.Decision) {
			var what strings.Builder
			for i := range e {
				fmt.Fprint(&what, e[i].Kind, e[i].Task, e[i].Outcome, e[i].Decision)
			}
			steps = append(steps, step{now, what.String(), fmt.Sprint(d)})
		}
		jobs := []workload.Job{oneStage(1, 2, truth), oneStage(2, 2, truth), oneStage(3, 2, truth)}
		jobs[2].Submitted = timeline.Seconds(150)
		if _, err := sim.Run(c, &workload.Workload{Jobs: jobs}, p); err != nil {
			t.Fatal(err)
		}
		return steps
	}
	for _, name := range policy.Names() {
		a, b := run(name, workload.StageTruth{}), run(name, slower)
		same := 0
		for same < len(a) && a[same].now == b[same].now && a[same].events == b[same].events {
			if a[same].decisions != b[same].decisions {
				t.Errorf("%s decides %s in one truth and %s in the other, at %v", name, a[same].decisions, b[same].decisions,
					a[same].now)
			}
			same++
		}
		if same < 3 || same == len(a) {
			t.Errorf("%s: %d of %d steps are the same", name, same, len(a))
		}
	}
}
