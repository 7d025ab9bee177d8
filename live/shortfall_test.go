package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/profile"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/learn"
)

// learner is a job of tasks whose reservation is learned, with a limit (0: the node).
func learner(tasks int, limit resource.Amount) Submission {
	s := submission(tasks)
	s.Job.Class, s.Job.Reserve, s.Job.MaxAttempts, s.Job.RetryDelay = cluster.Flex, cluster.ReserveLearned, 9, time.Second
	stage := &s.Job.Stages[0]
	stage.Ideal[resource.Memory], stage.MaxMemory = limit, 0
	return s
}

// The next attempt of a task that ended for want of memory reserves at least twice what it held, up to its limit, also
// if it ended while no daemon ran. It says why. So do the tasks of its stage that have not started.
func TestRetriesReserveMore(t *testing.T) {
	for _, daemon := range []string{"stays", "is away"} {
		t.Run(daemon, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fifo(t))
				defer func() { r.end() }()
				id := r.submit(learner(1, 300*resource.MiB))
				want := func(memory resource.Amount, why string) cluster.Order {
					t.Helper()
					o := r.order(cluster.Start)
					j := r.job(id)
					if task := &j.Tasks[0]; o.Grant[resource.Memory] != memory || !strings.Contains(task.Why, why) ||
						cluster.WhyMoreMemory(task.Why) != why {
						t.Errorf("run %d has %v, because %q; want %s, %q", o.Container.Run, o.Grant, task.Why,
							resource.FormatMemory(memory), why)
					}
					r.fake.launched(o)
					synctest.Wait()
					return o
				}
				fails := func(o cluster.Order, held resource.Amount) {
					t.Helper()
					if daemon == "stays" {
						r.fake.fellShort(o.Container, held)
						synctest.Wait()
						return
					}
					if err := r.Driver.Close(); err != nil {
						t.Fatal(err)
					}
					r.fake = newFake(cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run,
						Outcome: cluster.OutOfMemory, Exit: &cluster.Exit{Code: 137, Held: held, Started: 1, Ended: 2}})
					r.start(fifo(t))
					synctest.Wait()
				}
				fails(want(64*resource.MiB, ""), 80*resource.MiB)
				if s := r.job(id).Stages[0]; s.Ideal[resource.Memory] != 160*resource.MiB || s.Reserved.Short != 80*resource.MiB {
					t.Errorf("the next attempt reserves %+v", s)
				}
				fails(want(160*resource.MiB, "attempt 2 reserves 160MiB: attempt 1 ended for want of memory with 80MiB"),
					170*resource.MiB)
				fails(want(300*resource.MiB, "attempt 3 reserves 300MiB: attempt 2 ended for want of memory with 170MiB"),
					300*resource.MiB)
				o := want(300*resource.MiB, "") // more cannot be had
				r.fake.ended(o.Container, cluster.Succeeded, 0)
				j := r.wait(id)
				if j.Status != cluster.StatusSucceeded {
					t.Errorf("the job %s: %s", j.Status, j.Detail)
				}
				for _, task := range j.Runs() {
					if task.UnderSized {
						t.Errorf("run %d is under-sized with its reservation", task.Run)
					}
				}
			})
		})
	}
}

// A task that was ended to give its room to others reserves what it held when it starts again.
func TestRequeuedTasksReserveWhatTheyHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		o := r.start1(learner(1, 300*resource.MiB))
		for _, c := range []struct{ held, want resource.Amount }{{200 * resource.MiB, 200 * resource.MiB},
			{100 * resource.MiB, 200 * resource.MiB}, {400 * resource.MiB, 300 * resource.MiB}} {
			r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run,
				Outcome: cluster.Preempted, Exit: &cluster.Exit{Code: 143, Held: c.held, Started: 1, Ended: 2}}
			synctest.Wait()
			if o = r.order(cluster.Start); o.Grant[resource.Memory] != c.want {
				t.Errorf("after it held %s, it is granted %v", resource.FormatMemory(c.held), o.Grant)
			}
			r.fake.launched(o)
			synctest.Wait()
		}
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(o.Task.Job)
	})
}

// A box that is stated stays as it is, and so does what is reserved of other stages.
func TestStatedBoxesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.MaxAttempts = 2
		id := r.submit(s)
		for range 2 {
			o := r.order(cluster.Start)
			if o.Grant[resource.Memory] != 400*resource.MiB {
				t.Errorf("granted %v", o.Grant)
			}
			r.fake.launched(o)
			r.fake.fellShort(o.Container, 400*resource.MiB)
			synctest.Wait()
		}
		if j := r.wait(id); j.Status != cluster.StatusFailed || j.Tasks[0].Run != 2 {
			t.Errorf("%+v", j)
		}
	})
}

// What a retry reserves can be had: neither more than the node has, nor more than a quota of its owner allows.
func TestRetriesReserveWhatCanBeHad(t *testing.T) {
	for name, quota := range map[string]resource.Amount{"node": 0, "quota": 500 * resource.MiB} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
				most := resource.GiB
				if quota > 0 {
					most = quota
					r.quotas = &cluster.Quotas{Users: map[string]cluster.Limits{"ada": {cluster.QuotaMemory: {Most: int64(quota)}}}}
				}
				r.open()
				r.start(fifo(t))
				defer r.end()
				id := r.submit(learner(2, 0))
				first, second := r.order(cluster.Start), r.order(cluster.Start)
				r.fake.launched(first)
				r.fake.launched(second)
				synctest.Wait()
				r.fake.fellShort(first.Container, 900*resource.MiB)
				synctest.Wait()
				r.fake.ended(second.Container, cluster.Succeeded, 0)
				o := r.order(cluster.Start)
				if got := o.Grant[resource.Memory]; got > most || got < most-resource.MiB {
					t.Errorf("the next attempt is granted %s, want what can be had, %s", resource.FormatMemory(got),
						resource.FormatMemory(most))
				}
				if s := r.job(id).Stages[0].Reserved; !s.Limited || s.Short != 900*resource.MiB {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Whatever the history says, which may be of another program under the same name, or of other inputs, a job is
// accepted, starts, and comes to its end on a node that has what it needs: no reservation is in its way for ever. One
// run later, what is reserved suffices.
func TestLyingHistories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.usage = map[cluster.ContainerID]usage.Usage{}
		noise := rand.New(rand.NewPCG(26, 5))
		amount := func(most resource.Amount) resource.Amount { return 1 + resource.Amount(noise.Int64N(int64(most))) }
		for i := range 60 {
			s := learner(1, 0)
			s.Job.App, s.Job.Stages[0].Input = fmt.Sprint("program-", i), amount(resource.TB)
			app := profile.App{Name: s.Job.App}
			h := &profile.History{}
			for range noise.IntN(12) {
				memory := amount(resource.Amount(1) << (20 + noise.IntN(30)))
				run := profile.Run{Features: profile.Features{Cores: 1000, Input: amount(resource.GB)}, Ended: 1,
					Phases: []cluster.Phase{{Duration: time.Second, Demand: resource.Of(100, memory)}}}
				if _, err := h.Observe(app, run); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Import(t.Context(), user, h); err != nil {
				t.Fatal(err)
			}
			needs := amount(900 * resource.MiB)
			run := func() resource.Amount {
				t.Helper()
				id := r.submit(s)
				reserved := r.job(id).Stages[0].Ideal[resource.Memory]
				for attempt := 0; ; attempt++ {
					o := r.order(cluster.Start)
					r.fake.launched(o)
					synctest.Wait()
					granted := o.Grant[resource.Memory]
					if granted > resource.GiB || attempt > 6 {
						t.Errorf("program %d: attempt %d is granted %s", i, attempt, resource.FormatMemory(granted))
					}
					if granted < needs && noise.IntN(2) == 0 { // it could not grow
						r.fake.fellShort(o.Container, granted)
						synctest.Wait()
						continue
					}
					var u usage.Usage
					for range 5 {
						u.Spans = append(u.Spans, usage.Span{Length: time.Second, Known: usage.SetOf(usage.CPU, usage.Memory, usage.Swap),
							Used: usage.Amounts{usage.CPU: 100, usage.Memory: int64(needs)}})
					}
					r.fake.usage[o.Container] = u
					r.fake.ended(o.Container, cluster.Succeeded, 0)
					if j := r.wait(id); j.Status != cluster.StatusSucceeded {
						t.Fatalf("program %d: %+v", i, j)
					}
					time.Sleep(time.Minute) // until it is learned
					return reserved
				}
			}
			if run(); run() < needs {
				t.Errorf("program %d needs %s, and less is reserved after a run", i, resource.FormatMemory(needs))
			}
		}
	})
}

// A job is not refused for what its runs before needed: no more is reserved than a quota of its owner allows.
func TestLearnedReservationsFitQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 500 * resource.MiB
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(),
			quotas: &cluster.Quotas{Users: map[string]cluster.Limits{"ada": {cluster.QuotaMemory: {Most: int64(most)},
				cluster.QuotaCPU: {Most: 500}}}}}
		r.open()
		r.start(fifo(t))
		defer r.end()
		h := &profile.History{}
		if _, err := h.Observe(profile.App{Name: "large"}, profile.Run{Ended: 1, Phases: []cluster.Phase{
			{Duration: time.Second, Demand: resource.Of(900, 800*resource.MiB)}}}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Import(t.Context(), user, h); err != nil {
			t.Fatal(err)
		}
		s := learner(1, 0)
		s.Job.App, s.Job.Stages[0].Ideal[resource.CPU] = "large", 0
		one := r.submit(s)
		many, _, err := r.SubmitAll(t.Context(), user, Key{}, func(yield func(Submission, error) bool) { yield(s, nil) })
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []cluster.JobID{one, many} {
			o := r.order(cluster.Start)
			if got := o.Grant[resource.Memory]; o.Task.Job != id || got > most || got < most-resource.MiB {
				t.Errorf("job %d is granted %s", o.Task.Job, resource.FormatMemory(got))
			}
			if got := o.Grant[resource.CPU]; got > 500 {
				t.Errorf("job %d is granted %d millicores", o.Task.Job, got)
			}
			r.fake.launched(o)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			r.wait(id)
		}
		// What cannot be had is no other reservation: a job that waits is not revised for it.
		r.submit(s)
		o := r.order(cluster.Start)
		r.submit(s) // beyond the quota
		steps := func() int64 {
			synctest.Wait()
			status, err := r.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return status.Steps
		}
		before, waits := steps(), waitingJobs{r.Driver}
		of, err := waits.Of(t.Context(), learn.AppOf(user, "large"))
		if err != nil || len(of) != 1 {
			t.Fatalf("%d jobs wait, %v", len(of), err)
		}
		again := of[0].Job
		again.Stages = slices.Clone(again.Stages)
		unbounded := *again.Stages[0].Reserved
		unbounded.Bytes, unbounded.Limited = 900*resource.MiB, false // as the history has it
		again.Stages[0].Ideal[resource.Memory], again.Stages[0].Reserved = unbounded.Bytes, &unbounded
		waits.Revise(t.Context(), []cluster.Job{again})
		if n := steps() - before; n != 0 {
			t.Errorf("%d steps for a revision that changes nothing", n)
		}
		unbounded.Bytes = 400 * resource.MiB
		again.Stages[0].Ideal[resource.Memory], again.Stages[0].Reserved = unbounded.Bytes, &unbounded
		waits.Revise(t.Context(), []cluster.Job{again})
		if n := steps() - before; n != 1 {
			t.Errorf("%d steps for a revision", n)
		}
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		synctest.Wait()
	})
}
