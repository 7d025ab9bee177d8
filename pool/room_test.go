package pool_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/pool"
)

// While the results of an application fill its room, its tasks wait, and they go on when it has collected some.
func TestTasksWaitForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Room = 4 })
		w, a := register(t, p, 0), enrol(t, p, "a")
		a.grow(true, tasks(0, 3))
		first := w.next(nil)
		second := w.next(&first)
		if third := w.next(&second); third.Do != executor.DoWait {
			t.Fatalf("with %d bytes of results of 4, the executor is told %q", 4, third.Do)
		}
		got := make(chan executor.Work)
		go func() { got <- w.next(nil) }()
		synctest.Wait()
		for range 2 { // The second time confirms what the first returned.
			a.collect()
		}
		if third := <-got; third.Do != executor.DoRun {
			t.Errorf("after results were confirmed, the executor is told %q", third.Do)
		}
	})
}

// All applications of an owner share a room, in whatever pools they are. What is alone always has room.
func TestOwnersShareRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := pool.NewRoom(100)
		share := func(c *pool.Config) { c.OfOwner = room }
		p, q := begin(t, share), start(t, share)
		a, b := enrol(t, p, "a"), enrol(t, q, "b")
		grow := func(p *pool.Pool, c *client, number int64, size int) error {
			_, err := p.Grow(t.Context(), c.lease.Application, executor.Growth{Lease: c.lease.Lease, Number: number,
				Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{size}}}}, make([]byte, size))
			return err
		}
		if err := grow(p, a, 1, 200); err != nil {
			t.Errorf("what is alone: %v", err)
		}
		if err := grow(q, b, 1, 1); !errors.Is(err, pool.ErrFull) {
			t.Errorf("beside it: %v", err)
		}
		if err := p.Cancel(t.Context(), a.lease.Application, "test"); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if err := grow(q, b, 1, 1); err != nil {
			t.Errorf("after the other pool has ended: %v", err)
		}
	})
}

// An application that was cancelled needs room for what still runs alone. If it has cancelled itself, its results are
// not collected any more.
func TestCancelledGivesRoomBack(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			room := pool.NewRoom(1000)
			p := start(t, func(c *pool.Config) { c.OfOwner = room })
			w, a := register(t, p, 0), enrol(t, p, "a")
			held := func() int64 {
				v, err := p.View(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return v.Applications[0].Held
			}
			if _, err := p.Grow(t.Context(), a.lease.Application, executor.Growth{Lease: a.lease.Lease, Number: 1,
				Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{1, 10, 100, 500}}}}, make([]byte, 611)); err != nil {
				t.Fatal(err)
			}
			first := w.next(nil)
			second := w.next(&first)
			if n := held(); n != 612 {
				t.Fatalf("three tasks without results and one result need %d bytes", n)
			}
			results, cancel := int64(2), func() error { return p.Cancel(t.Context(), a.lease.Application, "test") }
			if own {
				results, cancel = 0, func() error { return p.CancelLease(t.Context(), a.lease.Application, a.lease.Lease, "test") }
			}
			if err := cancel(); err != nil {
				t.Fatal(err)
			}
			if n := held(); n != 10+results {
				t.Errorf("own %v: while a task runs, %d bytes are needed", own, n)
			}
			w.report(second)
			if n := held(); n != results || room.Held() != n {
				t.Errorf("own %v: when it has ended, %d bytes are needed, and %d of the owner's", own, n, room.Held())
			}
			if out := a.collect(); len(out.Results) != int(results/2) || out.Why != "test" {
				t.Errorf("own %v: it collects %+v", own, out)
			}
		})
	}
}

// What runs on when its application has enrolled again gives no room back twice.
func TestForgottenGivesRoomBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := pool.NewRoom(1000)
		p := start(t, func(c *pool.Config) { c.OfOwner = room })
		w, a := register(t, p, 0), enrol(t, p, "a")
		if _, err := p.Grow(t.Context(), a.lease.Application, executor.Growth{Lease: a.lease.Lease, Number: 1,
			Stages: []executor.StageGrowth{{Function: "f", Sizes: []int{10}}}}, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		work := w.next(nil)
		enrol(t, p, "a")
		w.report(work)
		if n := room.Held(); n != 0 {
			t.Errorf("%d bytes are needed", n)
		}
	})
}
