package live

import (
	"testing"
	"testing/synctest"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// What a task was granted of every resource is shown with the task, and what is left of it with the node; a bandwidth
// that is unknown is left out.
func TestGrantsOfEveryResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake()}
		node := cluster.Node{Name: "n1", Capacity: resource.Of(2000, resource.GiB).With(resource.Disk, 100*resource.MB),
			Unknown: resource.KindsOf(resource.Network)}
		r.fake.events = make(chan cluster.Event, 10)
		r.fake.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
		r.fake.events <- cluster.Event{Kind: cluster.Synced}
		r.open()
		r.start(fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.Stages[0].Ideal[resource.Disk] = 30 * resource.MB
		id := r.submit(s)
		r.fake.launched(r.order(cluster.Start))
		synctest.Wait()
		e, err := r.Explain(t.Context(), id)
		want := api.Grant{CPUMillicores: 1000, MemoryBytes: 400 << 20, Disk: 30e6}
		if err != nil || e.Tasks[0].Grant != want || e.Job.Tasks[0].Grant != want {
			t.Errorf("granted %+v and %+v, want %+v: %v", e.Tasks[0].Grant, e.Job.Tasks[0].Grant, want, err)
		}
		status, err := r.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n := status.Nodes[0]; n.FreeDisk == nil || *n.FreeDisk != 70e6 || n.FreeNetwork != nil || n.FreeCPU != 1000 {
			t.Errorf("node %+v", n)
		}
	})
}
