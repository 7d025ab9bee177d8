package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// While a program is suspended or waits for memory, neither its end nor room after its end is estimated. The owner of a
// task that waits for cores learns that suspended containers keep their cores.
func TestExplainStandstill(t *testing.T) {
	const running, suspended, waiting = cluster.ContainerRunning, cluster.ContainerSuspended, cluster.ContainerWaiting
	const left = "The remaining tasks of the job are "
	const next = "The next task of the job has not started: no node has 1 core free."
	for name, c := range map[string]struct {
		states    [2]cluster.ContainerState // of the containers, as Readings reports them
		why, wait string
		ends      [2]bool // whether the end of a task is estimated
		room      bool    // whether the time of room for the waiting job is estimated
	}{
		"running": {[2]cluster.ContainerState{running, 0}, left + "running.", next, [2]bool{true, true}, true},
		"one": {[2]cluster.ContainerState{running, suspended},
			"Of the 2 remaining tasks of the job, 1 is running, 1 is suspended.", next + " A suspended task keeps its cores.",
			[2]bool{true, false}, true},
		"all": {[2]cluster.ContainerState{suspended, suspended}, left + "suspended.",
			next + " 2 suspended tasks keep their cores.", [2]bool{}, false},
		"waiting": {[2]cluster.ContainerState{waiting, waiting}, left + "waiting for memory.", next, [2]bool{}, false},
		"of either": {[2]cluster.ContainerState{suspended, waiting},
			"Of the 2 remaining tasks of the job, 1 is suspended, 1 is waiting for memory.",
			next + " A suspended task keeps its cores.", [2]bool{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newKeepingRig(t, fifo(t))
				defer r.end()
				s := submission(2)
				s.Job.Class, s.Job.Stages[0].Duration = cluster.Flex, time.Minute
				id := r.submit(s)
				s = submission(1)
				s.Job.Stages[0].Ideal[resource.Memory] = 100 * resource.MiB
				waits := r.submit(s)
				r.fake.readings = map[cluster.ContainerID]cluster.Reading{}
				for _, state := range c.states {
					o := r.order(cluster.Start)
					if state != waiting {
						r.fake.launched(o)
					}
					if state == suspended {
						r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: o.Task, Run: 1, By: cluster.HeldByMemory}
					}
					r.fake.readings[o.Container] = cluster.Reading{State: state}
				}
				synctest.Wait()
				e, err := r.Explain(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if e.Why != c.why || e.EstimatedEnd.IsZero() != (c.ends != [2]bool{true, true}) {
					t.Errorf("explained %q, ends %v", e.Why, e.EstimatedEnd)
				}
				for i, task := range e.Tasks {
					if task.EstimatedEnd.IsZero() == c.ends[i] {
						t.Errorf("task %d ends %v", i, task.EstimatedEnd)
					}
					if got := task.Usage; (got == nil) != (c.states[i] == 0) || got != nil && got.State != c.states[i] {
						t.Errorf("task %d is told to be %+v", i, got)
					}
				}
				if e, err = r.Explain(t.Context(), waits); err != nil {
					t.Fatal(err)
				}
				if e.Why != c.wait+" 2 cores are held by job 1." || e.EarliestStart.IsZero() == c.room {
					t.Errorf("the other job: %q, room %v", e.Why, e.EarliestStart)
				}
			})
		})
	}
}

// A stopped task lends its cores: a waiting job starts at once. When the first task is resumed, the next job learns
// why it waits although fewer tasks run than there are cores for.
func TestLentCores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		small := submission(1)
		small.Job.Stages[0].Ideal[resource.Memory] = 100 * resource.MiB
		r.submit(submission(2)) // on both cores
		first := r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(r.order(cluster.Start))
		r.submit(small)
		r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: first.Task, Run: 1, By: cluster.HeldByMemory}
		r.fake.launched(r.order(cluster.Start))
		r.fake.events <- cluster.Event{Kind: cluster.TaskResumed, Task: first.Task, Run: 1}
		synctest.Wait()
		waits := r.submit(small)
		synctest.Wait()
		e, err := r.Explain(t.Context(), waits)
		const want = "The next task of the job has not started: no node has 1 core free. Tasks that go on share the " +
			"node with tasks that borrowed their cores: together they are granted 1 core more than the node has. 2 cores " +
			"are held by job 1, 1 core by job 2."
		if err != nil || e.Why != want {
			t.Errorf("explained %q, want %q: %v", e.Why, want, err)
		}
		s, err := r.Status(t.Context())
		if err != nil || s.Nodes[0].FreeCPU != 0 || s.Nodes[0].OverdrawnCPU != 1000 {
			t.Errorf("%+v: %v", s.Nodes, err)
		}
	})
}

// The engine learns that a task stands still, whether or not it had been launched by then, and how long it stood.
func TestStandstillIsKnown(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, fifo(t))
			defer r.end()
			id := r.submit(submission(1))
			o := r.order(cluster.Start)
			is := func(still bool, stood time.Duration) {
				t.Helper()
				synctest.Wait()
				if err := r.do(t.Context(), func() {
					job, _ := r.engine.Snapshot().Job(id)
					if task := job.Tasks[0]; task.Suspended != still || task.SuspendedFor != stood {
						t.Errorf("it stands still: %v, and stood for %v; want %v, %v", task.Suspended, task.SuspendedFor, still, stood)
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
			tell := func(kind cluster.EventKind, run int) {
				e := cluster.Event{Kind: kind, Task: o.Task, Run: run}
				if kind == cluster.TaskSuspended {
					e.By = cluster.HeldByMemory
				}
				r.fake.events <- e
			}
			if early {
				tell(cluster.TaskSuspended, 1)
				is(false, 0)
			}
			r.fake.launched(o)
			tell(cluster.TaskSuspended, 1)
			tell(cluster.TaskSuspended, 2) // of no run
			is(true, 0)
			time.Sleep(time.Minute)
			tell(cluster.TaskResumed, 1)
			tell(cluster.TaskResumed, 1)
			is(false, time.Minute)
			tell(cluster.TaskSuspended, 1)
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			tell(cluster.TaskResumed, 1)
			if j := r.wait(id); j.Status != cluster.StatusSucceeded {
				t.Errorf("job %+v", j)
			}
		})
	}
}
