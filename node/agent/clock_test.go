package agent

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// The calendar is an hour ahead of the engine's clock, or an hour behind it, because it was set or the machine slept:
// what is ordered until a time does not end at once, and does not last for an hour longer.
func TestCalendarIsSet(t *testing.T) {
	for _, c := range []struct {
		name       string
		off, lasts time.Duration // of the engine's clock; of the throttle
		ends       bool
	}{
		{"ahead", -time.Hour, time.Hour, false},
		{"behind", time.Hour, 100 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			calendar := newClock()
			b := &bench{t: t, dir: t.TempDir(), engine: func() timeline.Time { return calendar().Add(c.off) }}
			b.open()
			t.Cleanup(b.cleanUp)
			h := newHeldOn(b, cluster.Envelope{})
			h.level(0, b.engine().Add(time.Minute))
			h.next(cluster.DecisionDone)
			h.last++
			o := h.start
			o.Decision = cluster.Decision{ID: h.last, Kind: cluster.Throttle, Task: o.Task,
				Bound: resource.Vector{}.With(resource.Disk, resource.MiB), At: b.engine().Add(c.lasts)}
			h.Apply([]cluster.Order{o})
			h.next(cluster.DecisionDone)
			if c.ends {
				await(t, "the end of the throttle", func() bool { return !h.c.bounded(t) })
			} else if !h.c.bounded(t) {
				t.Error("the throttle has ended at once")
			}
			h.stands(true)
		})
	}
}
