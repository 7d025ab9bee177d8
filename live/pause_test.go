package live

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// hears answers an order, and reports whether the programs are stopped from then on.
func (r *rig) hears(o cluster.Order, answer cluster.EventKind, detail string) {
	r.fake.events <- cluster.Event{Kind: answer, Task: o.Task, Run: o.Container.Run, Decision: o.ID, Detail: detail}
	if answer == cluster.DecisionDone {
		e := cluster.Event{Kind: cluster.TaskSuspended, Task: o.Task, Run: o.Container.Run, By: o.By}
		if o.By == 0 {
			e.Kind = cluster.TaskResumed
		}
		r.fake.events <- e
	}
	synctest.Wait()
}

// A paused job is stopped and starts no task; views show that, and it continues when it is resumed.
func TestPauseJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3)) // two have room
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		for range 2 { // the second time it changes nothing
			if err := r.Pause(t.Context(), user, id, cluster.TaskID{}, false); err != nil {
				t.Fatal(err)
			}
		}
		a, b := r.order(cluster.Suspend), r.order(cluster.Suspend)
		r.hears(a, cluster.DecisionDone, "")
		r.hears(b, cluster.DecisionFailed, "no freezer")
		e, err := r.Explain(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Remedies) > 0 {
			t.Errorf("what helps is in the reason, and again: %q", e.Remedies)
		}
		if e.Job.Paused == nil || e.Job.Paused.By != "ada" ||
			!strings.HasPrefix(e.Why, "The job is paused by ada since ") || e.Job.Waiting != "paused by its owner" {
			t.Errorf("paused %+v, %q, waiting %q", e.Job.Paused, e.Why, e.Job.Waiting)
		}
		for _, task := range e.Job.Tasks {
			want := ""
			if task.Task == b.Task {
				want = "no freezer"
			}
			if task.Paused == nil || task.Paused.Failed != want {
				t.Errorf("task %s: %+v, want failed %q", task.Task, task.Paused, want)
			}
			if still := task.Suspended; (still == nil) != (want != "") || still != nil &&
				(still.By != cluster.HeldByOwner || !still.Lends || !still.Since.Equal(time.Now())) {
				t.Errorf("task %s is stopped: %+v, failed %q", task.Task, still, want)
			}
		}
		// The end of a task gives room, but not to a paused job.
		r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: b.Task, Run: 1, Outcome: cluster.Succeeded,
			Exit: &cluster.Exit{}}
		synctest.Wait()
		if err := r.Resume(t.Context(), user, id, cluster.TaskID{}); err != nil {
			t.Fatal(err)
		}
		r.hears(r.order(cluster.Resume), cluster.DecisionDone, "")
		r.order(cluster.Start)
		if err := r.Resume(t.Context(), user, id, cluster.TaskID{}); err == nil ||
			!strings.Contains(err.Error(), "is not paused") {
			t.Errorf("resumed twice: %v", err)
		}
	})
}

// Of orders that replace each other before they are carried out, each is answered once. That the newest is
// superseded, and a second answer, are ignored.
func TestPausesReplaceEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		is := func(when, unheld string, earlier int, stands bool) {
			t.Helper()
			if err := r.do(t.Context(), func() {
				task := r.jobs[id].state.Tasks[0]
				waits := 0
				if task.Hold != nil && !task.Hold.InForce && !task.Hold.Failed {
					waits = 1
				}
				run := r.jobs[id].newest(o.Task)
				if run.failed[cluster.WantHold] != unheld || len(run.open) != earlier+waits || task.Suspended != stands ||
					r.health.broken != nil {
					t.Errorf("%s: not held for %q, open are %v, it stands still: %v, ordered was %+v; %v", when,
						run.failed[cluster.WantHold], run.open, task.Suspended, task.Hold, r.health.broken)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		var orders []cluster.Order
		for i := range 3 {
			var err error
			kind := cluster.Suspend
			if i == 1 {
				kind, err = cluster.Resume, r.Resume(t.Context(), user, id, cluster.TaskID{})
			} else {
				err = r.Pause(t.Context(), user, id, cluster.TaskID{}, false)
			}
			if err != nil {
				t.Fatal(err)
			}
			orders = append(orders, r.order(kind))
		}
		is("ordered", "", 2, false)
		r.hears(orders[0], cluster.DecisionSuperseded, "")
		r.hears(orders[0], cluster.DecisionFailed, "a second answer")
		is("the first is superseded", "", 1, false)
		r.hears(orders[1], cluster.DecisionFailed, "no freezer")
		is("the second failed", "", 0, false)
		r.hears(orders[2], cluster.DecisionDone, "")
		is("the third is carried out", "", 0, true)
		r.hears(orders[2], cluster.DecisionFailed, "a second answer")
		is("a second answer", "", 0, true)

		if err := r.Resume(t.Context(), user, id, cluster.TaskID{}); err != nil {
			t.Fatal(err)
		}
		newest := r.order(cluster.Resume)
		r.hears(newest, cluster.DecisionSuperseded, "")
		r.hears(newest, cluster.DecisionFailed, "no freezer") // it has been answered
		if err := r.Pause(t.Context(), user, id, cluster.TaskID{}, false); err != nil {
			t.Fatal(err)
		}
		r.hears(r.order(cluster.Suspend), cluster.DecisionDone, "")
		if j := r.job(id); j.Tasks[0].State != api.TaskRunning || j.Tasks[0].Paused == nil ||
			j.Tasks[0].Paused.Failed != "" ||
			r.health.broken != nil {
			t.Errorf("%+v; %v", j.Tasks[0], r.health.broken)
		}
	})
}

// A pause outlives the driver: a waiting job stays in the queue, and a running task that was found is held, or let go
// if its job was resumed meanwhile.
func TestPauseOutlivesTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		runs := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		waits := r.submit(submission(1))
		for id, task := range map[cluster.JobID]cluster.TaskID{runs: first.Task, waits: {}} {
			if err := r.Pause(t.Context(), user, id, task, false); err != nil {
				t.Fatal(err)
			}
		}
		r.hears(r.order(cluster.Suspend), cluster.DecisionDone, "")
		r.end()

		r.fake = newFake(
			// it was not held any more
			cluster.Event{Kind: cluster.TaskAdopted, Task: first.Task, Run: 1, Grant: first.Grant, Launched: 1},
			cluster.Event{Kind: cluster.TaskAdopted, Task: second.Task, Run: 1, Grant: second.Grant, Launched: 1,
				By: cluster.HeldByOwner, Found: &cluster.Condition{HeldBy: cluster.HeldByOwner}})
		r.open()
		r.start(fifo(t))
		defer r.end()
		orders := map[cluster.TaskID]cluster.DecisionKind{}
		for range 2 {
			o := <-r.fake.orders
			orders[o.Task] = o.Kind
		}
		if orders[first.Task] != cluster.Suspend || orders[second.Task] != cluster.Resume {
			t.Errorf("ordered %v", orders)
		}
		synctest.Wait()
		for _, id := range []cluster.TaskID{first.Task, second.Task} {
			r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: id, Run: 1, Outcome: cluster.Succeeded,
				Exit: &cluster.Exit{}}
		}
		synctest.Wait()
		if j, err := r.Job(t.Context(), waits, false); err != nil || j.Paused == nil || len(j.Tasks) > 0 {
			t.Errorf("%+v %v", j, err)
		}
		if err := r.Resume(t.Context(), user, waits, cluster.TaskID{}); err != nil {
			t.Fatal(err)
		}
		r.order(cluster.Start)
	})
}

func TestWhatCannotBePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(3))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		for _, c := range []struct {
			job  cluster.JobID
			task cluster.TaskID
			want string
		}{
			{9, cluster.TaskID{}, "job 9"},
			{id, cluster.TaskID{Job: id, Index: 2}, "has not started; pause job 1"},
			{id, cluster.TaskID{Job: id, Index: 3}, "job 1 has no such task"},
		} {
			if err := r.Pause(t.Context(), user, c.job, c.task, false); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: error %v, want %q", c.task, err, c.want)
			}
		}
		if err := r.Cancel(t.Context(), user, id); err != nil {
			t.Fatal(err)
		}
		if err := r.Pause(t.Context(), user, id, cluster.TaskID{}, false); err == nil ||
			!strings.Contains(err.Error(), "is being killed") {
			t.Errorf("error %v", err)
		}
	})
}

// A task that its owner paused is paused in explanations, too, and not suspended.
func TestExplainAPausedTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		for i, want := range []string{"Of the 2 remaining tasks of the job, 1 is running, 1 is paused.",
			"The remaining tasks of the job are paused."} {
			if err := r.Pause(t.Context(), user, id, cluster.TaskID{Job: id, Index: int32(i)}, false); err != nil {
				t.Fatal(err)
			}
			r.hears(r.order(cluster.Suspend), cluster.DecisionDone, "")
			if e, err := r.Explain(t.Context(), id); err != nil || e.Why != want || !e.EstimatedEnd.IsZero() {
				t.Errorf("explained %q, want %q: %v", e.Why, want, err)
			}
		}
	})
}
