package pool_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/drive"
	"github.com/bellows-rm/bellows/pool"
)

// start begins a pool of the policy mira, which ends with the test.
func start(t *testing.T, change func(*pool.Config)) *pool.Pool {
	t.Helper()
	p := begin(t, change)
	t.Cleanup(p.Close)
	return p
}

// begin begins a pool of the policy mira.
func begin(t testing.TB, change func(*pool.Config)) *pool.Pool {
	t.Helper()
	mira, err := policy.New("mira", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := pool.Config{Name: "test", Lease: time.Minute, Policy: mira, Verify: func(_ int, secret string) bool {
		return secret == "secret"
	}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if change != nil {
		change(&c)
	}
	return pool.Start(c)
}

// worker is an executor in a test, which runs a task only when it is told to.
type worker struct {
	t      *testing.T
	pool   *pool.Pool
	number int
	lease  string
}

func register(t *testing.T, p *pool.Pool, number int) *worker {
	t.Helper()
	lease, err := p.Register(t.Context(), executor.Registration{Executor: number, Secret: "secret", Language: "go"})
	if err != nil {
		t.Fatal(err)
	}
	return &worker{t, p, number, lease.Lease}
}

// next asks for work, and reports the last with the result "ok" if done is given.
func (w *worker) next(done *executor.Work) executor.Work {
	w.t.Helper()
	work, _, err := w.pool.Next(w.t.Context(), w.number, executor.Next{Lease: w.lease, Done: reportOf(done)},
		payloadOf(done))
	if err != nil {
		w.t.Fatal(err)
	}
	return work
}

// report reports a task with the result "ok", and does not wait for the next.
func (w *worker) report(done executor.Work) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
	defer cancel()
	if _, _, err := w.pool.Next(ctx, w.number, executor.Next{Lease: w.lease, Done: reportOf(&done)},
		payloadOf(&done)); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		w.t.Fatal(err)
	}
}

func reportOf(done *executor.Work) *executor.Report {
	if done == nil {
		return nil
	}
	return &executor.Report{Work: done.Work, Size: 2}
}

func payloadOf(done *executor.Work) []byte {
	if done == nil {
		return nil
	}
	return []byte("ok")
}

// client is an application in a test.
type client struct {
	t       *testing.T
	pool    *pool.Pool
	lease   executor.Lease
	growths int64
	after   int64
}

func enrol(t *testing.T, p *pool.Pool, key string) *client {
	t.Helper()
	lease, err := p.Enrol(t.Context(), executor.Enrolment{Key: key + "-0123456789abcdef", Name: key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, pool: p, lease: lease}
}

// grow adds a number of tasks without arguments to a stage.
func (c *client) grow(closed bool, stages ...executor.StageGrowth) {
	c.t.Helper()
	c.growths++
	if _, err := c.pool.Grow(c.t.Context(), c.lease.Application, executor.Growth{Lease: c.lease.Lease, Number: c.growths,
		Stages: stages, Closed: closed}, nil); err != nil {
		c.t.Fatal(err)
	}
}

func tasks(stage, n int, after ...int) executor.StageGrowth {
	return executor.StageGrowth{Stage: stage, Function: "f", Sizes: make([]int, n), After: after}
}

// collect returns all results that are here, and confirms them.
func (c *client) collect() executor.Results {
	c.t.Helper()
	out, _, err := c.pool.Collect(c.t.Context(), c.lease.Application,
		executor.Collect{Lease: c.lease.Lease, After: c.after})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, r := range out.Results {
		if r.Number != c.after+1 {
			c.t.Fatalf("result %d follows %d", r.Number, c.after)
		}
		c.after = r.Number
	}
	return out
}

// An executor runs the tasks of one application after those of another, and each application gets its results.
func TestExecutorServesApplications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 3)
		a, b := enrol(t, p, "a"), enrol(t, p, "b")
		a.grow(true, tasks(0, 2))
		b.grow(true, tasks(0, 2))
		served := map[string]int{}
		var last *executor.Work
		for range 4 {
			work := w.next(last)
			if work.Do != executor.DoRun || work.Function != "f" {
				t.Fatalf("got %+v", work)
			}
			served[work.Name]++
			last = &work
		}
		if work := w.next(last); work.Do != executor.DoWait {
			t.Errorf("without tasks the executor does %+v", work)
		}
		if served["a"] != 2 || served["b"] != 2 {
			t.Errorf("served %v", served)
		}
		for _, c := range []*client{a, b} {
			out := c.collect()
			if len(out.Results) != 2 || !out.Ended || out.Results[0].Run != 1 || out.Results[0].Executor != 3 {
				t.Errorf("got %+v", out)
			}
		}
		if v, _ := p.View(t.Context()); v.Counters.Switched == 0 || v.Executors[0].State != api.ExecutorParked ||
			strings.Contains(v.Executors[0].Why, "memory") {
			t.Errorf("the pool is %+v", v)
		}
	})
}

// A stage waits for the stages before it, and a failed task of those cancels the application, because its other
// stages cannot run.
func TestStagesFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(false, tasks(0, 1), tasks(1, 1, 0))
		first := w.next(nil)
		if first.Task.Stage != 0 {
			t.Fatalf("got %+v", first)
		}
		second := w.next(&first)
		if second.Do != executor.DoRun || second.Task.Stage != 1 {
			t.Fatalf("got %+v", second)
		}
		a.grow(true, tasks(2, 1, 1))
		report := executor.Report{Work: second.Work, Failed: true, Error: "broken"}
		work, _, err := p.Next(t.Context(), 0, executor.Next{Lease: w.lease, Done: &report}, nil)
		if err != nil || work.Do != executor.DoWait {
			t.Errorf("got %+v %v", work, err)
		}
		out := a.collect()
		if !out.Ended || len(out.Results) != 2 || !out.Results[1].Failed || out.Why == "" {
			t.Errorf("got %+v", out)
		}
	})
}

// Only events that can change the division of executors cause one: an application that wants more than it has, and
// still does, changes nothing, nor does the end of a task that another one follows.
func TestFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(false, tasks(0, 10))
		counts := func() api.PoolCounters {
			synctest.Wait()
			v, err := p.View(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return v.Counters
		}
		before := counts()
		if before.Events == 0 || before.Divisions == 0 {
			t.Errorf("an application that came caused %+v", before)
		}
		a.grow(false, executor.StageGrowth{Sizes: make([]int, 10)})
		work := w.next(nil)
		w.next(&work)
		after := counts()
		if events := after.Events - before.Events; events < 3 || after.Filtered-before.Filtered != events ||
			after.Divisions != before.Divisions {
			t.Errorf("more tasks and the end of one: from %+v to %+v", before, after)
		}
		enrol(t, p, "b").grow(false, tasks(0, 1))
		if last := counts(); last.Divisions <= after.Divisions {
			t.Errorf("another application: from %+v to %+v", after, last)
		}
	})
}

// A task whose executor is silent runs again on another, and a report of the lost run is refused.
func TestLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []int
		p := start(t, func(c *pool.Config) { c.End = func(n int, _ string) { ended = append(ended, n) } })
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(true, tasks(0, 1))
		lost := w.next(nil)
		collected := make(chan executor.Results, 1)
		go func() { // A request that waits keeps the lease of the application.
			for out := a.collect(); ; out = a.collect() {
				if len(out.Results) > 0 {
					collected <- out
					return
				}
			}
		}()
		time.Sleep(time.Minute + time.Second)
		other := register(t, p, 1)
		again := other.next(nil)
		if again.Do != executor.DoRun || again.Task.Run != 2 || len(ended) != 1 || ended[0] != 0 {
			t.Fatalf("got %+v, ended %v", again, ended)
		}
		if _, _, err := p.Next(t.Context(), 0, executor.Next{Lease: w.lease, Done: reportOf(&lost)},
			payloadOf(&lost)); !errors.Is(err, pool.ErrGone) {
			t.Errorf("the report of a lost run: %v", err)
		}
		other.report(again)
		if out := <-collected; len(out.Results) != 1 || out.Results[0].Run != 2 || !out.Ended {
			t.Errorf("got %+v", out)
		}
	})
}

// A request that waits keeps a lease for as long as it waits, and renews it when it gives up: because it has waited for
// long enough, or because its caller has.
func TestRequestsKeepLeases(t *testing.T) {
	const lease, poll = time.Minute, 5 * time.Minute
	requests := map[string]func(context.Context, *pool.Pool, *worker, *client) error{
		"executor": func(ctx context.Context, p *pool.Pool, w *worker, _ *client) error {
			work, _, err := p.Next(ctx, 0, executor.Next{Lease: w.lease}, nil)
			if err == nil && work.Do != executor.DoWait {
				t.Errorf("got %+v", work)
			}
			return err
		},
		"application": func(ctx context.Context, p *pool.Pool, _ *worker, c *client) error {
			_, _, err := p.Collect(ctx, c.lease.Application, executor.Collect{Lease: c.lease.Lease})
			return err
		},
	}
	for who, request := range requests {
		for how, gives := range map[string]struct {
			up    time.Duration
			again bool // the request comes twice, as from a caller that lost its connection
		}{"it waited": {poll, false}, "its caller did": {2 * lease, false}, "it came twice": {2 * lease, true}} {
			t.Run(who+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := start(t, func(c *pool.Config) { c.Lease, c.Poll = lease, poll })
					w, a := register(t, p, 0), enrol(t, p, "a")
					here := func(want bool) {
						t.Helper()
						v, err := p.View(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						is := len(v.Applications) == 1 && v.Applications[0].State == "open"
						if who == "executor" {
							is = len(v.Executors) == 1 && v.Executors[0].State != api.ExecutorExpired
						}
						if is != want {
							t.Errorf("it is here: %v, want %v: %+v", is, want, v)
						}
					}
					ctx, cancel := context.WithTimeout(t.Context(), gives.up)
					defer cancel()
					if gives.again {
						go func() {
							if err := request(t.Context(), p, w, a); err != nil {
								t.Errorf("the first request: %v", err)
							}
						}()
						synctest.Wait()
					}
					if err := request(ctx, p, w, a); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Fatal(err)
					}
					here(true)
					time.Sleep(lease - time.Second)
					here(true)
					time.Sleep(2 * time.Second)
					here(false)
				})
			})
		}
	}
}

// Another user has no secret, and a lease is not guessed.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		if _, err := p.Register(t.Context(), executor.Registration{Executor: 0, Secret: "wrong"}); !errors.Is(err,
			pool.ErrSecret) {
			t.Errorf("a wrong secret: %v", err)
		}
		register(t, p, 0)
		a := enrol(t, p, "a")
		for _, lease := range []string{"", "x"} {
			if _, _, err := p.Next(t.Context(), 0, executor.Next{Lease: lease}, nil); !errors.Is(err, pool.ErrGone) {
				t.Errorf("lease %q: %v", lease, err)
			}
			if _, _, err := p.Collect(t.Context(), a.lease.Application, executor.Collect{Lease: lease}); !errors.Is(err,
				pool.ErrGone) {
				t.Errorf("lease %q: %v", lease, err)
			}
		}
	})
}

// A task that ends its executors is tried as often as the application says, and has failed then.
func TestDeadlyTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		a := enrol(t, p, "a")
		a.grow(true, tasks(0, 1))
		for n := range 4 {
			w := register(t, p, n)
			if work := w.next(nil); work.Do != executor.DoRun || work.Task.Run != n+1 {
				t.Fatalf("run %d: got %+v", n, work)
			}
			if _, err := p.Left(t.Context(), n, executor.CauseLost, ""); err != nil {
				t.Fatal(err)
			}
		}
		out := a.collect()
		if len(out.Results) != 1 || !out.Results[0].Failed || !out.Ended || out.Results[0].Run != 4 {
			t.Errorf("got %+v", out)
		}
	})
}

// A task that an executor was to get and never asked for is not lost with it, however often that happens, and has not
// run.
func TestNotReceived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		a := enrol(t, p, "a")
		a.grow(true, tasks(0, 1))
		for range 5 {
			register(t, p, 0)
			synctest.Wait()
			register(t, p, 0) // The answer to its registration was lost.
			synctest.Wait()
			if _, err := p.Left(t.Context(), 0, executor.CauseLost, ""); err != nil {
				t.Fatal(err)
			}
		}
		w := register(t, p, 1)
		work := w.next(nil)
		w.report(work)
		out := a.collect()
		if v, _ := p.View(t.Context()); len(out.Results) != 1 || out.Results[0].Failed || out.Results[0].Run != 1 ||
			v.Counters.Lost != 0 {
			t.Errorf("got %+v, %+v", out, v.Counters)
		}
	})
}

// A daemon that stood still for longer than a lease has heard nobody, so nobody loses a lease, and a task that was to
// end gets its time again. Who is silent afterwards loses it as ever.
func TestDaemonStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var still atomic.Bool
		var ended []int
		p := start(t, func(c *pool.Config) {
			c.End = func(n int, _ string) { ended = append(ended, n) }
			c.Changed = func() {
				if still.CompareAndSwap(true, false) {
					time.Sleep(time.Hour)
				}
			}
		})
		w, other := register(t, p, 0), register(t, p, 1)
		a, b := enrol(t, p, "a"), enrol(t, p, "b")
		a.grow(true, tasks(0, 1))
		b.grow(true, tasks(0, 1))
		work := w.next(nil)
		other.next(nil)
		if err := p.Cancel(t.Context(), b.lease.Application, "not wanted"); err != nil {
			t.Fatal(err)
		}
		still.Store(true)
		enrol(t, p, "c")
		for range 12 {
			time.Sleep(10 * time.Second)
			if _, err := p.Beat(t.Context(), 0, executor.Beat{Lease: w.lease}); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Grow(t.Context(), a.lease.Application, executor.Growth{Lease: a.lease.Lease}, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.report(work)
		out := a.collect()
		if v, _ := p.View(t.Context()); len(out.Results) != 1 || out.Results[0].Run != 1 || v.Counters.Lost != 1 ||
			v.Counters.Expired != 1 || len(ended) != 2 || ended[0] != 1 || ended[1] != 1 {
			t.Errorf("got %+v, %+v, ended %v", out, v.Counters, ended)
		}
	})
}

// A new daemon learns from executors and applications, in any order, what runs: nothing runs twice, and no result is
// lost.
func TestNewDaemon(t *testing.T) {
	for _, order := range []string{"executor first", "application first", "report first"} {
		t.Run(order, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, func(c *pool.Config) { c.Expected = 2 })
				held := &executor.Held{Key: "a-0123456789abcdef", Stage: 0, Task: 1, Run: 1}
				again := func() *worker {
					lease, err := p.Register(t.Context(), executor.Registration{Executor: 0, Secret: "secret", Running: held})
					if err != nil {
						t.Fatal(err)
					}
					return &worker{t, p, 0, lease.Lease}
				}
				var w *worker
				var a *client
				application := func() {
					a = enrol(t, p, "a")
					// It has the result of the first task.
					a.grow(true, executor.StageGrowth{Stage: 0, Function: "f", Sizes: []int{-1, 0, 0}})
				}
				old := &executor.Work{Work: 77}
				switch order {
				case "executor first":
					w = again()
					application()
				case "application first":
					application()
					w = again()
				case "report first":
					w = again()
					w.report(*old)
					application()
				}
				other := register(t, p, 1)
				if order == "report first" {
					other = w // is free, and has the lowest number
				}
				third := other.next(nil)
				if third.Task.Task != 2 || third.Task.Run != 1 {
					t.Fatalf("got %+v", third)
				}
				if order != "report first" {
					w.report(*old)
				}
				other.report(third)
				got := map[int]int{}
				for _, r := range a.collect().Results {
					got[r.Task] += r.Run
				}
				if len(got) != 2 || got[1] != 1 || got[2] != 1 {
					t.Errorf("got tasks and runs %v", got)
				}
			})
		})
	}
}

// The answer to a registration is lost, and the executor registers again: the run that it goes on with is not lost.
func TestRegistersTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(true, tasks(0, 1))
		work := w.next(nil)
		for range 5 {
			lease, err := p.Register(t.Context(), executor.Registration{Executor: 0, Secret: "secret", Running: &work.Task})
			if err != nil {
				t.Fatal(err)
			}
			w.lease = lease.Lease
		}
		w.report(work)
		out := a.collect()
		if v, _ := p.View(t.Context()); len(out.Results) != 1 || out.Results[0].Failed || out.Results[0].Run != 1 ||
			v.Counters.Lost != 0 {
			t.Errorf("got %+v, %+v", out, v.Counters)
		}
	})
}

// A pool waits for as many executors as there were, however often one of them registers.
func TestWaitsForAllExecutors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Expected = 2 })
		for _, step := range []struct {
			executor int
			synced   bool
		}{{0, false}, {0, false}, {1, true}} {
			register(t, p, step.executor)
			synctest.Wait()
			if v, _ := p.View(t.Context()); v.Synced != step.synced {
				t.Errorf("after executor %d has registered, synced is %v", step.executor, v.Synced)
			}
		}
	})
}

// Results of applications that have not come back when the pool begins to decide are dropped, and counted.
func TestResultsOfNoApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Expected = 2 })
		lease, err := p.Register(t.Context(), executor.Registration{Executor: 0, Secret: "secret",
			Running: &executor.Held{Key: "a-0123456789abcdef", Run: 1}})
		if err != nil {
			t.Fatal(err)
		}
		(&worker{t, p, 0, lease.Lease}).report(executor.Work{Work: 5})
		register(t, p, 1)
		if v, _ := p.View(t.Context()); !v.Synced || v.Counters.Dropped != 1 {
			t.Errorf("the pool is %+v", v)
		}
	})
}

// An executor that drains takes no task any more, and ends when it has none.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(false, tasks(0, 2))
		work := w.next(nil)
		if err := p.Drain(t.Context(), 0, "the pool shrinks"); err != nil {
			t.Fatal(err)
		}
		if end := w.next(&work); end.Do != executor.DoEnd || end.Why != "the pool shrinks" {
			t.Errorf("got %+v", end)
		}
		if v, _ := p.View(t.Context()); len(v.Executors) != 0 || v.Applications[0].Waiting != 1 ||
			v.Applications[0].Why == "" {
			t.Errorf("the pool is %+v", v)
		}
	})
}

// Messages that come again change nothing.
func TestRepeatedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		w := register(t, p, 0)
		a := enrol(t, p, "a")
		a.grow(false, tasks(0, 2))
		a.growths--
		a.grow(false, tasks(0, 2)) // again, as if the answer had been lost
		first := w.next(nil)
		if same := w.next(nil); same != first {
			t.Errorf("asked again, got %+v, want %+v", same, first)
		}
		second := w.next(&first)
		if same := w.next(&first); same != second {
			t.Errorf("reported again, got %+v, want %+v", same, second)
		}
		out := a.collect()
		if len(out.Results) != 1 || out.Running != 1 || out.Waiting != 0 {
			t.Errorf("got %+v", out)
		}
	})
}

// Requests that wait end with the pool.
func TestCloseEndsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := begin(t, nil)
		w, a := register(t, p, 0), enrol(t, p, "a")
		began := time.Now()
		errs := make(chan error, 2)
		go func() {
			_, _, err := p.Next(t.Context(), 0, executor.Next{Lease: w.lease}, nil)
			errs <- err
		}()
		go func() {
			_, _, err := p.Collect(t.Context(), a.lease.Application, executor.Collect{Lease: a.lease.Lease})
			errs <- err
		}()
		synctest.Wait()
		p.Close()
		for range 2 {
			if err := <-errs; !errors.Is(err, drive.ErrEnded) || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
	})
}
