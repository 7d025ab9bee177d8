package live

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/policy"
	"github.com/bellows-rm/bellows/resource"
)

// The machine's report that its disk is pressed reaches the policy, which has one task wait for its turn, and people; so does its
// end. Both are in the event log: a replay with them gives the same decisions, and one without the pressure different ones.
func TestPressureReachesThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("prophet", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, dir: t.TempDir(), fake: &fake{events: make(chan cluster.Event, 1000), orders: make(chan cluster.Order, 1000), forgotten: map[cluster.ContainerID]bool{}}}
		node := cluster.Node{Name: "n1", Capacity: resource.Of(2000, resource.GiB).With(resource.Disk, 100*resource.MB)}
		r.fake.events <- cluster.Event{Kind: cluster.NodeJoined, NewNode: &node}
		r.fake.events <- cluster.Event{Kind: cluster.Synced}
		r.open()
		r.start(p)
		defer r.end()
		var running []cluster.Order
		for _, disk := range []resource.Amount{20, 150} {
			s := submission(1)
			need := s.Job.Stages[0].Ideal
			s.Job.Stages[0].Phases = []cluster.Phase{{Duration: time.Minute, Demand: need.With(resource.Disk, disk*resource.MB)}}
			r.submit(s)
			o := r.order(cluster.Start)
			r.fake.launched(o)
			running = append(running, o)
		}
		pressed := func(gives resource.Amount) {
			t.Helper()
			r.fake.events <- cluster.Event{Kind: cluster.NodePressed, Found: &cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, gives)}}
			synctest.Wait()
			if s, err := r.Status(t.Context()); err != nil || s.Nodes[0].DiskGives != int64(gives) {
				t.Errorf("status %+v %v", s.Nodes, err)
			}
		}
		pressed(30 * resource.MB)
		o := r.order(cluster.Throttle)
		if o.Container != running[1].Container || o.Bound[resource.Disk] != 500*resource.KB {
			t.Errorf("order %+v", o)
		}
		r.fake.events <- cluster.Event{Kind: cluster.DecisionDone, Task: o.Task, Run: o.Container.Run, Decision: o.ID}
		synctest.Wait()
		if th := r.job(2).Tasks[0].Throttle; th == nil || !th.InForce || th.Why != "node pressure: the node gives 30MB/s of disk, of 100MB/s" {
			t.Errorf("throttled %+v", th)
		}
		time.Sleep(3 * time.Second)
		pressed(0)
		time.Sleep(3 * time.Second)
		if th := r.job(2).Tasks[0].Throttle; th != nil {
			t.Errorf("after its time throttled %+v", th)
		}
		r.noOrder()
		for _, o := range running {
			r.fake.ended(o.Container, cluster.Succeeded, 0)
			r.wait(o.Task.Job)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		header, log := readLog(t, r.EventLog())
		if at, ok := replay(t, header, log); !ok {
			t.Errorf("record %d of %d came out differently", at, len(log))
		}
		reports := 0
		for i := range log {
			at := slices.IndexFunc(log[i].Events, func(e cluster.Event) bool { return e.Kind == cluster.NodePressed })
			if at < 0 {
				continue
			}
			other := slices.Clone(log)
			other[i].Events = slices.Delete(slices.Clone(log[i].Events), at, at+1)
			if _, ok := replay(t, header, other); ok != (log[i].Events[at].Condition().Bound == resource.Vector{}) {
				t.Errorf("without the report in record %d a replay is the same: %v", i, ok)
			}
			reports++
		}
		if reports != 2 {
			t.Errorf("%d reports are in the log", reports)
		}
	})
}
