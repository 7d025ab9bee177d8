package live

import (
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/timeline"
)

// preempter preempts the running tasks of the first job when a second job arrives, and then decides normally.
type preempter struct {
	policy.Policy
	done bool
}

func (p *preempter) Decide(now timeline.Time, plan *book.Plan) {
	if len(plan.Jobs) == 2 && !p.done {
		p.done = true
		for _, t := range plan.Jobs[0].Tasks {
			plan.Preempt(t, cluster.BecauseQueueOverShare(1, 2, 3))
		}
	}
	p.Policy.Decide(now, plan)
}

// A preempted task runs again, in a new container, and does not count as failed: neither for the daemon that ended it,
// nor for a daemon that was started in the meantime and gets the machine's report.
func TestPreemptedTaskRunsAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, &preempter{Policy: fifo(t)})
			defer r.end()
			first := r.submit(submission(1)) // may run once
			o := r.order(cluster.Start)
			r.fake.launched(o)
			synctest.Wait()
			second := r.submit(submission(1))
			k := r.order(cluster.Kill)
			if !k.Preempt || k.Container != o.Container {
				t.Fatalf("order %+v", k)
			}
			other := r.order(cluster.Start)
			r.fake.launched(other)
			synctest.Wait()
			if restart {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				r.fake = newFake(cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: 1, Outcome: cluster.Preempted},
					cluster.Event{Kind: cluster.TaskAdopted, Task: other.Task, Run: 1, Grant: other.Grant, Launched: 1})
				r.start(fifo(t))
			} else {
				r.fake.ended(o.Container, cluster.Killed, 143)
			}
			again := r.order(cluster.Start)
			if again.Container != (cluster.ContainerID{Task: o.Task, Run: 2}) {
				t.Errorf("started again as %s", again.Container)
			}
			r.fake.launched(again)
			synctest.Wait()
			j, err := r.Job(t.Context(), first, false)
			if err != nil || j.Status != cluster.StatusRunning || j.ExitCode != nil {
				t.Errorf("job %+v %v", j, err)
			}
			r.fake.ended(again.Container, cluster.Succeeded, 0)
			r.fake.ended(other.Container, cluster.Succeeded, 0)
			if j := r.wait(first); j.Status != cluster.StatusSucceeded || *j.ExitCode != 0 {
				t.Errorf("job %+v", j)
			}
			r.wait(second)
		})
	}
}

// A job that is cancelled while a task of it is being preempted ends with that task.
func TestCancelWhilePreempted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, &preempter{Policy: fifo(t)})
		defer r.end()
		first := r.submit(submission(1))
		o := r.order(cluster.Start)
		r.fake.launched(o)
		synctest.Wait()
		r.submit(submission(1))
		r.order(cluster.Kill)
		r.order(cluster.Start)
		if err := r.Cancel(t.Context(), user, first); err != nil {
			t.Fatal(err)
		}
		r.noOrder()
		r.fake.ended(o.Container, cluster.Killed, 143)
		if j := r.wait(first); j.Status != cluster.StatusCancelled {
			t.Errorf("job %+v", j)
		}
		r.noOrder()
	})
}
