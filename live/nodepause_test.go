package live

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
)

// short reports that a start failed because the machine lacks a resource of its own.
func (f *fake) short(o cluster.Order) {
	f.events <- cluster.Event{Kind: cluster.DecisionFailed, Task: o.Task, Run: o.Container.Run, Decision: o.ID,
		Detail: "start the supervisor: too many open files", Short: true}
}

// If a machine can start nothing for an hour, each job loses only that hour: the driver tries again after 1, 2, 4 … and
// then every 30 s.
func TestNoJobFailsForTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		begun := time.Now()
		id, other := r.submit(submission(1)), r.submit(submission(1))
		var waits []time.Duration
		last := begun
		for time.Since(begun) < time.Hour {
			a, b := r.order(cluster.Start), r.order(cluster.Start) // Both fit, and both fail.
			if since := time.Since(last); since > 0 {
				waits = append(waits, since)
				last = time.Now()
			}
			r.fake.short(a)
			r.fake.short(b)
			synctest.Wait()
			r.noOrder()
		}
		if got := fmt.Sprint(waits[:7]); got != "[1s 2s 4s 8s 16s 30s 30s]" || slices.Max(waits) > longestPause {
			t.Errorf("it was asked again after %v", waits)
		}
		words := "node n1 can start nothing since " + begun.Format(time.TimeOnly) + ", and it is tried again at " +
			time.Now().Add(longestPause).Format(time.TimeOnly) + ": start the supervisor: too many open files"
		if j := r.job(id); j.Status != cluster.StatusPending || j.Waiting != words || j.Stages[0].Pending != 1 {
			t.Errorf("job %+v", j)
		}
		if e, err := r.Explain(t.Context(), id); err != nil || e.Why != "The next task of the job has not started: "+words+
			"." || !e.EarliestStart.IsZero() {
			t.Errorf("explained %+v, %v", e, err)
		}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != words || s.Nodes[0].FreeMemory != s.Nodes[0].Memory {
			t.Errorf("status %+v, %v", s, err)
		}
		a, b := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(a)
		r.fake.launched(b)
		r.fake.ended(a.Container, cluster.Succeeded, 0)
		r.fake.ended(b.Container, cluster.Succeeded, 0)
		for _, id := range []cluster.JobID{id, other} {
			j := r.wait(id)
			if runs, err := r.store.Tasks(t.Context(), id); j.Status != cluster.StatusSucceeded || err != nil ||
				len(runs) != 1 || runs[0].Container.Run < 100 {
				t.Errorf("job %+v, runs %+v, %v", j, runs, err)
			}
		}
		if s, err := r.Status(t.Context()); err != nil || s.Trouble != "" {
			t.Errorf("status %+v, %v", s, err)
		}
		// After a success the pauses begin at one second again.
		r.submit(submission(1))
		r.fake.short(r.order(cluster.Start))
		begun = time.Now()
		r.fake.launched(r.order(cluster.Start))
		if time.Since(begun) != firstPause {
			t.Errorf("it was asked again after %v", time.Since(begun))
		}
	})
}

// While a node is paused, a job that waits for it can be killed at once, and its running tasks end as usual.
func TestPausedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		runs := r.submit(submission(1))
		a := r.order(cluster.Start)
		r.fake.launched(a)
		waits := r.submit(submission(1))
		r.fake.short(r.order(cluster.Start))
		synctest.Wait()
		begun := time.Now()
		if err := r.Cancel(t.Context(), user, waits); err != nil {
			t.Fatal(err)
		}
		if j := r.wait(waits); j.Status != cluster.StatusCancelled || j.ExitCode != nil {
			t.Errorf("job %+v", j)
		}
		r.fake.ended(a.Container, cluster.Succeeded, 0)
		r.wait(runs)
		synctest.Wait()
		if s, err := r.Status(t.Context()); err != nil || s.Nodes[0].FreeMemory != s.Nodes[0].Memory || s.Running != 0 {
			t.Errorf("status %+v, %v", s, err)
		}
		r.submit(submission(1))
		r.fake.launched(r.order(cluster.Start))
		if time.Since(begun) != firstPause {
			t.Errorf("a paused node started something after %v", time.Since(begun))
		}
	})
}

// No task is preempted for room on a node that cannot start containers: neither while the node is paused, nor while it
// is tried again.
func TestNobodyIsPreemptedForAPausedNode(t *testing.T) {
	for _, broken := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p, err := policy.New("capacity", map[string]string{"capacity.queues": "a=40%,b=60%", "capacity.preemption": "true",
				"capacity.preemption-per-round": "1", "capacity.preemption-termination": "1", "capacity.preemption-ignored": "0"})
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, p)
			defer r.end()
			sized := func(queue string, tasks int) Submission {
				s := submission(tasks)
				s.Job.Queue = queue
				s.Job.Stages[0].Ideal = resource.Of(500, 300*resource.MiB)
				return s
			}
			r.submit(sized("a", 3))
			r.fake.launched(r.order(cluster.Start))
			r.fake.launched(r.order(cluster.Start))
			third := r.order(cluster.Start)
			if broken {
				r.fake.short(third)
			} else {
				r.fake.launched(third)
			}
			synctest.Wait()
			r.submit(sized("b", 3))
			preempted := false
			for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
				select {
				case o := <-r.fake.orders:
					if o.Kind == cluster.Start {
						r.fake.short(o)
					}
					preempted = preempted || o.Kind == cluster.Kill
				case <-time.After(time.Second):
				}
			}
			if preempted == broken {
				t.Errorf("broken %v: preempted %v", broken, preempted)
			}
		})
	}
}
