package pool_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// keepingPool is a pool that keeps executors for a stage for 2 s in sum, and an application that has one of its two
// executors for a task, and another stage of two tasks that is about to start.
func keepingPool(t *testing.T) (s *scene, held []int64) {
	keeps, err := policy.New("mira", map[string]string{"mira.keep": "2s"})
	if err != nil {
		t.Fatal(err)
	}
	s = &scene{T: t, pool: start(t, func(c *pool.Config) { c.Policy = keeps })}
	for i := range 2 {
		s.executors = append(s.executors, registerAttachable(t, s.pool, i, nil))
	}
	s.app = enrolDriver(t, s.pool, "a")
	s.app.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Function: "f", Demand: 2},
		{Stage: 1, Function: "f", After: []int{0}, Tasks: 2}}})
	for i, c := range s.app.hears("assigned 0", "assigned 1") {
		s.executors[i].is(executor.DoAttach, c.Attachment.Attachment)
		s.executors[i].knows.Attached = c.Attachment.Attachment
		held = append(held, c.Attachment.Attachment)
	}
	s.app.demands(0, 1)
	return s, held
}

// An executor of an application that drives is kept between two stages as one of any other application: for 2 s divided
// by the tasks of the next stage, unless it is due to another application.
func TestDriversKeepExecutors(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(s *scene)
		want    time.Duration // after which an executor is asked for; 0 is never
	}{
		{"nothing happens", func(*scene) {}, time.Second},
		{"the next stage starts in the place of the first", func(s *scene) {
			s.app.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Demand: 2}, {Stage: 1}}})
		}, 0},
		{"the next stage has one task", func(s *scene) {
			s.app.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Demand: 1}, {Stage: 1, Tasks: 1}}})
		}, time.Second},
		{"there is no next stage any more", func(s *scene) {
			s.app.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 1}}})
		}, 500 * time.Millisecond},
		{"another application waits", func(s *scene) {
			enrol(s.T, s.pool, "b").grow(true, tasks(0, 1))
		}, 500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s, _ := keepingPool(t)
				time.Sleep(500 * time.Millisecond)
				if v, err := s.pool.View(t.Context()); err != nil || !strings.Contains(v.Executors[1].Why,
					"for stage 1 of its application") {
					t.Errorf("%+v, %v", v.Executors, err)
				}
				c.happens(s)
				got := time.Duration(0)
				if out := s.app.collect(); len(out.Changes) > 0 {
					got = time.Since(began)
				}
				if got != c.want {
					t.Errorf("an executor is asked for after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// An executor that is given back before the next stage starts stays reserved for it, and is attached to it at once.
func TestGivenBackIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, held := keepingPool(t)
		x := s.executors[1]
		s.app.say(executor.Growth{GivesBack: held[1:]})
		s.app.hears("ended 1")
		x.is(executor.DoPark, held[1])
		x.knows.Attached = 0
		if v, err := s.pool.View(t.Context()); err != nil || !strings.Contains(v.Executors[1].Why, "kept idle until") {
			t.Errorf("%+v, %v", v.Executors, err)
		}
		s.app.say(executor.Growth{GivesBack: held[:1], Stages: []executor.StageGrowth{{Stage: 0}, {Stage: 1, Demand: 2}}})
		all := s.app.hears("ended 0", "assigned 0", "assigned 1")
		if i := slices.IndexFunc(all[1:], func(c executor.Change) bool { return c.Stage != 1 }); i >= 0 {
			t.Errorf("%+v", all)
		}
		// A stage that is still not there after its time: it is free for others.
		s.app.say(executor.Growth{GivesBack: []int64{all[2].Attachment.Attachment}, Stages: []executor.StageGrowth{
			{Stage: 1, Demand: 1}, {Stage: 2, Function: "f", After: []int{1}, Tasks: 4}}})
		s.app.hears("ended 1")
		time.Sleep(499 * time.Millisecond)
		if v, err := s.pool.View(t.Context()); err != nil || v.Executors[1].Application == 0 {
			t.Errorf("%+v, %v", v.Executors, err)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if v, err := s.pool.View(t.Context()); err != nil || v.Executors[1].Application != 0 {
			t.Errorf("%+v, %v", v.Executors, err)
		}
	})
}

// An application that drives may use one stage for all that it runs, and another for what comes next, of which it
// speaks when an executor has nothing to do. It has the same executors for all of its stages then.
func TestOneStageForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keeps, err := policy.New("mira", map[string]string{"mira.keep": "2s"})
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, func(c *pool.Config) { c.Policy = keeps })
		executors := []*attachable{registerAttachable(t, p, 0, nil), registerAttachable(t, p, 1, nil)}
		a := enrolDriver(t, p, "a")
		says := func(demand, next int) {
			t.Helper()
			a.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Demand: demand}, {Stage: 1, Tasks: next}}})
		}
		a.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Function: "f", Demand: 2},
			{Stage: 1, Function: "f", After: []int{0}}}})
		for i, c := range a.hears("assigned 0", "assigned 1") {
			executors[i].is(executor.DoAttach, c.Attachment.Attachment)
			executors[i].knows.Attached = c.Attachment.Attachment
		}
		for range 3 {
			says(1, 2)
			if _, asked := a.listens(900 * time.Millisecond); len(asked) > 0 {
				t.Errorf("%d executors are asked for before the next stage", len(asked))
			}
			says(0, 2)
			says(2, 0)
		}
		if _, asked := a.listens(10 * time.Second); len(asked) > 0 {
			t.Errorf("%d executors are asked for while they work", len(asked))
		}
		says(0, 0)
		a.hears("asked 1", "asked 0")
	})
}

// The size of a pool depends on what an executor has while it serves an application, and after that.
func TestMemoryOfAttached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := keepingPool(t)
		x := s.executors[0]
		memory := func(bytes int64) {
			x.knows.Memory = bytes
			x.serves(time.Millisecond)
		}
		want := func(bytes, tasks int64) {
			t.Helper()
			w, err := s.pool.Wanted(t.Context())
			if err != nil || w.Members[0].Memory != bytes || w.Members[0].Tasks != tasks {
				t.Errorf("%+v, %v", w.Members, err)
			}
		}
		memory(5)
		want(5, 1)
		memory(7)
		want(7, 1)
		s.app.say(executor.Growth{GivesBack: []int64{x.knows.Attached},
			Stages: []executor.StageGrowth{{Stage: 0}, {Stage: 1}}})
		memory(9)
		want(9, 1)
	})
}
