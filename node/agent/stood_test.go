package agent

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/node/cgroup"
	"github.com/bellows-rm/bellows/node/keeper"
)

// The samples show how long a container stood still, whoever stopped it, also after a restart of the agent; and which
// bound its disk has.
func TestSamplesKnowStillness(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "while :; do :; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	c := b.container(o.Container)
	if _, ok := c.group.Has(cgroup.Freezer); !ok {
		t.Skip("needs a freezer")
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	begun, want := time.Now(), time.Duration(0)
	time.Sleep(500 * time.Millisecond)
	stands := func(length time.Duration) {
		from := time.Now()
		time.Sleep(length)
		want += time.Since(from)
	}
	do(c.kept.Stop(t.Context(), keeper.ByMemory))
	stands(time.Second)
	do(c.kept.Stop(t.Context(), keeper.ByBackOff))
	stands(500 * time.Millisecond)
	do(c.kept.Release(t.Context(), keeper.ByMemory|keeper.BySwapping)) // the back-off still holds it
	stands(500 * time.Millisecond)
	do(c.kept.Breathe(t.Context(), keeper.ByBackOff))
	time.Sleep(300 * time.Millisecond)
	do(c.kept.Release(t.Context(), keeper.ByBackOff))
	b.monitor.sample()
	check := func(when string) usage.Usage {
		t.Helper()
		u := b.usageOf(o.Container)
		if most := time.Since(begun) - 700*time.Millisecond; u.Suspended() < want-10*time.Millisecond ||
			u.Suspended() > min(most, want+time.Second) {
			t.Errorf("%s: it stood still for %v, want %v: %+v", when, u.Suspended(), want, u.Spans)
		}
		return u
	}
	u := check("before the restart")
	for i := range u.Spans {
		if s := &u.Spans[i]; s.Suspended == s.Length && s.Used[usage.CPU] > 50 {
			t.Errorf("it stood still and used %d ms of CPU time: %+v", s.Used[usage.CPU], s)
		}
	}
	b.reopen()
	b.next(cluster.TaskAdopted)
	c = b.container(o.Container)
	do(c.kept.Stop(t.Context(), keeper.ByBackOff))
	stands(time.Second)
	do(c.kept.Release(t.Context(), keeper.ByBackOff))
	b.monitor.sample()
	check("after the restart")
}
