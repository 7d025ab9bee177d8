package pool_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// fails asks for work for a while and fails whatever it is attached to. It returns when that was, from now on.
func (x *attachable) fails(lasts time.Duration, why string) (at []time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(x.t.Context(), lasts)
	defer cancel()
	for {
		x.knows.Lease = x.lease
		work, _, err := x.pool.Next(ctx, x.number, x.knows, nil)
		if err != nil {
			return at
		}
		if x.knows.Done = nil; work.Do == executor.DoAttach {
			at = append(at, time.Since(began).Round(time.Millisecond))
			x.knows.Done = &executor.Report{Work: work.Work, Failed: true, Error: why, Cause: executor.CauseUnreachable}
		}
	}
}

// serves asks for work for a while and serves what it is attached to. It returns how often that was something new.
func (x *attachable) serves(lasts time.Duration) (attached int) {
	ctx, cancel := context.WithTimeout(x.t.Context(), lasts)
	defer cancel()
	for {
		x.knows.Lease = x.lease
		work, _, err := x.pool.Next(ctx, x.number, x.knows, nil)
		switch {
		case err != nil:
			return attached
		case work.Do == executor.DoAttach:
			x.knows.Attached, x.knows.Released, attached = work.Work, false, attached+1
		case work.Do == executor.DoRelease:
			x.knows.Released = true
		case work.Do == executor.DoPark:
			x.knows.Attached = 0
		}
	}
}

// listens confirms what an application hears, for a while, and returns why it has ended, empty if it has not.
func (c *client) listens(lasts time.Duration) (why string, asked []int64) {
	ctx, cancel := context.WithTimeout(c.t.Context(), lasts)
	defer cancel()
	for {
		out, _, err := c.pool.Collect(ctx, c.lease.Application, executor.Collect{Lease: c.lease.Lease, After: c.after})
		for _, x := range out.Changes {
			if c.after = x.Number; x.What == executor.AskedFor {
				asked = append(asked, x.Attachment.Attachment)
			}
		}
		if err != nil || out.Ended {
			return out.Why, asked
		}
	}
}

// scene is a pool with executors that can be attached and an application that demands some.
type scene struct {
	*testing.T
	pool      *pool.Pool
	executors []*attachable
	app       *client
}

func failingPool(t *testing.T, executors, demand int) *scene {
	s := &scene{T: t, pool: start(t, nil)}
	for i := range executors {
		s.executors = append(s.executors, registerAttachable(t, s.pool, i, nil))
	}
	s.app = enrolDriver(t, s.pool, "a") // with two attempts
	s.app.demands(0, demand)
	return s
}

// all calls something for each executor, at the same time.
func (s *scene) all(do func(x *attachable)) {
	var group sync.WaitGroup
	for _, x := range s.executors {
		group.Go(func() { do(x) })
	}
	group.Wait()
}

// An executor that fails is attached again after 100 ms, 200 ms and so on.
func TestPauseAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 1, 1)
		if got, want := fmt.Sprint(s.executors[0].fails(6*time.Second, "no route")),
			"[0s 100ms 300ms 700ms 1.5s 3.1s]"; got != want {
			t.Errorf("it is attached at %s, want %s", got, want)
		}
		v, err := s.pool.View(t.Context())
		if want := "demands 1, asked for 0; pauses until"; err != nil || !strings.Contains(v.Applications[0].Why, want) ||
			!strings.Contains(v.Applications[0].Why, "the last 6 attachments have failed; the last: no route") {
			t.Errorf("%+v, %v, want %s", v.Applications, err, want)
		}
	})
}

// A loss of the network of some seconds, at which all attachments fail at once and again, does not end an application:
// afterwards it has all its executors again.
func TestBlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 4, 4)
		s.all(func(x *attachable) { x.serves(time.Second) })
		for _, x := range s.executors { // The network is gone: tasks cannot reach their driver any more.
			x.knows.Done = &executor.Report{Work: x.knows.Attached, Failed: true, Error: "reset by peer"}
			x.knows.Attached = 0
		}
		s.all(func(x *attachable) { x.fails(4900*time.Millisecond, "no route") })
		s.all(func(x *attachable) { x.serves(5 * time.Second) })
		if why, _ := s.app.listens(time.Second); why != "" {
			t.Errorf("it has ended: %s", why)
		}
		for _, x := range s.executors {
			if x.knows.Attached == 0 {
				t.Errorf("executor %d is not attached again", x.number)
			}
		}
	})
}

// An application that cannot be reached from any executor is cancelled after some seconds, and says on how many it
// failed. Until then it does not keep them from others.
func TestUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 4, 4)
		others := enrol(t, s.pool, "others")
		time.Sleep(time.Millisecond)
		var group sync.WaitGroup
		group.Go(func() { s.all(func(x *attachable) { x.fails(8*time.Second, "no route") }) })
		why, _ := s.app.listens(8 * time.Second)
		if !strings.Contains(why, "in 6.3s and on 4 of the executors; the last: no route") {
			t.Errorf("it has ended: %q", why)
		}
		v, err := s.pool.View(t.Context())
		if a := v.Applications[0]; err != nil || a.State != "cancelled" || a.Why != why || a.Waiting != 0 {
			t.Errorf("people see %+v, %v", a, err)
		}
		group.Wait()
		others.grow(true, tasks(0, 1))
		if work := (&worker{t, s.pool, 0, s.executors[0].lease}).next(nil); work.Do != executor.DoRun {
			t.Errorf("then executor 0 is told %+v", work)
		}
	})
}

// One executor on which attachments fail is left for others, and ends no application: neither one that has all it
// wants elsewhere, nor one that has nothing else.
func TestBrokenExecutor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 3, 1)
		var group sync.WaitGroup
		group.Go(func() {
			if n := len(s.executors[0].fails(time.Minute, "its disk is full")); n != 1 {
				t.Errorf("executor 0 was attached %d times", n)
			}
		})
		for _, x := range s.executors[1:] {
			group.Go(func() { x.serves(time.Minute) })
		}
		if why, _ := s.app.listens(time.Minute); why != "" {
			t.Errorf("it has ended: %s", why)
		}
		group.Wait()
		if s.executors[1].knows.Attached == 0 {
			t.Error("executor 1 is not attached instead")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 2, 2)
		var group sync.WaitGroup
		group.Go(func() { s.executors[0].fails(time.Minute, "its disk is full") })
		group.Go(func() { s.executors[1].serves(time.Minute) })
		if why, _ := s.app.listens(time.Minute); why != "" {
			t.Errorf("it has ended: %s", why)
		}
		group.Wait()
		if s.executors[1].knows.Attached == 0 {
			t.Error("executor 1 is not attached")
		}
	})
}

// What an application demands while it pauses counts when the pause is over.
func TestDemandDuringPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := failingPool(t, 3, 2)
		x0, x1, x2 := s.executors[0], s.executors[1], s.executors[2]
		x1.serves(time.Second)
		x0.fails(time.Millisecond, "no route")
		s.app.say(executor.Growth{Stages: []executor.StageGrowth{{Stage: 0, Demand: 1},
			{Stage: 1, Function: "f", Demand: 1}}})
		if n := x2.serves(50 * time.Millisecond); n != 0 {
			t.Errorf("executor 2 is attached %d times during the pause", n)
		}
		if n := x2.serves(time.Second); n != 1 || x1.serves(time.Millisecond) != 0 || x1.knows.Released {
			t.Errorf("executor 2 is attached %d times after it, executor 1 knows %+v", n, x1.knows)
		}
	})
}
