package live

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// The machine's report of its containers' limits reaches the policy, also with the inventory, and is in the event log:
// a replay with it gives the same decisions, and a replay without it different ones.
func TestNodeMemoryReachesThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := policy.New("pufferfish", nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(cluster.Event{Kind: cluster.NodeMemory, Held: 800 * resource.MiB})}
		r.open()
		r.start(p)
		defer r.end()
		s := submission(1)
		s.Job.Class = cluster.Flex
		id := r.submit(s)
		synctest.Wait()
		r.noOrder()
		if why := r.job(id).Waiting; !strings.Contains(why, "needs 400MiB, and the node with most left has 224MiB") {
			t.Errorf("it waits because %q", why)
		}
		r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: 600 * resource.MiB}
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(id)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		header, log := readLog(t, r.EventLog())
		if at, ok := replay(t, header, log); !ok {
			t.Errorf("record %d of %d came out differently", at, len(log))
		}
		for i := range log {
			at := slices.IndexFunc(log[i].Events, func(e cluster.Event) bool { return e.Kind == cluster.NodeMemory })
			if at < 0 {
				continue
			}
			other := slices.Clone(log)
			other[i].Events = slices.Delete(slices.Clone(log[i].Events), at, at+1)
			if _, ok := replay(t, header, other); ok {
				t.Errorf("record %d reports memory, but no decision depends on it", i)
			}
		}
	})
}

// Memory that outlives its containers is not granted: the job waits, and says why, until it is gone.
func TestLeftoverIsNotGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(cluster.Event{Kind: cluster.NodeLeftover, Held: 700 * resource.MiB})}
		r.open()
		r.start(fifo(t))
		defer r.end()
		id := r.submit(submission(1))
		synctest.Wait()
		r.noOrder()
		e, err := r.Explain(t.Context(), id)
		if want := "no node has 400MiB free. 700MiB outlives the tasks that have used it: "; err != nil ||
			!strings.Contains(e.Why, want) {
			t.Errorf("it waits because %q, %v; want %q", e.Why, err, want)
		}
		s, err := r.Status(t.Context())
		if n := s.Nodes[0]; err != nil || n.LeftoverMemory != int64(700*resource.MiB) ||
			n.FreeMemory != int64(324*resource.MiB) || n.OverdrawnMemory != 0 {
			t.Errorf("status %+v, %v", n, err)
		}
		r.fake.events <- cluster.Event{Kind: cluster.NodeLeftover}
		o := r.order(cluster.Start)
		r.fake.launched(o)
		r.fake.events <- cluster.Event{Kind: cluster.NodeLeftover, Held: 800 * resource.MiB}
		synctest.Wait()
		if s, err := r.Status(t.Context()); err != nil || s.Nodes[0].FreeMemory != 0 ||
			s.Nodes[0].OverdrawnMemory != int64(176*resource.MiB) {
			t.Errorf("with more than is free: %+v, %v", s.Nodes[0], err)
		}
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(id)
	})
}

// A FLEX job that was submitted without a check of the machine's swap is treated like one submitted through the
// command: rejected in one sentence, or run as REGULAR if its programs can spill.
func TestFlexNeedsSwap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		r.fake.can.Swap = "this machine has none: run `bellows swap create --size 4GiB`"
		s := submission(1)
		s.Job.Class = cluster.Flex
		_, err := r.Submit(t.Context(), s)
		if err == nil || api.KindOf(err) != api.Conflict ||
			!strings.HasPrefix(err.Error(), "class flex: needs swap, and this machine has none: run `bellows swap create") {
			t.Errorf("error is %v", err)
		}
		s.Job.Stages[0].MinMemory, s.Job.Stages[0].Duration = 100*resource.MiB, time.Minute
		s.Job.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 2}
		r.submit(s)
		if o := r.order(cluster.Start); o.Envelope.Class != cluster.Regular || o.Envelope.Max != o.Grant[resource.Memory] {
			t.Errorf("without swap it is started as %s, %+v", o.Envelope.Class, o.Envelope)
		}
		r.fake.can.Swap = ""
		r.submit(s)
		if o := r.order(cluster.Start); o.Envelope.Class != cluster.Flex {
			t.Errorf("with swap it is started as %s", o.Envelope.Class)
		}
	})
}

// A container's maximum is bounded by the memory of its node, not of the largest node; containers rank by submission; a
// coordinator does not grow at all.
func TestEnvelopeIsOfTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := []cluster.Node{{Name: "n1", Capacity: resource.Of(2000, resource.GiB)},
			{ID: 1, Name: "n2", Capacity: resource.Of(8000, 4*resource.GiB)}}
		r := &rig{t: t, dir: t.TempDir(), fake: newFake(cluster.Event{Kind: cluster.NodeJoined, NewNode: &nodes[1]})}
		r.open()
		r.start(fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.Class = cluster.Flex
		s.Job.Stages[0].Duration = time.Minute
		var seen [2]bool
		for range 8 {
			id := r.submit(s)
			o := r.order(cluster.Start)
			e := o.Envelope
			if e.Class != cluster.Flex || e.Max != nodes[o.Node].Capacity[resource.Memory] || e.Rank != int(id) ||
				e.Duration != time.Minute {
				t.Errorf("on node %d it is started as %s, %+v", o.Node, e.Class, e)
			}
			seen[o.Node] = true
		}
		if !seen[0] || !seen[1] {
			t.Errorf("not all nodes were tried: %v", seen)
		}
		s.Job.Stages[0].Coordinator = true
		r.submit(s)
		if o := r.order(cluster.Start); o.Envelope.Class != cluster.Regular || o.Envelope.Max != o.Grant[resource.Memory] {
			t.Errorf("what coordinates is started as %s, %+v", o.Envelope.Class, o.Envelope)
		}
	})
}
