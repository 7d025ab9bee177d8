package keeper

import (
	"testing"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// A container is stopped while any party holds it; breaths override all of them; with heartbeats it keeps a little
// CPU time.
func TestStance(t *testing.T) {
	cpu := func(m int64) cgroup.Limits { return cgroup.Limits{CPUMillicores: cgroup.At(m)} }
	granted := resource.Of(1500, resource.GiB)
	for _, c := range []struct {
		name   string
		stance stance
		limits cgroup.Limits
		frozen bool
	}{
		{"runs", stance{}, cpu(1500), false},
		{"may use more than it is granted", stance{mostCPU: 4000}, cpu(4000), false},
		{"is granted more than its share", stance{mostCPU: 1000}, cpu(1500), false},
		{"suspended", stance{still: ByMemory}, cgroup.Limits{}, true},
		{"swapped out", stance{still: BySwapping}, cgroup.Limits{}, true},
		{"suspended and swapped out", stance{still: ByMemory | BySwapping}, cgroup.Limits{}, true},
		{"suspended with heartbeats", stance{still: ByMemory, slows: true, mostCPU: 4000}, cpu(SuspendedMillicores), false},
		{"swapped out with heartbeats", stance{still: ByMemory | BySwapping, slows: true}, cgroup.Limits{}, true},
		{"breath", stance{still: ByMemory, breaths: ByMemory}, cpu(1500), false},
		{"breath with heartbeats", stance{still: ByMemory, slows: true, breaths: ByMemory}, cpu(1500), false},
		{"runs with heartbeats", stance{slows: true}, cpu(1500), false},
		{"throttled", stance{still: ByBackOff}, cgroup.Limits{}, true},
		{"throttled with heartbeats", stance{still: ByBackOff, slows: true}, cpu(SuspendedMillicores), false},
		{"throttled and suspended", stance{still: ByBackOff | ByMemory}, cgroup.Limits{}, true},
		{"a breath of the back-off", stance{still: ByMemory, breaths: ByBackOff}, cpu(1500), false},
		{"disk", stance{disk: diskOf(7)}, cgroup.Limits{CPUMillicores: cgroup.At(1500), Disk: diskOf(7)}, false},
		{"disk while suspended", stance{disk: diskOf(7), still: ByMemory}, cgroup.Limits{Disk: diskOf(7)}, true},
		{"raised", stance{raise: 5}, cgroup.Limits{CPUMillicores: cgroup.At(1500), MemoryBytes: cgroup.At(5)}, false},
		{"raised while suspended", stance{still: ByMemory, raise: 5}, cgroup.Limits{MemoryBytes: cgroup.At(5)}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.stance.grant = granted
			if limits, frozen := c.stance.wants(); limits != c.limits || frozen != c.frozen {
				t.Errorf("wants %+v, frozen %v; want %+v, %v", limits, frozen, c.limits, c.frozen)
			}
		})
	}
	if limits, frozen := (&stance{}).wants(); limits != (cgroup.Limits{}) || frozen {
		t.Errorf("without a grant it wants %+v, frozen %v", limits, frozen)
	}
}

func diskOf(rate int64) cgroup.DiskLimit {
	return cgroup.DiskLimit{Device: "8:0", Rate: cgroup.At(rate)}
}
