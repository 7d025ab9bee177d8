package engine_test

import "testing"

// TestAheadIsFast notices when a decision of prophet takes several times the work that it should: BenchmarkAhead
// measures how much it takes. The cluster is smaller than there because the work of a decision does not depend on
// nodes that did not change.
func TestAheadIsFast(t *testing.T) {
	const atMost, atLeast = 8, 5000
	for _, executors := range []int{1, 4} {
		c := newAheadCluster(t, "prophet", 100, executors)
		for range 2000 {
			c.endOne(t) // until the memory that is reused is large enough
		}
		before := c.started
		allocations := testing.AllocsPerRun(2000, func() { c.endOne(t) })
		if c.started-before < 1000 {
			t.Errorf("%d executors: only %d have started", executors, c.started-before)
		}
		if allocations > atMost {
			t.Errorf("%d executors: %v allocations per executor that ends and whatever starts then, want at most %d",
				executors, allocations, atMost)
		}
		before, used := c.started, userTime(t)
		for range 3000 {
			c.endOne(t)
		}
		if rate := float64(c.started-before) / (userTime(t) - used).Seconds(); rate < atLeast {
			t.Errorf("%d executors: %.0f starts per second of CPU time, want at least %d", executors, rate, atLeast)
		} else {
			t.Logf("%d executors: %v allocations, %.0f starts per second of CPU time", executors, allocations, rate)
		}
	}
}
