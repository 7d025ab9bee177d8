package pool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// attachable is an executor in a test that serves applications which start their own tasks.
type attachable struct {
	worker
	knows executor.Next
}

func registerAttachable(t *testing.T, p *pool.Pool, number int, running *executor.Held) *attachable {
	t.Helper()
	lease, err := p.Register(t.Context(), executor.Registration{Executor: number, Secret: "secret", Language: "go",
		Attaches: true, Running: running})
	if err != nil {
		t.Fatal(err)
	}
	return &attachable{worker: worker{t, p, number, lease.Lease}}
}

// hear returns what the pool tells the executor at once, and what follows it.
func (x *attachable) hear() (executor.Work, string) {
	x.t.Helper()
	x.knows.Lease = x.lease
	began := time.Now()
	work, payload, err := x.pool.Next(x.t.Context(), x.number, x.knows, nil)
	if err != nil || time.Since(began) > 0 {
		x.t.Fatalf("executor %d hears %+v after %v: %v", x.number, work, time.Since(began), err)
	}
	return work, string(payload)
}

// is fails the test unless the pool tells the executor what is wanted.
func (x *attachable) is(want string, attachment int64) {
	x.t.Helper()
	if got, _ := x.hear(); got.Do != want || got.Work != attachment {
		x.t.Fatalf("executor %d is told %+v, want %s %d", x.number, got, want, attachment)
	}
}

func enrolDriver(t *testing.T, p *pool.Pool, name string) *client {
	t.Helper()
	lease, err := p.Enrol(t.Context(), executor.Enrolment{Key: keyOf(name), Name: name, Drives: true, Attempts: 2},
		[]byte("to "+name))
	if err != nil {
		t.Fatal(err)
	}
	return &client{t: t, pool: p, lease: lease}
}

func keyOf(name string) string { return name + "-0123456789abcdef" }

// say sends a growth of an application that drives.
func (c *client) say(g executor.Growth) {
	c.t.Helper()
	c.growths++
	g.Lease, g.Number = c.lease.Lease, c.growths
	if _, err := c.pool.Grow(c.t.Context(), c.lease.Application, g, nil); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) demands(stage, tasks int) {
	c.t.Helper()
	s := executor.StageGrowth{Stage: stage, Demand: tasks}
	if c.growths == 0 {
		s.Function = "f"
	}
	c.say(executor.Growth{Stages: []executor.StageGrowth{s}})
}

// changes returns what happens at once, and confirms it.
func (c *client) changes() (all []executor.Change) {
	c.t.Helper()
	began := time.Now()
	out := c.collect()
	if len(out.Changes) > 0 && time.Since(began) > 0 {
		c.t.Fatalf("changes come after %v", time.Since(began))
	}
	for _, x := range out.Changes {
		if x.Number != c.after+1 {
			c.t.Fatalf("change %d follows %d", x.Number, c.after)
		}
		c.after = x.Number
	}
	return out.Changes
}

// hears fails the test unless the changes are those, each with its executor.
func (c *client) hears(want ...string) (all []executor.Change) {
	c.t.Helper()
	all = c.changes()
	var got []string
	for _, x := range all {
		got = append(got, fmt.Sprintf("%s %d", x.What, x.Executor))
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		c.t.Fatalf("the application hears %q, want %q", got, want)
	}
	return all
}

// Executors move between two applications that start their own tasks, as their shares say: nobody waits for a poll.
// An executor keeps what it has of an application until that has ended.
func TestAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		x0, x1 := registerAttachable(t, p, 0, nil), registerAttachable(t, p, 1, nil)
		a := enrolDriver(t, p, "a")
		a.demands(0, 5)
		held := a.hears("assigned 0", "assigned 1")
		work, payload := x1.hear()
		if work.Do != executor.DoAttach || payload != "to a" || work.Function != "f" || work.Task.Attachment != work.Work ||
			work.Work != held[1].Attachment.Attachment {
			t.Fatalf("executor 1 is told %+v with %q", work, payload)
		}
		x0.is(executor.DoAttach, held[0].Attachment.Attachment)
		x0.is(executor.DoAttach, held[0].Attachment.Attachment) // The answer was lost.
		x0.knows.Attached, x1.knows.Attached = held[0].Attachment.Attachment, held[1].Attachment.Attachment

		b := enrolDriver(t, p, "b")
		b.demands(0, 1)
		a.hears("asked 1")
		x1.is(executor.DoRelease, x1.knows.Attached)
		x1.knows.Released = true
		if v, err := p.View(t.Context()); err != nil || v.Applications[0].Demand != 5 || v.Applications[0].Asked != 1 ||
			v.Applications[0].Executors != 2 ||
			v.Executors[1].State != api.ExecutorAttached ||
			!strings.Contains(v.Executors[1].Why, "asked back: the application holds 2 executors and is entitled to 1 of 2") {
			t.Fatalf("%+v, %v", v, err)
		}
		a.say(executor.Growth{GivesBack: []int64{x1.knows.Attached, x1.knows.Attached, 7}})
		a.hears("ended 1")
		toB := b.hears("assigned 1")[0].Attachment.Attachment
		if work, payload := x1.hear(); work.Do != executor.DoAttach || work.Work != toB || payload != "to b" {
			t.Fatalf("executor 1 is told %+v with %q", work, payload)
		}
		x1.knows = executor.Next{Attached: toB, Keeps: []string{keyOf("a")}}

		// B has no task any more; the executor says so. A still demands it.
		b.demands(0, 0)
		b.hears("asked 1")
		x1.is(executor.DoRelease, toB)
		x1.knows = executor.Next{Lease: x1.lease, Done: &executor.Report{Work: toB}, Keeps: []string{keyOf("a"), keyOf("b")}}
		if work, _, err := p.Next(t.Context(), 1, x1.knows, nil); err != nil || work.Do != executor.DoAttach ||
			work.Name != "a" {
			t.Fatalf("executor 1 is told %+v, %v", work, err)
		}
		b.hears("ended 1")
		x1.knows.Done, x1.knows.Attached = nil, a.hears("assigned 1")[0].Attachment.Attachment
		b.say(executor.Growth{Closed: true})
		if out := b.collect(); !out.Ended || out.Why != "" {
			t.Fatalf("%+v", out)
		}
		if work, _ := x1.hear(); work.Do != executor.DoForget || work.Task.Key != keyOf("b") {
			t.Fatalf("executor 1 is told %+v", work)
		}
		x1.knows.Keeps = nil
		a.say(executor.Growth{Closed: true})
		a.hears("asked 1", "asked 0")
		a.say(executor.Growth{GivesBack: []int64{x0.knows.Attached, x1.knows.Attached}})
		a.hears("ended 0", "ended 1")
		x1.is(executor.DoPark, x1.knows.Attached)
		if out := a.collect(); !out.Ended || out.Why != "" {
			t.Fatalf("%+v", out)
		}
	})
}

// Whoever drives and dies loses its executors when its lease ends: they are told to leave it, and ended if they do not.
func TestDriverDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan int, 2)
		p := start(t, func(c *pool.Config) { c.End = func(number int, _ string) { ended <- number } })
		a := enrolDriver(t, p, "a")
		x0, x1 := registerAttachable(t, p, 0, nil), registerAttachable(t, p, 1, nil)
		a.demands(0, 2)
		held := a.hears("assigned 0", "assigned 1")
		x0.is(executor.DoAttach, held[0].Attachment.Attachment)
		x1.is(executor.DoAttach, held[1].Attachment.Attachment)
		x0.knows.Attached, x1.knows.Attached = held[0].Attachment.Attachment, held[1].Attachment.Attachment
		for range 4 { // until the lease of a has ended
			for _, x := range []*attachable{x0, x1} {
				x.knows.Lease = x.lease
				if work, _, err := p.Next(t.Context(), x.number, x.knows, nil); err != nil || work.Do != executor.DoWait {
					if work.Do != executor.DoPark || work.Work != x.knows.Attached {
						t.Fatalf("executor %d is told %+v, %v", x.number, work, err)
					}
				}
			}
		}
		v, err := p.View(t.Context())
		if len(v.Applications) != 1 || v.Applications[0].State != "cancelled" || v.Applications[0].Executors != 0 ||
			!strings.HasPrefix(v.Applications[0].Why, "its program was not heard of for 1m0s") {
			t.Errorf("people see %+v, %v", v.Applications, err)
		}
		x0.knows.Attached, x0.knows.Done = 0, &executor.Report{Work: x0.knows.Attached}
		b := enrol(t, p, "b")
		b.grow(true, tasks(0, 1))
		x0.knows.Lease = x0.lease
		if work, _, err := p.Next(t.Context(), 0, x0.knows, nil); err != nil || work.Do != executor.DoRun {
			t.Errorf("executor 0 is told %+v, %v", work, err)
		}
		time.Sleep(pool.DefaultPatience)
		if n := <-ended; n != 1 {
			t.Errorf("executor %d is ended, want 1", n)
		}
	})
}

// An executor whose programs bellows has stopped keeps its lease and what it serves, for however long; the lease ends
// as ever once they run again. One that is to end its task meanwhile has its time for that afterwards.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan int, 2)
		p := start(t, func(c *pool.Config) { c.End = func(number int, _ string) { ended <- number } })
		a := enrolDriver(t, p, "a")
		go a.listens(time.Hour) // which keeps its lease
		x := registerAttachable(t, p, 0, nil)
		a.demands(0, 1)
		time.Sleep(time.Millisecond)
		work, _ := x.hear()
		x.knows.Attached = work.Work
		still := func(is bool) {
			t.Helper()
			if err := p.Still(t.Context(), 0, is); err != nil {
				t.Fatal(err)
			}
		}
		members := func(want int, expired int64) {
			t.Helper()
			v, err := p.View(t.Context())
			if n := len(v.Executors); err != nil || n != 1 || v.Counters.Expired != expired || len(ended) != want {
				t.Errorf("%d executors are ended, the pool has %+v, %v", len(ended), v, err)
			}
		}
		still(true)
		time.Sleep(10 * time.Minute)
		members(0, 0)
		if err := p.Cancel(t.Context(), a.lease.Application, "it is late"); err != nil {
			t.Fatal(err)
		}
		if v, _ := p.View(t.Context()); v.Executors[0].Why != "its application was cancelled: it is late" {
			t.Errorf("people see %+v", v.Executors[0])
		}
		time.Sleep(time.Minute)
		members(0, 0)
		still(false)
		time.Sleep(pool.DefaultPatience - time.Second)
		members(0, 0)
		time.Sleep(2 * time.Second)
		members(1, 0)
		time.Sleep(time.Minute) // the lease
		members(2, 1)
	})
}

// An executor whose programs bellows has stopped gets nothing new: others have it at once. What it serves it keeps.
func TestStillGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Lease = time.Hour })
		still := func(is bool) {
			t.Helper()
			if err := p.Still(t.Context(), 0, is); err != nil {
				t.Fatal(err)
			}
		}
		x0 := registerAttachable(t, p, 0, nil)
		registerAttachable(t, p, 1, nil)
		a := enrolDriver(t, p, "a")
		still(true)
		a.demands(0, 1)
		a.hears("assigned 1")
		a.demands(0, 2)
		a.hears()
		still(false)
		held := a.hears("assigned 0")[0].Attachment.Attachment
		x0.is(executor.DoAttach, held)
		x0.knows.Attached = held
		still(true)
		a.hears()
		a.say(executor.Growth{GivesBack: []int64{held}})
		a.hears("ended 0")
		a.hears()
		still(false)
		a.hears("assigned 0")
	})
}

// An application to which executors cannot be attached is cancelled, and says why: executors that run tasks alone,
// and those that fail.
func TestAttachFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		old := register(t, p, 0)
		a := enrolDriver(t, p, "a")
		a.demands(0, 1)
		time.Sleep(7 * time.Second)
		if out := a.collect(); !out.Ended || len(out.Changes) != 14 || !out.Changes[13].Failed ||
			!strings.Contains(out.Why, "7 attachments of executors in a row have failed, in 6.3s and on 1 of the executors; "+
				"the last: executor 0 cannot be attached") {
			t.Errorf("%+v", out)
		}
		enrol(t, p, "c").grow(true, tasks(0, 1))
		if work := old.next(nil); work.Do != executor.DoRun {
			t.Errorf("after that, the executor is told %+v", work)
		} else {
			old.report(work)
		}
		b := enrolDriver(t, p, "b")
		x := registerAttachable(t, p, 0, nil)
		b.demands(0, 1)
		if all := x.fails(8*time.Second, "no route"); len(all) != 7 {
			t.Errorf("it fails at %v", all)
		}
		if out := b.collect(); !strings.HasSuffix(out.Why, "the last: no route") {
			t.Errorf("%+v", out)
		}
	})
}

// An application that was killed hears nothing, and the function of its executor returns at once: that ends, until
// the application is heard of.
func TestDriverHearsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		x := registerAttachable(t, p, 0, nil)
		a := enrolDriver(t, p, "a")
		a.demands(0, 1)
		x.knows.Lease = x.lease
		attached := 0
		serves := func() {
			for ctx, cancel := context.WithTimeout(t.Context(), time.Second); ; attached++ {
				work, _, err := p.Next(ctx, 0, x.knows, nil)
				if err != nil {
					cancel()
					return
				}
				x.knows.Done = &executor.Report{Work: work.Work}
			}
		}
		serves()
		v, err := p.View(t.Context())
		if want := "it is not attached yet: the application has to confirm the ends of 64 attachments first"; err != nil ||
			attached != 64 || v.Executors[0].Why != want {
			t.Errorf("after %d attachments, %v: %+v, want %s", attached, err, v.Executors[0], want)
		}
		if n := len(a.changes()); n != 2*64+1 {
			t.Errorf("it hears %d changes", n)
		}
		a.collect() // which confirms
		if serves(); attached != 2*64 {
			t.Errorf("then %d attachments", attached)
		}
	})
}

// An application that confirms no changes is cancelled before they fill the memory, also by a growth that demands more.
func TestDriverConfirmsNothing(t *testing.T) {
	for name, more := range map[string][]executor.StageGrowth{"gives back": nil, "and demands more": {{Demand: 1}}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, nil)
				registerAttachable(t, p, 0, nil)
				a := enrolDriver(t, p, "a")
				a.demands(0, 1)
				out := a.collect()
				for ; !out.Ended; out = a.collect() {
					a.say(executor.Growth{GivesBack: []int64{out.Changes[len(out.Changes)-1].Attachment.Attachment}, Stages: more})
				}
				if more == nil && (len(out.Changes) != pool.MostChanges ||
					!strings.HasPrefix(out.Why, fmt.Sprintf("it has not confirmed %d changes", pool.MostChanges))) {
					t.Errorf("after %d changes: %q", len(out.Changes), out.Why)
				}
				if v, err := p.View(t.Context()); err != nil || v.Broken != "" {
					t.Errorf("%s, %v", v.Broken, err)
				}
			})
		})
	}
}

// A policy that asks for nothing back refuses applications that start their own tasks.
func TestOtherPoliciesRefuseDrivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fifo, err := policy.New("fifo", nil)
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, func(c *pool.Config) { c.Policy = fifo })
		_, err = p.Enrol(t.Context(), executor.Enrolment{Key: keyOf("a"), Name: "a", Drives: true}, nil)
		if want := `job "a" starts its own tasks: policy fifo asks for no executor back`; !errors.Is(err,
			pool.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// After the daemon was started again, what both an executor and its application say goes on, under its number. Of all
// else the application hears that it has ended, and the executor that it is to leave it.
func TestAttachmentsSurvive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Expected, c.Lease, c.Poll = 5, time.Minute, time.Minute })
		running := func(name string, n int64) *executor.Held {
			return &executor.Held{Key: keyOf(name), Stage: 0, Run: 1, Attachment: n}
		}
		// 0 and 1 are known to both, before and after the application has enrolled; 2 to the executor alone, 3 to the
		// application alone, and 4 belongs to an application that does not come back.
		registerAttachable(t, p, 0, running("a", 100))
		x2, x4 := registerAttachable(t, p, 2, running("a", 102)), registerAttachable(t, p, 4, running("b", 104))
		a := enrolDriver(t, p, "a")
		a.say(executor.Growth{Stages: []executor.StageGrowth{{Function: "f", Demand: 3}},
			Holds: []executor.Attachment{{Attachment: 100}, {Attachment: 101, Executor: 1}, {Attachment: 103, Executor: 3}}})
		x1 := registerAttachable(t, p, 1, running("a", 101))
		a.hears("assigned 0", "assigned 1")
		x2.knows.Attached, x4.knows.Attached = 102, 104
		time.Sleep(pool.DefaultGrace)
		synctest.Wait()
		if got := a.hears("ended 3", "assigned 2"); got[0].Attachment.Attachment != 103 ||
			got[0].Cause != executor.CauseLost || got[1].Attachment.Attachment == 102 {
			t.Errorf("%+v", got)
		}
		if work, _ := x2.hear(); work.Do != executor.DoAttach || work.Work == 102 {
			t.Errorf("executor 2 is told %+v", work)
		}
		x4.is(executor.DoPark, 104)
		// The answer of x1 to its registration was lost: it is the same executor.
		again := registerAttachable(t, p, 1, running("a", 101))
		x1.lease = again.lease
		a.say(executor.Growth{GivesBack: []int64{101}})
		a.hears("ended 1", "assigned 1")
	})
}

// A driver finds the next daemon some time after all executors have: they serve on, and keep what they have of it.
func TestDriverComesBackLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, func(c *pool.Config) { c.Expected, c.Lease, c.Poll = 2, time.Minute, time.Second })
		x0 := registerAttachable(t, p, 0, &executor.Held{Key: keyOf("a"), Run: 1, Attachment: 100})
		x1 := registerAttachable(t, p, 1, nil)
		x0.knows.Attached, x1.knows.Keeps = 100, []string{keyOf("a"), keyOf("gone")}
		for _, x := range []*attachable{x0, x1} {
			x.knows.Lease = x.lease
			if work, _, err := p.Next(t.Context(), x.number, x.knows, nil); err != nil || work.Do != executor.DoWait {
				t.Errorf("before the driver has enrolled, executor %d is told %+v: %v", x.number, work, err)
			}
		}
		a := enrolDriver(t, p, "a")
		a.say(executor.Growth{Stages: []executor.StageGrowth{{Function: "f", Demand: 1}},
			Holds: []executor.Attachment{{Attachment: 100}}})
		a.hears("assigned 0")
		time.Sleep(pool.DefaultGrace)
		work, _, err := p.Next(t.Context(), 1, x1.knows, nil)
		if err != nil || work.Do != executor.DoForget || work.Task.Key != keyOf("gone") {
			t.Errorf("an application does not come back: executor 1 is told %+v: %v", work, err)
		}
	})
}

// An executor that is to end is asked for, and ends when its application has given it back.
func TestAttachedExecutorDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, nil)
		x := registerAttachable(t, p, 0, nil)
		a := enrolDriver(t, p, "a")
		a.demands(0, 1)
		held := a.hears("assigned 0")[0].Attachment.Attachment
		x.is(executor.DoAttach, held)
		x.knows.Attached = held
		if err := p.Drain(t.Context(), 0, "others wait"); err != nil {
			t.Fatal(err)
		}
		if got := a.hears("asked 0"); got[0].Why != "others wait" {
			t.Errorf("%+v", got)
		}
		x.is(executor.DoRelease, held)
		x.knows.Released = true
		a.say(executor.Growth{GivesBack: []int64{held}})
		a.hears("ended 0")
		x.is(executor.DoEnd, 0)
		if v, err := p.View(t.Context()); err != nil || len(v.Executors) != 0 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// An application hears why an attachment has ended that it did not give back, so that it can tell what is its own
// fault from what is not.
func TestCauses(t *testing.T) {
	report := func(r executor.Report) func(x *attachable, a *client) {
		return func(x *attachable, _ *client) {
			x.knows.Lease, x.knows.Done = x.lease, &r
			r.Work = x.knows.Attached
			ctx, cancel := context.WithTimeout(x.t.Context(), time.Millisecond)
			defer cancel()
			_, _, _ = x.pool.Next(ctx, x.number, x.knows, nil)
		}
	}
	left := func(cause executor.Cause) func(x *attachable, _ *client) {
		return func(x *attachable, _ *client) {
			if _, err := x.pool.Left(x.t.Context(), x.number, cause, ""); err != nil {
				x.t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		name    string
		happens func(x *attachable, a *client)
		want    executor.Cause
	}{
		{"it gives it back", func(x *attachable, a *client) {
			a.say(executor.Growth{GivesBack: []int64{x.knows.Attached}})
		}, ""},
		{"the executor leaves it", report(executor.Report{Cause: executor.CauseRefused}), ""},
		{"the executor fails", report(executor.Report{Failed: true}), executor.CauseFailed},
		{"the executor says nonsense", report(executor.Report{Failed: true, Cause: "x"}), executor.CauseFailed},
		{"the executor cannot reach it", report(executor.Report{Failed: true, Cause: executor.CauseUnreachable}),
			executor.CauseUnreachable},
		{"the executor refuses it", report(executor.Report{Failed: true, Cause: executor.CauseRefused}),
			executor.CauseRefused},
		{"the process ends", left(executor.CauseLost), executor.CauseLost},
		{"the process ends for memory", left(executor.CauseMemory), executor.CauseMemory},
		{"the executor begins anew", func(x *attachable, _ *client) {
			registerAttachable(x.t, x.pool, x.number, nil)
		}, executor.CauseLost},
		{"nothing is heard of the executor", func(x *attachable, a *client) {
			time.Sleep(40 * time.Second) // of a minute
			a.demands(0, 1)
			time.Sleep(21 * time.Second)
		}, executor.CauseLease},
		{"it is cancelled", func(x *attachable, a *client) {
			if err := x.pool.Cancel(x.t.Context(), a.lease.Application, "enough"); err != nil {
				x.t.Fatal(err)
			}
			x.is(executor.DoPark, x.knows.Attached)
			report(executor.Report{Failed: true, Error: "cancelled"})(x, a)
		}, executor.CauseTaken},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, nil)
				x, a := registerAttachable(t, p, 0, nil), enrolDriver(t, p, "a")
				a.demands(0, 1)
				held := a.hears("assigned 0")[0].Attachment.Attachment
				x.is(executor.DoAttach, held)
				x.knows.Attached = held
				c.happens(x, a)
				synctest.Wait()
				all := a.collect().Changes
				if len(all) == 0 || all[0].What != executor.Ended || all[0].Cause != c.want {
					t.Errorf("it hears %+v, want the cause %q", all, c.want)
				}
			})
		})
	}
	t.Run("it is asked for before the executor knows", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := start(t, nil)
			registerAttachable(t, p, 0, nil)
			a := enrolDriver(t, p, "a")
			a.demands(0, 1)
			a.hears("assigned 0")
			a.demands(0, 0)
			if got := a.hears("ended 0")[0].Cause; got != executor.CauseTaken {
				t.Errorf("the cause is %q", got)
			}
		})
	})
}
