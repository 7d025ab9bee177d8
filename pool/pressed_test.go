package pool_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// pressing is a pool on a machine whose disk is pressed, and four executors that run tasks of an application.
type pressing struct {
	*pool.Pool
	t       *testing.T
	app     *client
	workers []*worker
	runs    []executor.Work // of each worker; none is zero
}

func press(t *testing.T, name string, settings map[string]string) *pressing {
	s := &pressing{t: t, runs: make([]executor.Work, 4)}
	s.Pool = start(t, func(c *pool.Config) {
		var err error
		if c.Policy, err = policy.New(name, settings); err != nil {
			t.Fatal(err)
		}
		c.Machine = resource.Of(4000, resource.GiB).With(resource.Disk, 100*resource.MB)
	})
	s.app = enrol(t, s.Pool, "a")
	s.app.grow(true, tasks(0, 100))
	for n := range s.runs {
		s.workers = append(s.workers, register(t, s.Pool, n))
	}
	s.round()
	s.busy("at first", 4)
	return s
}

// round lets each executor report what it runs, and then take a task if there is one for it.
func (s *pressing) round() {
	s.t.Helper()
	for range 2 { // An executor that is given back may be assigned by the report of another.
		for i, w := range s.workers {
			var done *executor.Work
			if s.runs[i].Do == executor.DoRun {
				done = &s.runs[i]
			}
			ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Millisecond)
			work, _, err := s.Next(ctx, w.number, executor.Next{Lease: w.lease, Done: reportOf(done)}, payloadOf(done))
			cancel()
			if err != nil && ctx.Err() == nil {
				s.t.Fatal(err)
			}
			s.runs[i] = work
		}
	}
}

// busy checks how many executors run tasks.
func (s *pressing) busy(when string, want int) {
	s.t.Helper()
	n := 0
	for _, work := range s.runs {
		if work.Do == executor.DoRun {
			n++
		}
	}
	if n != want {
		s.t.Errorf("%s %d executors run tasks, want %d", when, n, want)
	}
}

func (s *pressing) pressed(gives resource.Amount, executors ...int) {
	s.t.Helper()
	some := map[int]bool{}
	for _, n := range executors {
		some[n] = true
	}
	if err := s.Pressed(s.t.Context(), resource.Vector{}.With(resource.Disk, gives), some); err != nil {
		s.t.Error(err)
	}
}

func (s *pressing) view() pool.View {
	s.t.Helper()
	v, err := s.View(s.t.Context())
	if err != nil || v.Broken != "" {
		s.t.Fatalf("the pool is %+v, %v", v, err)
	}
	return v
}

// An application whose executors press the machine has half of them for some seconds, or until the machine is
// relieved; its other executors serve other applications meanwhile. People see why.
func TestPressedBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := press(t, "mira", nil)
		s.pressed(30*resource.MB, 1)
		s.round()
		s.busy("pressed", 2)
		v := s.view()
		const why = "it uses much of what is short: the machine gives 30MB/s of disk, of 100MB/s"
		if a := v.Applications[0]; a.Executors != 2 || a.Why != why {
			t.Errorf("pressed: %+v", a)
		}
		for _, e := range v.Executors {
			if (e.Why == why) != (e.Executor == 1) {
				t.Errorf("pressed: %+v", e)
			}
		}
		b := enrol(t, s.Pool, "b")
		b.grow(true, tasks(0, 100))
		s.round()
		s.busy("with another application", 4)
		if v := s.view(); v.Applications[0].Executors != 2 || v.Applications[1].Executors != 2 {
			t.Errorf("with another application: %+v", v.Applications)
		}
		if err := s.Cancel(t.Context(), b.lease.Application, "of the test"); err != nil {
			t.Fatal(err)
		}
		s.round()
		s.busy("alone again", 2)
		time.Sleep(15 * time.Second)
		s.round()
		s.busy("after some seconds", 4)
		s.pressed(30*resource.MB, 0, 1, 2, 3)
		s.round()
		s.busy("pressed again", 2)
		s.pressed(20*resource.MB, 0, 1, 2, 3)
		s.round()
		s.busy("still pressed", 1)
		s.pressed(0)
		s.round()
		s.busy("relieved", 4)
		for _, e := range s.view().Executors {
			if strings.Contains(e.Why, "short") {
				t.Errorf("relieved: %+v", e)
			}
		}
	})
}

// The policy prophet would bound what programs use, which a pool cannot: its tasks run as before.
func TestPressedBoundsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := press(t, "prophet", map[string]string{"prophet.relief": "share"})
		for range 3 {
			s.pressed(30*resource.MB, 0, 1, 2, 3)
			time.Sleep(10 * time.Millisecond) // a batch
			if n := s.Throttled(t.Context()); n != 0 {
				t.Errorf("the engine believes that %d tasks are bounded", n)
			}
			s.round()
			s.busy("pressed", 4)
		}
	})
}
