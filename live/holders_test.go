package live

import (
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// TestHolders names the tasks that use the memory a suspended container waits for: a REGULAR container uses its grant,
// a FLEX container its current limit, a container that has not started nothing.
func TestHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.readings = map[cluster.ContainerID]cluster.Reading{}
		start := func(class cluster.Class, state cluster.ContainerState, limit int64) cluster.JobID {
			s := submission(1)
			s.Job.Class = class
			s.Job.Stages[0].Ideal = resource.Of(100, 50*resource.MiB)
			id := r.submit(s)
			o := r.order(cluster.Start)
			if state != cluster.ContainerWaiting {
				r.fake.launched(o)
			}
			if state == cluster.ContainerSuspended {
				r.fake.events <- cluster.Event{Kind: cluster.TaskSuspended, Task: o.Task, Run: 1, By: cluster.HeldByMemory}
			}
			if state != 0 {
				r.fake.readings[o.Container] = cluster.Reading{State: state, Limit: &limit}
			}
			return id
		}
		waits := start(cluster.Flex, cluster.ContainerSuspended, 10<<20)
		regular := start(cluster.Regular, 0, 0)
		grown := start(cluster.Flex, cluster.ContainerRunning, 300<<20)
		start(cluster.Flex, cluster.ContainerWaiting, 0)
		synctest.Wait()
		e, err := r.Explain(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Tasks[0].Holders
		want := []api.Holder{{Task: cluster.TaskID{Job: grown}, Bytes: 300 << 20},
			{Task: cluster.TaskID{Job: regular}, Bytes: 50 << 20}}
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("the memory is held by %v, want %v", got, want)
		}
		if e, err = r.Explain(t.Context(), grown); err != nil || e.Tasks[0].Holders != nil {
			t.Errorf("a task that runs waits for other tasks: %v, %v", e.Tasks[0].Holders, err)
		}
	})
}
