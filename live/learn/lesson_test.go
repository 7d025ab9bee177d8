package learn

import (
	"testing"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/usage"
	"github.com/bellows-rm/bellows/live/store"
)

// A task that was granted less than its ideal memory tells a lower bound of it, unless what is reserved is learned:
// that may have been less when it started.
func TestUnderSizedRunsTellALowerBound(t *testing.T) {
	for _, c := range []struct {
		grant   resource.Amount
		elastic bool
		reserve cluster.ReserveBy
		bound   bool
	}{
		{resource.GiB, true, cluster.ReserveStated, false},
		{resource.GiB / 2, true, cluster.ReserveStated, true},
		{resource.GiB / 2, false, cluster.ReserveStated, false},
		{resource.GiB / 2, false, cluster.ReserveLearned, false},
	} {
		j := cluster.Job{Reserve: c.reserve, Stages: []cluster.Stage{{Ideal: resource.Of(1000, resource.GiB)}}}
		if c.elastic {
			j.Stages[0].MinMemory = resource.MiB
			j.Stages[0].Elasticity = cluster.Elasticity{Kind: cluster.Step, Factor: 2}
		}
		why := leastMemory(usage.Usage{}, &store.Task{Grant: resource.Of(1000, c.grant)}, &j, resource.MiB)
		if (why != "") != c.bound {
			t.Errorf("%+v: %q", c, why)
		}
	}
}
