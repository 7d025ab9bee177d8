package live

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
)

// The machine's report that its disk is pressed reaches the policy, which has one task wait for its turn, and people;
// so does its end. Both are in the event log: a replay with them gives the same decisions, and one without the
// pressure different ones.
func TestPressureReachesThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("prophet", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, dir: t.TempDir(), fake: &fake{events: make(chan cluster.Event, 1000),
			orders: make(chan cluster.Order, 1000), forgotten: map[cluster.ContainerID]bool{}}}
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
			r.fake.events <- cluster.Event{Kind: cluster.NodePressed,
				Found: &cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, gives)}}
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
		if p, err := r.Pressure(t.Context()); err != nil || !p.Bounded || p.Gives[resource.Disk] != 30*resource.MB ||
			p.Uses != nil {
			t.Errorf("with back-off by the policy: %+v, %v", p, err)
		}
		if th := r.job(2).Tasks[0].Throttle; th == nil || !th.InForce ||
			th.Why != "node pressure: the node gives 30MB/s of disk, of 100MB/s" {
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

// Whoever waits for the pressure learns what the disk gives, and what each job has used of it lately; and that it is
// over. Nobody is blamed for what it used long ago.
func TestPressureNamesItsUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		var containers []cluster.ContainerID
		for range 2 {
			r.submit(submission(1))
			o := r.order(cluster.Start)
			r.fake.launched(o)
			containers = append(containers, o.Container)
		}
		span := func(seconds int, read, written int64) usage.Span {
			return usage.Span{Length: time.Duration(seconds) * time.Second, Known: usage.SetOf(usage.Read, usage.Written),
				Used: usage.Amounts{usage.Read: read << 20, usage.Written: written << 20}}
		}
		measured := func(spans ...[]usage.Span) {
			r.fake.measuring.Lock()
			defer r.fake.measuring.Unlock()
			r.fake.usage = map[cluster.ContainerID]usage.Usage{}
			for i, s := range spans {
				r.fake.usage[containers[i]] = usage.Usage{Spans: s}
			}
		}
		report := func(gives resource.Amount) {
			r.fake.events <- cluster.Event{Kind: cluster.NodePressed,
				Found: &cluster.Condition{Bound: resource.Vector{}.With(resource.Disk, gives)}}
		}
		type answer struct {
			Pressure
			err error
		}
		answers := make(chan answer, 1)
		ask := func() {
			go func() {
				p, err := r.Pressure(t.Context())
				answers <- answer{p, err}
			}()
			synctest.Wait()
		}
		measured([]usage.Span{span(10, 0, 1)}, []usage.Span{span(20, 1000, 1000)})
		ask()
		if len(answers) > 0 {
			t.Fatalf("before any report: %+v", <-answers)
		}
		report(20 * resource.MB)
		synctest.Wait()
		measured([]usage.Span{span(10, 0, 1), span(4, 40, 8)}, []usage.Span{span(24, 1000, 1000)})
		got := <-answers
		want := map[cluster.JobID]resource.Vector{1: resource.Vector{}.With(resource.Disk, 12*resource.MiB)}
		if got.err != nil || got.Gives[resource.Disk] != 20*resource.MB || got.Bounded || !reflect.DeepEqual(got.Uses, want) {
			t.Errorf("got %+v, want uses %v", got, want)
		}
		report(30 * resource.MB)
		report(0)
		synctest.Wait()
		ask()
		if got := <-answers; got.err != nil || !got.Gives.IsZero() || got.Uses != nil {
			t.Errorf("once it is over: %+v", got)
		}
		ask()
		for _, id := range containers {
			r.fake.ended(id, cluster.Succeeded, 0)
			r.wait(id.Task.Job)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-answers; got.err == nil {
			t.Errorf("once the driver has ended: %+v", got)
		}
	})
}
