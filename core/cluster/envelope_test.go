package cluster

import (
	"testing"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

// A REGULAR container keeps its grant. The limit of a FLEX container is bounded by its stage and its node, and is never
// below its grant.
func TestEnvelope(t *testing.T) {
	const gib = resource.GiB
	for _, c := range []struct {
		name                string
		class               Class
		coordinator         bool
		most, granted, node resource.Amount
		want                Envelope
	}{
		{"regular", Regular, false, 0, gib, 8 * gib, Envelope{Min: gib, Max: gib, Rank: 7}},
		{"coordinator", Flex, true, 0, gib, 8 * gib, Envelope{Min: gib, Max: gib, Rank: 7}},
		{"flex", Flex, false, 0, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 8 * gib}},
		{"flex with a maximum", Flex, false, 3 * gib, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 3 * gib}},
		{"flex on a smaller node", Flex, false, 9 * gib, gib, 8 * gib, Envelope{Class: Flex, Min: gib, Max: 8 * gib}},
		{"granted more than its maximum", Flex, false, gib, 2 * gib, 8 * gib,
			Envelope{Class: Flex, Min: 2 * gib, Max: 2 * gib}},
	} {
		j := Job{ID: 7, Class: c.class,
			Stages: []Stage{{MaxMemory: c.most, Coordinator: c.coordinator, Duration: time.Minute, HeartbeatTimeout: time.Hour}}}
		// a program is also silent while it is paused or throttled
		if c.want.HeartbeatTimeout = time.Hour; c.want.Class == Flex {
			c.want.Rank, c.want.Duration = 7, time.Minute
		}
		if got := j.Envelope(0, c.granted, c.node); got != c.want {
			t.Errorf("%s: envelope is %+v, want %+v", c.name, got, c.want)
		}
	}
}
