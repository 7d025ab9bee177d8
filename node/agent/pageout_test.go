package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/internal/testswap"
)

// outBench is a node of 512 MiB with a container of 256 MiB whose program holds 120 MiB, and checks them in the end.
type outBench struct {
	*holdBench
	gate string
}

func newOut(t *testing.T, class cluster.Class, swap int64) *outBench {
	if swap > 0 {
		testswap.Need(t, swap)
	}
	b := &bench{t: t, dir: t.TempDir(), memory: 512 * resource.MiB}
	b.open()
	t.Cleanup(b.cleanUp)
	gate := filepath.Join(t.TempDir(), "gate")
	h := &holdBench{bench: b, start: b.order(os.Args[0], "pattern", "120", gate), last: 100}
	h.start.Grant = resource.Of(500, 256*resource.MiB)
	h.start.Envelope = cluster.Envelope{Class: class, Min: 256 * resource.MiB, Max: 256 * resource.MiB, Rank: 1}
	b.Apply([]cluster.Order{h.start})
	b.next(cluster.DecisionDone)
	b.until("what it holds", h.start.Container, func(r cluster.Reading) bool { return *r.Anonymous >= 119<<20 })
	h.c = b.container(h.start.Container)
	return &outBench{h, gate}
}

// pageOut orders that the container be paused, with its memory.
func (o *outBench) pageOut() { o.pageOutFor(cluster.HeldByOwner, 0) }

// pageOutFor is pageOut on behalf of a holder, until a time if that is leveling.
func (o *outBench) pageOutFor(by cluster.Holders, until timeline.Time) {
	o.last++
	order := o.start
	order.Decision = cluster.Decision{ID: o.last, Kind: cluster.Suspend, Task: o.start.Task, By: by, PageOut: true,
		At: until}
	o.Apply([]cluster.Order{order})
}

// outOf waits until its memory is reported to be out, or back.
func (o *outBench) outOf(is bool) cluster.Condition {
	o.t.Helper()
	for {
		e := o.next(cluster.TaskPagedOut)
		if c := e.Condition(); c.Out > 0 == is {
			return c
		}
	}
}

// ends lets the program check its memory and end.
func (o *outBench) ends() {
	o.t.Helper()
	// If the program ended before, nobody would need to remove it.
	await(o.t, "the removal of the record", func() bool { return !o.c.recorded(o.t).Out })
	o.openGate(o.gate, 1)
}

// Memory that leveling has paged out comes back by itself some time after the end of the hold, because no engine wants
// it back.
func TestPagedOutByLevelingComesBack(t *testing.T) {
	o := newOut(t, cluster.Regular, 512<<20)
	o.pageOutFor(cluster.HeldByLeveling, now().Add(time.Second))
	o.outOf(true)
	o.outOf(false)
	o.next(cluster.TaskResumed)
	o.stands(false)
	o.ends()
}

// A paused container gives its memory back, which others get; it stays out over a restart. It comes back when there
// is memory for it again, and nothing is lost.
func TestPageOut(t *testing.T) {
	for _, class := range []cluster.Class{cluster.Regular, cluster.Flex} {
		t.Run(class.String(), func(t *testing.T) {
			o := newOut(t, class, 512<<20)
			o.pageOut()
			o.next(cluster.TaskSuspended)
			if c := o.outOf(true); c.Out < 220*resource.MiB || c.Stays != "" {
				t.Errorf("out are %d MiB: %s", c.Out>>20, c.Stays)
			}
			if r := o.reading(o.start.Container); *r.Limit > 36<<20 || *r.Swap < 100<<20 {
				t.Errorf("it holds %s", show(r))
			}
			other := o.order("sleep", "1000")
			other.Grant = resource.Of(500, 460*resource.MiB)
			other.Envelope = cluster.Envelope{Class: cluster.Regular, Min: 460 * resource.MiB, Max: 460 * resource.MiB, Rank: 2}
			o.Apply([]cluster.Order{other})
			for o.next(cluster.DecisionDone).Task != other.Task {
			}

			o.reopen()
			var found cluster.Condition
			for found.Out == 0 {
				e := o.next(cluster.TaskAdopted)
				found = e.Condition()
			}
			if found.Out < 220*resource.MiB || !found.PageOut || found.HeldBy != cluster.HeldByOwner {
				t.Errorf("found as %+v", found)
			}
			o.next(cluster.Synced)
			o.c = o.container(o.start.Container)
			o.outOf(true)
			o.stands(true)

			o.hold(0)
			if e := o.next(cluster.TaskSuspended); e.By != cluster.HeldByMemory {
				t.Errorf("it waits by %s", e.By)
			}
			r := o.until("a reason", o.start.Container, func(r cluster.Reading) bool {
				return r.State == cluster.ContainerSuspended && r.Why != ""
			})
			if !strings.Contains(r.Why, "waits for its memory") || *r.Limit > 36<<20 {
				t.Errorf("it waits as %s", show(r))
			}
			o.stands(true)
			o.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: other.Container}})
			o.outOf(false)
			o.next(cluster.TaskResumed)
			if r := o.reading(o.start.Container); *r.Limit != 256<<20 {
				t.Errorf("back it may hold %s", show(r))
			}
			for o.next(cluster.TaskEnded).Task != other.Task {
			}
			o.ends()
		})
	}
}

// A policy stops a FLEX container before a phase that needs more memory, with what it has paged out, and gives it
// that memory before it goes on: it stays stopped until all of it is free.
func TestPageOutBeforeALargerPhase(t *testing.T) {
	o := newOut(t, cluster.Flex, 512<<20)
	o.pageOutFor(cluster.HeldByLeveling, now().Add(time.Hour))
	before := o.outOf(true)
	other := o.order("sleep", "1000")
	other.Grant = resource.Of(500, 300*resource.MiB)
	other.Envelope = cluster.Envelope{Class: cluster.Regular, Min: 300 * resource.MiB, Max: 300 * resource.MiB, Rank: 2}
	o.Apply([]cluster.Order{other})
	for o.next(cluster.DecisionDone).Task != other.Task {
	}

	grant := grantOf(500, 384)
	resize := o.start
	resize.Launch = nil
	resize.Decision = cluster.Decision{ID: o.last + 1, Kind: cluster.Resize, Task: o.start.Task, Grant: grant,
		Envelope: cluster.Envelope{Class: cluster.Flex, Min: 384 * resource.MiB, Max: 384 * resource.MiB, Rank: 1},
		Reason:   cluster.BecausePhaseDemands(1, grant)}
	o.Apply([]cluster.Order{resize})
	if e := o.nextOf(cluster.DecisionDone, cluster.DecisionFailed); e.Kind != cluster.DecisionDone ||
		e.Decision != o.last+1 {
		t.Fatalf("resized while it is out: %+v", e)
	}
	if more := o.c.kept.Out() - before.Out; more != 128*resource.MiB {
		t.Errorf("%d MiB more are out, want 128", more>>20)
	}
	o.last++
	o.hold(0)
	o.until("a reason", o.start.Container, func(r cluster.Reading) bool {
		return strings.Contains(r.Why, "waits for its memory")
	})
	o.stands(true)
	o.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: other.Container}})
	o.outOf(false)
	o.next(cluster.TaskResumed)
	if r := o.reading(o.start.Container); *r.Limit != 384<<20 {
		t.Errorf("back it may hold %s", show(r))
	}
	for o.next(cluster.TaskEnded).Task != other.Task {
	}
	o.ends()
}

// Orders and restarts that come while memory is on its way leave the container as the last order wants it, and
// nothing is lost.
func TestPageOutTurnsRound(t *testing.T) {
	o := newOut(t, cluster.Regular, 512<<20)
	for i := range 4 {
		o.pageOut()
		time.Sleep(time.Duration(i) * 20 * time.Millisecond) // The agent is somewhere on the way, or has not begun.
		o.hold(0)
		time.Sleep(time.Duration(i) * 10 * time.Millisecond)
	}
	o.pageOut()
	o.reopen()
	o.next(cluster.Synced)
	o.c = o.container(o.start.Container)
	o.pageOut() // as the engine orders, unless it was carried out
	o.until("little memory", o.start.Container, func(r cluster.Reading) bool { return *r.Limit < 36<<20 })
	o.hold(0)
	o.reopen()
	o.next(cluster.Synced)
	o.c = o.container(o.start.Container)
	o.hold(0)
	o.until("its memory", o.start.Container, func(r cluster.Reading) bool { return *r.Limit == 256<<20 })
	o.ends()
}

// If memory cannot leave, or not all of it, the container keeps that, and the report says why.
func TestPageOutStays(t *testing.T) {
	t.Run("little swap", func(t *testing.T) {
		testswap.Need(t, 64<<20)
		needLittleSwap(t, 100<<20)
		o := newOut(t, cluster.Regular, 0)
		o.pageOut()
		c := o.outOf(true)
		if r := o.reading(o.start.Container); !strings.Contains(c.Stays, "stay in memory: swap has room for") ||
			*r.Anonymous < 50<<20 || *r.Limit < *r.Anonymous {
			t.Errorf("%q, and it holds %s", c.Stays, show(r))
		}
		o.hold(0)
		o.outOf(false)
		o.ends()
	})
	t.Run("heartbeats", func(t *testing.T) {
		b := newHeldOf(t, cluster.Envelope{HeartbeatTimeout: time.Minute})
		o := &outBench{b, ""}
		o.pageOut()
		e := o.next(cluster.TaskPagedOut)
		if c := e.Condition(); c.Out != 0 || !strings.Contains(c.Stays, "heartbeats") {
			t.Errorf("%+v", c)
		}
	})
}

// A container whose memory is out can be killed, and stays as it is without an agent.
func TestKillOut(t *testing.T) {
	o := newOut(t, cluster.Flex, 512<<20)
	o.pageOut()
	o.outOf(true)
	record := o.c.recorded(o.t)
	if err := release(o.c.spec, &record, false); err != nil {
		t.Fatal(err)
	}
	o.stands(true)
	if r := o.reading(o.start.Container); *r.Limit > 36<<20 {
		t.Errorf("without an agent it may hold %s", show(r))
	}
	o.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: o.start.Container}})
	if e := o.next(cluster.TaskEnded); e.Outcome != cluster.Killed {
		t.Errorf("it ended as %s: %s", e.Outcome, e.Detail)
	}
}

// BenchmarkPageOut pages a REGULAR container out and back whose program changes all of its 384 MiB again and again:
// from the order until the memory is reported to be out, and until all of it is in memory again.
func BenchmarkPageOut(b *testing.B) {
	testswap.Need(b, 1<<30)
	a := benchAgent(b, resource.GiB)
	start := benchOrder(a, 512*resource.MiB, os.Args[0], "hold", fmt.Sprint(heldMiB), "1000")
	start.Envelope = cluster.Envelope{Class: cluster.Regular, Min: 512 * resource.MiB, Max: 512 * resource.MiB, Rank: 1}
	a.Apply([]cluster.Order{start})
	wait(b, a, cluster.DecisionDone)
	id := start.Container
	whole := func() {
		for r := a.Readings()[id]; r.Anonymous == nil || *r.Anonymous < (heldMiB-1)<<20; r = a.Readings()[id] {
			time.Sleep(2 * time.Millisecond)
		}
	}
	whole()
	turn := func(kind cluster.DecisionKind, by cluster.Holders, out bool) time.Duration {
		o := start
		o.Decision = cluster.Decision{ID: 100, Kind: kind, Task: id.Task, By: by, PageOut: out}
		began := time.Now()
		a.Apply([]cluster.Order{o})
		for is := !out; is != out; {
			e := wait(b, a, cluster.TaskPagedOut)
			is = e.Condition().Out > 0
		}
		if !out {
			whole()
		}
		return time.Since(began)
	}
	var away, back spread
	for range b.N {
		for range 5 {
			out := turn(cluster.Suspend, cluster.HeldByOwner, true)
			gb := float64(*a.Readings()[id].Swap) / 1e9
			in := turn(cluster.Resume, 0, false)
			away, back = append(away, out.Seconds()/gb), append(back, in.Seconds()/gb)
			time.Sleep(time.Second) // It changes all of its pages.
		}
	}
	away.report(b, "s/GB-out")
	back.report(b, "s/GB-in")
	a.Apply([]cluster.Order{{Decision: cluster.Decision{Kind: cluster.Kill}, Container: id}})
	wait(b, a, cluster.TaskEnded)
}
