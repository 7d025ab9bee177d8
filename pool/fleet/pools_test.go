package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// bubble runs a test on a machine with a virtual clock.
func bubble(t *testing.T, cores int, f func(t *testing.T, m *machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, cores)
		m.open()
		defer m.stop()
		f(t, m)
	})
}

// A pool grows as soon as there are tasks, and shrinks when there have been none for a minute. Nothing of its
// executors stays.
func TestPoolFollowsItsTasks(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Min = 1 })
		m.later(time.Second)
		m.expect("kept", 1, 1)
		m.enrol(r, 6)
		m.later(500 * time.Millisecond)
		m.expect("with tasks", 3, 3)
		if d := m.detail(r); d.Wanted != 3 || d.Busy != 3 || d.Applications != 1 || len(d.Members) != 3 ||
			d.Members[0].Job == 0 || !strings.Contains(d.Why, "6 tasks") {
			t.Errorf("it is %+v", d)
		}
		m.later(10 * time.Second)
		if d := m.detail(r); d.Busy != 0 || d.Idle != 3 || d.Applications != 0 || m.collected(r) != 6 {
			t.Errorf("after the tasks it is %+v", d)
		}
		m.expect("idle", 3, 3)
		m.later(time.Minute)
		m.expect("idle for a minute", 1, 3)
		if left := secrets(t, m); len(left) != 1 {
			t.Errorf("secrets are left: %v", left)
		}
		if err := m.pools.Delete(t.Context(), ada, r); err != nil {
			t.Fatal(err)
		}
		m.expect("removed", 0, 3)
		if left := secrets(t, m); len(left) != 0 {
			t.Errorf("secrets are left: %v", left)
		}
		if left, err := os.ReadDir(m.pools.book.dir); err != nil || len(left) != 1 || left[0].Name() != "key" {
			t.Errorf("definitions are left: %v, %v", left, err)
		}
		if _, err := m.pools.Detail(t.Context(), r); api.KindOf(err) != api.NotFound {
			t.Errorf("it is still there: %v", err)
		}
		dir := m.pools.handover.dir
		m.pools.Close()
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder of secrets is left: %v", err)
		}
		m.open()
	})
}

func secrets(t *testing.T, m *machine) (names []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(m.dir, "s.pools", "*"+secretSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A wrong program is started again after 1 s, 2 s, 4 s and so on, and the pool says why.
func TestWrongProgram(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		m.runs(func(e *process) error { return errors.New("exit code 127") })
		r := m.put(ada, func(s *api.PoolSpec) { s.Max = 1 })
		m.enrol(r, 2)
		m.later(6500 * time.Millisecond)
		m.expect("three attempts: at 0, 1 and 3 s", 0, 3)
		if d := m.detail(r); !strings.Contains(d.Why,
			"executor 3 ended before it ran a task: exit code 127; `bellows logs --stderr 3` has what it printed; next "+
				"attempt at") {
			t.Errorf("why is %q", d.Why)
		}
		m.runs(nil)
		m.later(10 * time.Second)
		m.expect("once it is right", 1, 4)
	})
}

// An executor that dies with a task is replaced at once: a task may be what ends it.
func TestExecutorDiesWithTask(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		died := 0
		m.runs(func(e *process) error {
			if died++; died <= 3 {
				_, _, _ = e.pool.Next(e.ctx, e.number, executor.Next{Lease: e.lease.Lease}, nil)
				return errors.New("killed")
			}
			return e.work()
		})
		r := m.put(ada, func(s *api.PoolSpec) { s.Max = 1 })
		m.enrol(r, 1)
		m.later(3 * time.Second)
		m.expect("replaced", 1, 4)
		if d := m.detail(r); m.collected(r) != 1 || len(d.Members) != 4 || d.Members[0].State != api.ExecutorLost ||
			d.Members[0].Why != "its process ended while it ran a task: killed" {
			t.Errorf("it is %+v", d)
		}
	})
}

// A quota that has no room for all executors gets fewer; the pool says so, and tries again.
func TestQuotaHasRoomForFewer(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		m.refuse = func(n int) error {
			if n > 1 {
				return api.Errorf(api.OverQuota, "quota of waiting jobs")
			}
			return nil
		}
		r := m.put(ada, nil)
		m.enrol(r, 100)
		m.later(500 * time.Millisecond)
		m.expect("at first", 1, 1)
		if d := m.detail(r); !strings.Contains(d.Why, "a quota has room for 1 of 3") {
			t.Errorf("why is %q", d.Why)
		}
		m.later(4 * time.Second)
		m.expect("later", 3, 3)
		m.refuse = func(int) error { return api.Errorf(api.Invalid, "no such queue") }
		m.put(bob, func(s *api.PoolSpec) { s.Min = 1 })
		m.later(900 * time.Millisecond) // The next attempt is after a second.
		if all, err := m.pools.List(t.Context()); err != nil || len(all) != 2 ||
			!strings.Contains(all[1].Why, "none was launched: no such queue; next attempt at") {
			t.Errorf("the pools are %+v, %v", all, err)
		}
	})
}

// While a job of another owner waits, idle executors end at once, and then busy ones at the end of their tasks, down
// to the fair share.
func TestOthersWait(t *testing.T) {
	bubble(t, 4, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max = 2, 4 })
		m.enrol(r, 400)
		m.later(500 * time.Millisecond)
		m.expect("alone", 4, 4)
		var jobs []cluster.JobID
		for range 10 {
			jobs = append(jobs, m.submit(bob))
		}
		m.later(500 * time.Millisecond)
		if d := m.detail(r); d.Wanted != 2 || !strings.Contains(d.Why, "other owners wait") {
			t.Errorf("it is %+v", d)
		}
		m.later(3 * time.Second)
		for range 10 { // Two of four cores are ada's; others of her executors may be queued.
			if d := m.detail(r); d.Busy != 2 {
				t.Errorf("it is %+v", d)
			}
			m.later(1100 * time.Millisecond)
		}
		for _, id := range jobs {
			m.finish(id, cluster.StatusSucceeded, "")
		}
		m.later(2 * time.Second)
		if d := m.detail(r); d.Busy != 4 {
			t.Errorf("alone again: %+v", d)
		}
	})
}

// Pools of two owners who demand more than there is come to rest at half of the machine each, within seconds.
func TestTwoOwnersShare(t *testing.T) {
	bubble(t, 6, func(t *testing.T, m *machine) {
		a := m.put(ada, func(s *api.PoolSpec) { s.Max = 6 })
		m.enrol(a, 1000)
		m.later(time.Second)
		if d := m.detail(a); d.Busy != 6 {
			t.Errorf("alone: %+v", d.PoolSummary)
		}
		b := m.put(bob, func(s *api.PoolSpec) { s.Max = 6 })
		m.enrol(b, 1000)
		m.later(3 * time.Second)
		for range 10 {
			if x, y := m.detail(a), m.detail(b); x.Busy != 3 || y.Busy != 3 {
				t.Errorf("together: %d and %d busy: %s; %s", x.Busy, y.Busy, x.Why, y.Why)
			}
			m.later(1700 * time.Millisecond)
		}
		_, ever := m.count()
		m.later(time.Minute)
		if _, now := m.count(); now != ever {
			t.Errorf("%d executors were launched in a minute in which nothing changed", now-ever)
		}
	})
}

// The next daemon finds the executors, whose secrets are good, and launches none twice, also if the last one died
// after it had submitted some and before it knew.
func TestNextDaemon(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		m.runs(func(e *process) error {
			for { // An executor outlives its daemon.
				if err := e.work(); err == nil || e.ctx.Err() != nil {
					return err
				}
				time.Sleep(100 * time.Millisecond)
				_ = e.register(api.OwnerOf(ada), "p")
			}
		})
		r := m.put(ada, func(s *api.PoolSpec) { s.Min = 2 })
		m.later(time.Second)
		m.expect("at first", 2, 2)
		m.pools.Close()
		// Number 3 was stored and not submitted; number 4 was submitted, and its record is that of the next.
		all, err := m.pools.book.read(nil)
		if err != nil {
			t.Fatal(err)
		}
		all[0].Launched = 4
		if err := m.pools.book.write(all[0]); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"p executor 4", "p executor 77", "other"} {
			m.mu.Lock()
			job := jobOf(&all[0].Spec, 4)
			job.Name = name
			job.Stages[0].Env = map[string]string{executor.ExecutorVariable: "4", executor.PoolVariable: "p",
				executor.SecretVariable: m.pools.handover.secretPath(all[0].ID, 4)}
			m.add(ada, &live.Submission{Job: *job})
			m.mu.Unlock()
		}
		for _, path := range secrets(t, m) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		m.open()
		m.mu.Lock()
		m.startSome()
		m.mu.Unlock()
		m.enrol(r, 3)
		m.later(2 * time.Second)
		if d := m.detail(r); len(d.Members) != 3 || d.Members[2].Executor != 4 || d.Idle+d.Busy != 3 {
			t.Errorf("it is %+v", d)
		}
		m.enrol(r, 1)
		m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max = 4, 4 })
		m.later(time.Second)
		if d := m.detail(r); len(d.Members) != 4 || d.Members[3].Executor != 5 {
			t.Errorf("the next has number %+v", d.Members)
		}
	})
}

// Executors of a pool that is changed are replaced when their tasks have ended, and never are there more than the
// pool may have. With another policy the applications and executors begin anew.
func TestChange(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, nil)
		m.enrol(r, 100)
		m.later(time.Second)
		m.put(ada, func(s *api.PoolSpec) { s.Command = []string{"/other"} })
		for range 30 {
			m.later(100 * time.Millisecond)
			if now, _ := m.count(); now > 3 {
				t.Errorf("%d executors", now)
			}
		}
		m.expect("replaced", 3, 6)
		m.put(ada, func(s *api.PoolSpec) { s.Command, s.Idle = []string{"/other"}, time.Hour })
		m.later(3 * time.Second)
		m.expect("not replaced", 3, 6)
		m.put(ada, func(s *api.PoolSpec) { s.Command, s.Policy = []string{"/other"}, "fifo" })
		m.later(time.Second)
		m.enrol(r, 1)
		if d := m.detail(r); d.Spec.Policy != "fifo" || len(d.Enrolled) != 1 {
			t.Errorf("it is %+v", d)
		}
	})
}

// Whoever is not the owner cannot make a pool, an owner can have only some, and what the machine does not have is
// refused.
func TestPutIsRefused(t *testing.T) {
	bubble(t, 2, func(t *testing.T, m *machine) {
		s := api.PoolSpec{Name: "p", Command: []string{"/worker"}, Dir: "/", Max: 3, Memory: resource.MiB}
		if _, err := m.pools.Put(t.Context(), bob, api.OwnerOf(ada), s); api.KindOf(err) != api.NotFound {
			t.Errorf("by another user: %v", err)
		}
		s.CPU = 3 * resource.Core
		if _, err := m.pools.Put(t.Context(), ada, api.OwnerOf(ada), s); api.KindOf(err) != api.Invalid ||
			!strings.Contains(err.Error(), "cpus 3 cores: must be at most 2 cores") {
			t.Errorf("three cores of two: %v", err)
		}
		s.CPU, m.can.Files = 0, "pods share no files with the daemon"
		if _, err := m.pools.Put(t.Context(), ada, api.OwnerOf(ada), s); api.KindOf(err) != api.Invalid ||
			!strings.HasSuffix(err.Error(), ": pods share no files with the daemon") {
			t.Errorf("executors without files: %v", err)
		}
		m.can = cluster.Capabilities{}
		for i := range MostPools {
			m.put(ada, func(s *api.PoolSpec) { s.Name = fmt.Sprint("p", i) })
		}
		if _, err := m.pools.Put(t.Context(), ada, api.OwnerOf(ada), s); api.KindOf(err) != api.OverQuota ||
			!strings.Contains(err.Error(), "at most 32") {
			t.Errorf("one too many: %v", err)
		}
		m.put(bob, nil)
	})
}

// All owners together can have only some pools, too.
func TestPoolsAreBounded(t *testing.T) {
	r := api.PoolRef{User: "ada", Name: "p"}
	for _, c := range []struct {
		own, all int
		says     string
	}{{0, 0, ""}, {31, 511, ""}, {32, 32, "ada has 32 pools, and may have at most 32: remove one"},
		{0, 512, "all users together have 512 pools, and may have at most 512: try again when one was removed"}} {
		err := oneMore(r, c.own, c.all)
		if (err == nil) != (c.says == "") || err != nil &&
			(api.KindOf(err) != api.OverQuota || err.Error() != `pool "p": `+c.says) {
			t.Errorf("%d of %d: %v", c.own, c.all, err)
		}
	}
}

// All pools of an owner together have half of the executors that there may be, and those of all owners all of them.
func TestExecutorsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, 100)
		m.most = 8
		m.open()
		defer m.stop()
		first := m.put(ada, func(s *api.PoolSpec) { s.Name, s.Min, s.Max = "first", 3, 10 })
		m.later(time.Second)
		second := m.put(ada, func(s *api.PoolSpec) { s.Name, s.Min, s.Max = "second", 3, 10 })
		m.later(time.Second)
		m.expect("half of all", 4, 4)
		if d := m.detail(second); d.Executors != 1 ||
			!strings.HasSuffix(d.Why, "; all pools of its owner together may have 4 executors") {
			t.Errorf("the second pool is %+v", d)
		}
		m.put(bob, func(s *api.PoolSpec) { s.Min, s.Max = 3, 10 })
		m.later(time.Second)
		late := m.put(eve, func(s *api.PoolSpec) { s.Min, s.Max = 3, 10 })
		m.later(time.Second)
		m.expect("all", 8, 8)
		if d := m.detail(late); d.Executors != 1 ||
			!strings.HasSuffix(d.Why, "; all pools of the machine together may have 8 executors") {
			t.Errorf("the last pool is %+v", d)
		}
		if err := m.pools.Delete(t.Context(), ada, first); err != nil {
			t.Fatal(err)
		}
		m.later(time.Second)
		if d, e := m.detail(second), m.detail(late); d.Executors != 3 || e.Executors != 2 {
			t.Errorf("then the pools have %d and %d executors", d.Executors, e.Executors)
		}
	})
}

// An executor that does not answer is ended and replaced, unless its programs are stopped: then it cannot. If bellows
// has stopped them, it does not lose its lease either; if its owner has, its task runs elsewhere.
func TestExecutorDoesNotAnswer(t *testing.T) {
	for by, expired := range map[cluster.Holders]int64{cluster.HeldByMemory: 0, cluster.HeldByOwner: 1,
		cluster.HeldByMemory | cluster.HeldByOwner: 1, cluster.HeldByLeveling: 0} {
		bubble(t, 8, func(t *testing.T, m *machine) {
			suspended := func(s *api.Still) {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.jobs[1].Tasks = slices.Clone(m.jobs[1].Tasks)
				m.jobs[1].Tasks[0].Suspended = s
				m.touch(m.jobs[1])
			}
			m.runs(func(e *process) error { <-e.ctx.Done(); return e.ctx.Err() })
			r := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max = 1, 1 })
			m.later(time.Second)
			suspended(&api.Still{By: by})
			m.later(pool.DefaultLease + 5*time.Minute)
			m.expect("it is stopped", 1, 1)
			if d := m.detail(r); d.Counters.Expired != expired ||
				expired == 0 && d.Members[0].Why != "its programs are stopped: `bellows explain 1` says why" {
				t.Errorf("stopped by %v, it is %+v", by, d)
			}
			suspended(nil)
			m.runs(nil)
			m.later(max(registersWithin, pool.DefaultLease) + time.Second)
			m.expect("it was replaced", 1, 2)
			if d := m.detail(r); d.Counters.Expired != 1 {
				t.Errorf("then it is %+v", d)
			}
		})
	}
}

// The memory of a FLEX executor may have gone to others while it had nothing to do, and is fetched back when it has:
// once for many tasks, and not for tasks that follow at once.
func TestMemoryIsFetchedBack(t *testing.T) {
	for class, want := range map[cluster.Class]int{cluster.Flex: 2, cluster.Regular: 0} {
		bubble(t, 8, func(t *testing.T, m *machine) {
			r := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max, s.Class = 1, 1, class })
			for _, rest := range []time.Duration{2 * pool.RestFor, pool.RestFor / 2, time.Minute} {
				m.later(rest)
				m.enrol(r, 3)
				m.later(3*m.taskFor + time.Millisecond)
			}
			if n := m.collected(r); n != 9 {
				t.Errorf("%d results", n)
			}
			container := cluster.ContainerID{Task: cluster.TaskID{Job: 1}, Run: 1}
			if len(m.fetched) != want || want > 0 && !slices.Equal(m.fetched, []cluster.ContainerID{container, container}) {
				t.Errorf("%s: fetched back is the memory of %v", class, m.fetched)
			}
		})
	}
}

// Executors that are too large after a task are replaced.
func TestRecycle(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Max, s.Class, s.Recycle = 1, cluster.Flex, resource.KiB })
		m.enrol(r, 3)
		m.later(10 * time.Second)
		if n := m.collected(r); n != 3 {
			t.Errorf("%d results", n)
		}
		if _, ever := m.count(); ever < 2 { // One may be running its next task when that is noticed.
			t.Errorf("%d executors ran 3 tasks", ever)
		}
	})
}

// What counts is the memory of all processes of an executor, also while it serves an application for long: it is
// replaced when that gives it back. An executor that has run nothing is not replaced, whatever it has.
func TestRecycleByAllProcesses(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		m.uses = 2 << 20
		r := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max, s.Class, s.Recycle = 1, 1, cluster.Flex, resource.MiB })
		m.later(3 * measureEvery)
		if n, ever := m.count(); n != 1 || ever != 1 {
			t.Errorf("before it has run anything, there are %d executors of %d", n, ever)
		}
		m.enrol(r, 1)
		m.later(2 * time.Second)
		if _, ever := m.count(); ever != 1 {
			t.Errorf("%d executors after a task, although nothing was measured since", ever)
		}
		m.later(measureEvery)
		if n, ever := m.count(); n != 1 || ever != 2 {
			t.Errorf("there are %d executors of %d, want another", n, ever)
		}
	})
}

// An application gets an executor of class FLEX whose memory is there rather than one that must be read from swap.
func TestExecutorsInMemoryFirst(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		m.uses, m.swapped = 2<<20, map[cluster.JobID]bool{}
		r := m.put(ada, func(s *api.PoolSpec) { s.Min, s.Max, s.Class = 3, 3, cluster.Flex })
		m.later(time.Second)
		all := m.detail(r).Members
		before := map[int]int64{}
		next := func(out int) int { // runs a task while the memory of one executor is in swap
			m.mu.Lock()
			for i, e := range all {
				m.swapped[e.Job] = i == out
			}
			m.mu.Unlock()
			m.later(measureEvery)
			m.enrol(r, 1)
			m.later(2 * time.Second)
			now := m.detail(r).Members
			ran := slices.IndexFunc(now, func(e api.PoolExecutor) bool { return e.Tasks > before[e.Executor] })
			before[now[ran].Executor]++
			return ran
		}
		first := next(-1)
		if second := next(first); second == first {
			t.Errorf("a task runs on executor %d, whose memory is in swap", all[first].Executor)
		}
		if third := next(-1); third != first {
			t.Errorf("without memory in swap, tasks run on executors %d and %d", all[first].Executor, all[third].Executor)
		}
	})
}

// Before the daemon ends, executors end that run nothing. Applications and jobs are in its way.
func TestRetire(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Min = 2 })
		m.enrol(r, 20)
		m.later(time.Second)
		if _, err := m.pools.Retire(t.Context(), false); api.KindOf(err) != api.Conflict ||
			!strings.Contains(err.Error(), "applications that have not ended") {
			t.Errorf("with an application: %v", err)
		}
		m.later(20 * time.Second)
		job := m.submit(ada)
		m.later(time.Second)
		if _, err := m.pools.Retire(t.Context(), false); err != nil {
			t.Errorf("with a job: %v", err)
		}
		m.expect("the driver will refuse", 3, 3)
		m.finish(job, cluster.StatusSucceeded, "")
		m.later(time.Second)
		resume, err := m.pools.Retire(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		m.expect("retired", 0, 3)
		m.later(time.Minute)
		m.expect("none comes back", 0, 3)
		resume()
		m.later(time.Second)
		m.expect("resumed", 2, 5)
	})
}

// A removed pool is gone for its executors at once, and for good if the daemon dies meanwhile. Until its executors
// have ended there can be none of its name.
func TestDeleteIsInterrupted(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		stuck := make(chan struct{})
		m.runs(func(e *process) error { <-stuck; return nil })
		r := m.put(ada, func(s *api.PoolSpec) { s.Min = 1 })
		m.later(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.pools.Delete(ctx, ada, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if _, err := m.pools.Handler(r); api.KindOf(err) != api.NotFound {
			t.Errorf("the pool answers: %v", err)
		}
		if _, err := m.pools.Put(t.Context(), ada, api.OwnerOf(ada), m.detail(r).Spec); api.KindOf(err) != api.Conflict {
			t.Errorf("it is made again: %v", err)
		}
		m.pools.Close()
		m.open()
		close(stuck)
		m.later(time.Second)
		m.expect("by the next daemon", 0, 1)
		if all, err := m.pools.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("the pools are %v, %v", all, err)
		}
	})
}

// While nothing can be stored no executor is launched, and the pool says why. Afterwards no number is used twice.
func TestNothingCanBeStored(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Max = 1 })
		m.pools.mu.Lock()
		dir := m.pools.book.dir
		m.pools.book.dir = filepath.Join(dir, "missing")
		m.pools.mu.Unlock()
		m.enrol(r, 1)
		m.later(500 * time.Millisecond)
		m.expect("nothing can be stored", 0, 0)
		if d := m.detail(r); !strings.Contains(d.Why, `none was launched: store pool "p": `) {
			t.Errorf("why is %q", d.Why)
		}
		if err := m.pools.Delete(t.Context(), ada, r); err == nil {
			t.Error("it is removed")
		}
		m.pools.mu.Lock()
		m.pools.book.dir = dir
		m.pools.mu.Unlock()
		m.later(2 * time.Second)
		m.expect("something can be stored again", 1, 1)
	})
}

// Launches that fail are tried ever less often, although an executor of before works. One that was launched since is
// a sign that all is well.
func TestFailedLaunchesBesideOneThatWorks(t *testing.T) {
	bubble(t, 8, func(t *testing.T, m *machine) {
		r := m.put(ada, func(s *api.PoolSpec) { s.Min = 1 })
		m.later(time.Second)
		tries := 0
		refuse := func(f func(int) error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.refuse = f
		}
		refuse(func(int) error { tries++; return errors.New("the disk is full") })
		m.enrol(r, 150)
		m.later(30 * time.Second) // tries after 0, 1, 3, 7 and 15 s
		m.expect("while none is accepted", 1, 1)
		if d := m.detail(r); tries > 5 || !strings.Contains(d.Why, "none was launched: the disk is full") {
			t.Errorf("%d tries, why is %q", tries, d.Why)
		}
		refuse(nil)
		m.later(5 * time.Second)
		m.expect("they are accepted again", 3, 3)
		tries = 0
		refuse(func(int) error { tries++; return errors.New("the disk is full") })
		m.finish(3, cluster.StatusFailed, "killed")
		m.later(4 * time.Second) // tries after 0, 1 and 3 s, as if none had failed before
		if tries != 3 {
			t.Errorf("%d tries", tries)
		}
	})
}

// Why an executor has ended: what bellows or a user has ended is not the fault of what ran there, whatever its programs
// lacked before.
func TestCauseOfEnd(t *testing.T) {
	ended := func(o cluster.Outcome, kills int64) api.Task {
		return api.Task{Outcome: o, Exit: &cluster.Exit{OOMKills: kills}}
	}
	for _, c := range []struct {
		name    string
		ordered string
		job     api.Job
		want    executor.Cause
	}{
		{"it crashed", "", api.Job{Status: cluster.StatusFailed, Tasks: []api.Task{ended(cluster.Failed, 0)}},
			executor.CauseLost},
		{"its machine has gone", "", api.Job{Status: cluster.StatusFailed, Tasks: []api.Task{{Outcome: cluster.Lost}}},
			executor.CauseLost},
		{"it ended by itself", "", api.Job{Status: cluster.StatusSucceeded}, executor.CauseLost},
		{"the kernel killed it", "", api.Job{Status: cluster.StatusFailed, Tasks: []api.Task{ended(cluster.OutOfMemory, 1)}},
			executor.CauseMemory},
		{"a child of it was killed, so it ended", "",
			api.Job{Status: cluster.StatusFailed, Tasks: []api.Task{ended(cluster.Failed, 1)}}, executor.CauseMemory},
		{"a child of it was killed, and the pool shrank", "no task needs it",
			api.Job{Status: cluster.StatusSucceeded, Tasks: []api.Task{ended(cluster.Succeeded, 1)}}, executor.CauseTaken},
		{"a user cancelled it", "", api.Job{Status: cluster.StatusCancelled, Tasks: []api.Task{ended(cluster.Killed, 0)}},
			executor.CauseTaken},
		{"the pool shrank", "others wait",
			api.Job{Status: cluster.StatusCancelled, Tasks: []api.Task{ended(cluster.Killed, 0)}}, executor.CauseTaken},
	} {
		if got := (&launched{ordered: c.ordered}).cause(&c.job); got != c.want {
			t.Errorf("%s: the cause is %s, want %s", c.name, got, c.want)
		}
	}
}
