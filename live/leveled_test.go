package live

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// levels is a policy that holds each task that runs, once, for a minute.
type levels struct {
	policy.Policy
	done map[cluster.TaskID]bool
}

func (l *levels) Decide(now timeline.Time, p *book.Plan) {
	for _, n := range p.Nodes {
		for _, t := range n.Tasks {
			if t.Running && !l.done[t.ID] {
				l.done[t.ID] = true
				p.SuspendUntil(t, now.Add(time.Minute), cluster.TaskID{Job: 9},
					cluster.BecauseNodePressure(resource.Disk, 40e6, 100e6))
			}
		}
	}
	l.Policy.Decide(now, p)
}

// Leveling stops a task for a while; views show until when, for which task and why. The driver orders the end in
// time, without another event.
func TestLeveledTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &levels{Policy: fifo(t), done: map[cluster.TaskID]bool{}})
		defer r.end()
		s := submission(1)
		s.Job.Stages[0].Duration = 10 * time.Minute
		id := r.submit(s)
		o := r.order(cluster.Start)
		begun := time.Now()
		r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: 1, Decision: o.ID,
			Launched: timeline.Time(begun.UnixNano())}
		o = r.order(cluster.Suspend)
		if o.By != cluster.HeldByLeveling || o.At != timeline.Time(begun.Add(time.Minute).UnixNano()) ||
			o.For != (cluster.TaskID{Job: 9}) {
			t.Errorf("ordered %+v", o)
		}
		r.hears(o, cluster.DecisionDone, "")
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		const why = "node pressure: the node gives 40MB/s of disk, of 100MB/s"
		want := api.Leveled{Since: begun, Until: begun.Add(time.Minute), For: cluster.TaskID{Job: 9}, Why: why}
		if l := e.Job.Tasks[0].Leveled; l == nil || !l.Since.Equal(want.Since) || !l.Until.Equal(want.Until) ||
			l.For != want.For || l.Why != why || l.Failed != "" {
			t.Errorf("leveled %+v, want %+v", l, want)
		}
		if still := e.Job.Tasks[0].Suspended; still == nil || still.By != cluster.HeldByLeveling || !still.Lends {
			t.Errorf("it stands still: %+v", still)
		}
		if e.Why != "The last task of the job is held by leveling." || !e.EstimatedEnd.After(want.Until) ||
			!e.Tasks[0].EstimatedEnd.Equal(e.EstimatedEnd) {
			t.Errorf("explained %q, it ends at %v, its task at %v", e.Why, e.EstimatedEnd, e.Tasks[0].EstimatedEnd)
		}
		if d := e.Decisions[1]; d.Kind != cluster.Suspend || !d.Until.Equal(want.Until) || d.For != want.For ||
			d.Why != why || d.Answer != api.AnswerDone {
			t.Errorf("decided %+v", d)
		}
		time.Sleep(time.Minute)
		r.hears(r.order(cluster.Resume), cluster.DecisionDone, "")
		if task := r.job(id).Tasks[0]; task.Leveled != nil || task.Suspended != nil {
			t.Errorf("it is held for longer: %+v, %+v", task.Leveled, task.Suspended)
		}
	})
}

// What could not be stopped is shown, and the end of the hold is ordered all the same.
func TestLevelingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &levels{Policy: fifo(t), done: map[cluster.TaskID]bool{}})
		defer r.end()
		id := r.submit(submission(1))
		r.fake.launched(r.order(cluster.Start))
		r.hears(r.order(cluster.Suspend), cluster.DecisionFailed, "no freezer")
		if l := r.job(id).Tasks[0].Leveled; l == nil || l.Failed != "no freezer" {
			t.Errorf("leveled %+v", l)
		}
		time.Sleep(time.Minute)
		r.order(cluster.Resume)
	})
}

// The next driver ends a hold of leveling that it found, also if an expired throttle of the task is on record.
func TestLevelingOutlivesTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		r.end()
		until := timeline.Time(time.Now().Add(20 * time.Second).UnixNano())
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1,
			By: cluster.HeldByLeveling, Found: &cluster.Condition{HeldBy: cluster.HeldByLeveling, HeldUntil: until,
				HeldFor: cluster.TaskID{Job: 9}}})
		r.open()
		r.start(fifo(t))
		defer r.end()
		synctest.Wait()
		r.noOrder()
		if l := r.job(id).Tasks[0].Leveled; l == nil || !l.Until.Equal(time.Unix(0, int64(until))) ||
			l.For != (cluster.TaskID{Job: 9}) || !l.Since.Equal(time.Now()) || l.Why != "" {
			t.Errorf("leveled %+v", l)
		}
		time.Sleep(20 * time.Second)
		r.order(cluster.Resume)
	})
}

// A throttle that expired while there was no driver does not hide what holds the task.
func TestAdoptedWithAnExpiredThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newThrottled(t)
		o := r.start
		r.answer(cluster.DecisionDone, r.throttle(10*resource.MB, time.Second), "")
		r.end()
		time.Sleep(time.Minute)
		until := timeline.Time(time.Now().Add(20 * time.Second).UnixNano())
		r.fake = newFake(cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant, Launched: 1,
			By: cluster.HeldByLeveling, Found: &cluster.Condition{HeldBy: cluster.HeldByLeveling, HeldUntil: until}})
		r.open()
		r.rig.start(fifo(t))
		defer r.end()
		synctest.Wait()
		if r.rig.job(r.job).Tasks[0].Leveled == nil {
			t.Error("the engine does not know that leveling holds the task")
		}
	})
}

// Two tasks stop before their second phases, which need more memory than is free. Views show how much they need, and
// who comes first, also under the next driver.
func TestWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ecs := func() policy.Policy {
			p, err := policy.New("ecs", map[string]string{"ecs.memory": "phase", "ecs.short": "false", "ecs.leveling": "false"})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		r := newRig(t, ecs())
		begun := time.Now()
		var found []cluster.Event
		run := func(class cluster.Class, memory resource.Amount, phases ...cluster.Phase) cluster.JobID {
			s := submission(1)
			s.Job.Class, s.Job.Stages[0].Ideal, s.Job.Stages[0].Phases = class, resource.Of(500, memory), phases
			if phases == nil {
				s.Job.Stages[0].Duration = time.Hour
			}
			id := r.submit(s)
			o := r.order(cluster.Start)
			launched := timeline.Time(time.Now().UnixNano())
			r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: 1, Decision: o.ID, Launched: launched}
			synctest.Wait()
			found = append(found, cluster.Event{Kind: cluster.TaskAdopted, Task: o.Task, Run: 1, Grant: o.Grant,
				Launched: launched, Found: &cluster.Condition{ByPhase: o.ByPhase}})
			return id
		}
		phase := func(lasts time.Duration, memory resource.Amount) cluster.Phase {
			return cluster.Phase{Duration: lasts, Demand: resource.Of(500, memory)}
		}
		first := run(cluster.Flex, 600*resource.MiB, phase(60*time.Second, 100*resource.MiB),
			phase(time.Minute, 600*resource.MiB))
		second := run(cluster.Flex, 600*resource.MiB, phase(90*time.Second, 100*resource.MiB),
			phase(time.Minute, 600*resource.MiB))
		run(cluster.Regular, 500*resource.MiB)
		for i, at := range []time.Duration{54 * time.Second, 81 * time.Second} {
			o := r.order(cluster.Suspend)
			if passed := time.Since(begun); o.Task != found[i].Task || !o.PageOut || passed != at {
				t.Fatalf("after %v ordered %+v", passed, o)
			}
			r.hears(o, cluster.DecisionDone, "")
			out := cluster.Event{Kind: cluster.TaskPagedOut, Task: o.Task, Run: 1}
			out.SetCondition(cluster.Condition{Out: 100 * resource.MiB})
			r.fake.events <- out
			synctest.Wait()
			found[i].By = cluster.HeldByLeveling
			found[i].SetCondition(cluster.Condition{ByPhase: true, HeldBy: cluster.HeldByLeveling, HeldUntil: o.At,
				PageOut: true, Out: 100 * resource.MiB})
		}
		check := func() {
			t.Helper()
			for id, want := range map[cluster.JobID]api.MemoryWait{first: {}, second: {Behind: []cluster.TaskID{{Job: first}}}} {
				want.Phase, want.Needs, want.Free = 2, int64(600*resource.MiB), int64(524*resource.MiB)
				e, err := r.Explain(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				l, m := e.Job.Tasks[0].Leveled, e.Tasks[0].MemoryWait
				if l == nil || m == nil || !reflect.DeepEqual(*m, want) || l.Since.Sub(begun) > 81*time.Second ||
					!l.Until.After(time.Now()) {
					t.Fatalf("job %d is leveled %+v, waits for %+v, want %+v", id, l, m, want)
				}
				if e, err := r.Explain(t.Context(), id); err != nil || !e.EstimatedEnd.IsZero() ||
					!e.Tasks[0].EstimatedEnd.IsZero() {
					t.Errorf("job %d should end at %v, its task at %v: %v", id, e.EstimatedEnd, e.Tasks[0].EstimatedEnd, err)
				}
			}
		}
		check()
		r.end()
		r.fake = newFake(found...)
		r.open()
		r.start(ecs())
		defer r.end()
		synctest.Wait()
		r.noOrder()
		check()
	})
}
