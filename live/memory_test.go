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
	"github.com/bellows-rm/bellows/live/kept"
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

// What is left of a node is what a start finds: not what FLEX containers hold that have grown beyond their grants, and
// nothing while the node starts nothing.
func TestGrownIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.Class, s.Job.Stages[0].Ideal[resource.Memory] = cluster.Flex, 128*resource.MiB
		id := r.submit(s)
		o := r.order(cluster.Start)
		r.fake.launched(o)
		look := func(when string, left, limits resource.Amount) {
			t.Helper()
			synctest.Wait()
			status, err := r.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n := &status.Nodes[0]; n.Reserved() != int64(128*resource.MiB) || n.LeftMemory != int64(left) ||
				n.Holds() != int64(limits) {
				t.Errorf("%s: %d are reserved, %d are in limits and %d left; want %d, %d and %d", when, n.Reserved(), n.Holds(),
					n.LeftMemory, 128*resource.MiB, limits, left)
			}
		}
		look("as started", 896*resource.MiB, 128*resource.MiB)
		r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: 1012 * resource.MiB}
		look("grown", 12*resource.MiB, 1012*resource.MiB)
		r.fake.events <- cluster.Event{Kind: cluster.NodeLeftover, Held: 8 * resource.MiB}
		look("beside memory that outlives tasks", 4*resource.MiB, 1012*resource.MiB)
		r.fake.events <- cluster.Event{Kind: cluster.NodeMemory, Held: 32 * resource.MiB}
		look("squeezed", 888*resource.MiB, 128*resource.MiB)
		r.fake.ended(o.Container, cluster.Succeeded, 0)
		r.wait(id)
	})
}

// What was asked for tasks, is reserved for them and used is added up, of those that run and of those that have
// ended. A task of which no limit was asked counts by what is reserved and used alone.
func TestSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(1)
		s.Job.Stages[0].Ideal = resource.Of(500, 100*resource.MiB)
		box := r.submit(s)
		first := r.order(cluster.Start)
		s.Job.Class, s.Job.Stages[0].MaxMemory = cluster.Flex, 300*resource.MiB
		grows := r.submit(s)
		second := r.order(cluster.Start)
		s.Job.Stages[0].MaxMemory = 0
		open := r.submit(s)
		third := r.order(cluster.Start)
		r.fake.readings = map[cluster.ContainerID]cluster.Reading{}
		for i, o := range []cluster.Order{first, second, third} {
			r.fake.launched(o)
			r.fake.readings[o.Container] = cluster.Reading{Anonymous: new(int64(i+1) << 20), Swap: new(int64(1 << 20))}
		}
		synctest.Wait()
		time.Sleep(kept.Old + 1)
		look := func(now, past api.SlackOf) {
			t.Helper()
			synctest.Wait()
			s, err := r.Status(t.Context())
			if err != nil || s.Slack != (api.Slack{Now: now, Past: past}) || r.Metrics().Past != past {
				t.Errorf("%v: now %+v, want %+v; before %+v, want %+v", err, s.Slack.Now, now, s.Slack.Past, past)
			}
		}
		look(api.SlackOf{Tasks: 3, Open: 1, Asked: 400 << 20, Reserved: 300 << 20, Used: 9 << 20}, api.SlackOf{})
		asked := map[cluster.JobID]int64{box: 100 << 20, grows: 300 << 20, open: 0}
		for id, want := range asked {
			if got := r.job(id).Tasks[0].AskedBytes; got != want {
				t.Errorf("of job %d %d are asked, want %d", id, got, want)
			}
		}
		for i, o := range []cluster.Order{first, second, third} {
			r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: 1, Outcome: cluster.Succeeded,
				Exit: &cluster.Exit{Started: 1, Ended: 2, Used: resource.Amount(50*i) * resource.MiB}}
		}
		r.wait(open)
		look(api.SlackOf{}, api.SlackOf{Tasks: 2, Open: 1, Asked: 300 << 20, Reserved: 200 << 20, Used: 150 << 20})
	})
}

// A task that the memory manager requeues runs again, and the run is no attempt; its record says why it ended.
func TestRequeuedTaskRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, fifo(t))
		defer r.end()
		s := submission(2)
		s.Job.Class = cluster.Flex
		id := r.submit(s)
		o, other := r.order(cluster.Start), r.order(cluster.Start)
		if !o.Envelope.Requeue || !other.Envelope.Requeue {
			t.Errorf("one of several tasks may run again: %+v", o.Envelope)
		}
		r.fake.launched(o)
		r.fake.launched(other)
		const why = "requeued: job 1, before it in the order, needed the memory; it runs again when there is room"
		r.fake.events <- cluster.Event{Kind: cluster.TaskEnded, Task: o.Task, Run: o.Container.Run,
			Outcome: cluster.Preempted, Detail: why}
		again := r.order(cluster.Start)
		if again.Task != o.Task || again.Container.Run != o.Container.Run+1 {
			t.Errorf("run %v follows %v", again.Container, o.Container)
		}
		r.fake.launched(again)
		synctest.Wait()
		if e := r.job(id).Earlier; len(e) != 1 || e[0].Outcome != cluster.Preempted || e[0].Detail != why {
			t.Errorf("the earlier run is shown as %+v", e)
		}
		r.fake.ended(again.Container, cluster.Succeeded, 0)
		r.fake.ended(other.Container, cluster.Succeeded, 0)
		if j := r.wait(id); j.Status != cluster.StatusSucceeded {
			t.Errorf("the job has ended: %s, %s", j.Status, j.Detail)
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
