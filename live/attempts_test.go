package live

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/api"
)

// lost reports that a container ended and that its end was not observed.
func (f *fake) lost(id cluster.ContainerID) {
	f.events <- cluster.Event{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: cluster.Lost,
		Detail: "its supervisor ended without a record"}
}

// A run that started is an attempt, however it ended: with one attempt the task does not run again, with two it runs
// once more.
func TestLostRunIsAnAttempt(t *testing.T) {
	for attempts := 1; attempts <= 3; attempts++ {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			s := submission(1)
			s.Job.MaxAttempts = attempts
			id := r.submit(s)
			for range attempts {
				o := r.order(cluster.Start)
				r.fake.launched(o)
				r.fake.lost(o.Container)
			}
			if j := r.wait(id); j.Status != cluster.StatusFailed || j.ExitCode != nil ||
				j.Detail != "task 1.0.0: its supervisor ended without a record" {
				t.Errorf("job %+v", j)
			}
			synctest.Wait()
			r.noOrder()
		})
	}
}

// The same holds when the machine ended the run: the next daemon finds the record of a container that ran, or only that
// it once ran. A run that never started is no attempt.
func TestRebootIsAnAttempt(t *testing.T) {
	for _, c := range []struct {
		name      string
		launched  bool // before the end of the daemon
		inventory func(cluster.ContainerID) []cluster.Event
		again     bool
	}{
		{"its record is there", true, func(id cluster.ContainerID) []cluster.Event {
			return []cluster.Event{{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: cluster.Lost,
				Detail: "its supervisor ended without a record"}}
		}, false},
		{"its record is there, and its start was not reported", false, func(id cluster.ContainerID) []cluster.Event {
			return []cluster.Event{{Kind: cluster.TaskEnded, Task: id.Task, Run: id.Run, Outcome: cluster.Lost,
				Detail: "its supervisor ended without a record"}}
		}, false},
		{"nothing is left", true, func(cluster.ContainerID) []cluster.Event { return nil }, false},
		{"it never started", false, func(cluster.ContainerID) []cluster.Event { return nil }, true},
		{"it could not be started", false, func(id cluster.ContainerID) []cluster.Event {
			return []cluster.Event{{Kind: cluster.DecisionFailed, Task: id.Task, Run: id.Run,
				Detail: "bellows ended before it was started"}}
		}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			id := r.submit(submission(1))
			o := r.order(cluster.Start)
			if c.launched {
				r.fake.launched(o)
			}
			synctest.Wait()
			for range 2 { // The second time it is read from the store.
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				r.fake = newFake(c.inventory(o.Container)...)
				r.start(fifo(t))
				synctest.Wait()
				if c.again {
					if o := r.order(cluster.Start); o.Container.Run < 2 {
						t.Errorf("%s: started as %s", c.name, o.Container)
					}
					return
				}
				r.noOrder()
				if j := r.wait(id); j.Status != cluster.StatusFailed || j.Detail == "" {
					t.Errorf("%s: job %+v", c.name, j)
				}
			}
		})
	}
}

// A job that runs at most once is never started again after it may have started: neither after a fault of the machine,
// nor after a preemption. A run that certainly did not start is tried again.
func TestAtMostOnce(t *testing.T) {
	for _, end := range []cluster.Outcome{cluster.Lost, cluster.Preempted} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			s := submission(1)
			s.Job.AtMostOnce = true
			id := r.submit(s)
			r.fake.short(r.order(cluster.Start))
			o := r.order(cluster.Start)
			r.fake.launched(o)
			r.fake.ended(o.Container, end, 0)
			if j := r.wait(id); j.Status != cluster.StatusFailed ||
				!strings.HasSuffix(j.Detail, "; it does not start again, because its job runs at most once") {
				t.Errorf("%s: job %+v", end, j)
			}
			synctest.Wait()
			r.noOrder()
			s.Job.MaxAttempts = 2
			if _, err := r.Submit(t.Context(), s); api.KindOf(err) != api.Invalid ||
				err.Error() != `job "sorts" retry 1: must be 0 for a job that runs at most once` {
				t.Errorf("submitted with %v", err)
			}
		})
	}
}
