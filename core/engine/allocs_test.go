package engine_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
)

// TestDecisionsAllocateNothing: in steady state a step without forecasts allocates nothing, under any policy.
// Whatever a policy allocates per decision, a driver pays thousands of times per second.
func TestDecisionsAllocateNothing(t *testing.T) {
	const warmUp, steps = 5_000, 2_000
	var launch []cluster.Event
	driverAllocs, driverBytes := allocated(steps, func() { launch = append([]cluster.Event(nil), cluster.Event{}) })
	_ = launch
	for _, name := range policy.Names() {
		if !slices.ContainsFunc(stepped, func(c policyWith) bool { return c.policy == name }) {
			t.Errorf("no steps of %s are measured", name)
		}
	}
	for _, c := range stepped {
		t.Run(c.String(), func(t *testing.T) {
			full := newFullCluster(t, c.make(t), 100)
			for range warmUp {
				full.endOne(t)
			}
			allocs, bytes := allocated(steps, func() { full.endOne(t) })
			allocs, bytes = allocs-driverAllocs, bytes-driverBytes // the list of the launch
			if allocs > 0.02 || bytes > 5 {
				t.Errorf("a step allocates %.3f times, %.1f bytes; want none", allocs, bytes)
			}
		})
	}
}

// allocated returns how often f allocates, and how many bytes, in the mean.
func allocated(times int, f func()) (allocs, bytes float64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		f()
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(times),
		float64(after.TotalAlloc-before.TotalAlloc) / float64(times)
}
