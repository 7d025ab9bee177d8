package live

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live/counts"
)

func sum(numbers []int64) (n int64) {
	for _, c := range numbers {
		n += c
	}
	return n
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		id := r.submit(submission(2))
		first, second := r.order(cluster.Start), r.order(cluster.Start)
		r.fake.launched(first)
		r.fake.launched(second)
		r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: first.Task, Run: 1, By: cluster.HeldByMemory}
		time.Sleep(10 * time.Second)
		r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: first.Task, Run: 1,
			By: cluster.HeldByMemory | cluster.HeldByOwner}
		time.Sleep(5 * time.Second)
		r.fake.readings = map[cluster.ContainerID]cluster.Reading{first.Container: {Swap: new(int64(7))},
			second.Container: {}}
		memory, owner := counts.Holds{By: cluster.HeldByMemory, Begun: 1, Tasks: 1, Time: 15 * time.Second},
			counts.Holds{By: cluster.HeldByOwner, Begun: 1, Tasks: 1, Time: 5 * time.Second}
		if m := r.Metrics(); m.Holds[0] != memory || m.Holds[1] != owner ||
			m.Holds[2] != (counts.Holds{By: cluster.HeldByLeveling}) || m.Swapped != 7 {
			t.Errorf("while a task stands still, the metrics are %+v", m)
		} else if m.Open[cluster.StatusRunning] != 1 || sum(m.Open) != 1 {
			t.Errorf("the jobs that have not ended are %v", m.Open)
		}
		r.fake.events <- cluster.Event{Kind: cluster.TaskResumed, Task: first.Task, Run: 1}
		r.fake.ended(first.Container, cluster.Succeeded, 0)
		r.fake.ended(second.Container, cluster.Failed, 1)
		if j := r.wait(id); j.Status != cluster.StatusFailed {
			t.Errorf("the job has %s", j.Status)
		}
		synctest.Wait()
		m := r.Metrics()
		memory.Tasks, owner.Tasks = 0, 0
		if m.Holds[0] != memory || m.Holds[1] != owner {
			t.Errorf("afterwards the tasks were held as %+v", m.Holds)
		}
		for kind, want := range map[cluster.EventKind]int64{cluster.NodeJoined: 1, cluster.JobSubmitted: 1,
			cluster.DecisionDone: 2, cluster.TaskSuspended: 2, cluster.TaskResumed: 1, cluster.TaskEnded: 2} {
			if m.Events[kind] != want {
				t.Errorf("%d events %s, want %d", m.Events[kind], kind, want)
			}
		}
		if m.Decisions[cluster.Start] != 2 || m.Runs[cluster.Succeeded] != 1 || m.Runs[cluster.Failed] != 1 ||
			m.Jobs[cluster.StatusFailed] != 1 || sum(m.Jobs) != 1 || sum(m.Open) != 0 {
			t.Errorf("metrics are %+v", m)
		}
		s, err := r.Status(t.Context())
		if err != nil || sum(m.Steps.Counts) != s.Steps || sum(m.Writes.Counts) == 0 || m.WriteFailures != 0 || m.Hangs != 0 {
			t.Errorf("%d steps (%v), metrics %+v", s.Steps, err, m)
		}
	})
}
