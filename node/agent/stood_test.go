package agent

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// The samples show how long a container stood still, whoever stopped it, also after a restart of the agent; and which bound its disk has.
func TestSamplesKnowStillness(t *testing.T) {
	b := newBench(t)
	o := b.order("sh", "-c", "while :; do :; done")
	b.Apply([]cluster.Order{o})
	b.next(cluster.DecisionDone)
	c := b.containers[o.Container]
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
	do(b.suspend(t.Context(), c, c.spec.envelope()))
	stands(time.Second)
	do(c.change(t.Context(), c.heldByBackOff(dutyStand)))
	stands(500 * time.Millisecond)
	do(b.resume(t.Context(), c)) // the back-off still holds it
	stands(500 * time.Millisecond)
	do(c.change(t.Context(), c.heldByBackOff(dutyBreathe)))
	time.Sleep(300 * time.Millisecond)
	do(c.change(t.Context(), c.heldByBackOff(dutyRun)))
	b.monitor.sample()
	check := func(when string) usage.Usage {
		t.Helper()
		u := b.usageOf(o.Container)
		if most := time.Since(begun) - 700*time.Millisecond; u.Still() < want-10*time.Millisecond || u.Still() > min(most, want+time.Second) {
			t.Errorf("%s: it stood still for %v, want %v: %+v", when, u.Still(), want, u.Spans)
		}
		return u
	}
	u := check("before the restart")
	for i := range u.Spans {
		if s := &u.Spans[i]; s.Still == s.Length && s.Used[usage.CPU] > 50 {
			t.Errorf("it stood still and used %d ms of CPU time: %+v", s.Used[usage.CPU], s)
		}
	}
	b.reopen()
	b.next(cluster.TaskAdopted)
	c = b.containers[o.Container]
	do(c.change(t.Context(), c.heldByBackOff(dutyStand)))
	stands(time.Second)
	do(c.change(t.Context(), c.heldByBackOff(dutyRun)))
	b.monitor.sample()
	check("after the restart")

	s := stance{disk: cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(5)}}
	c.stood.note(&s, c.group)
	if _, bound := c.stood.read(); bound != 5 {
		t.Errorf("bound %d", bound)
	}
	s.disk.Rate = cgroup.Unlimited()
	c.stood.note(&s, c.group)
	if _, bound := c.stood.read(); bound != 0 {
		t.Errorf("bound %d after its end", bound)
	}
}
