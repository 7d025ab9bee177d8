package live

import (
	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/live/api"
)

// stageOf returns the view of a stage that has not started.
func stageOf(j *cluster.Job, i int) api.Stage {
	s := j.Stages[i]
	s.Command = cluster.Command{Timeout: s.Timeout}
	return api.Stage{Stage: s, Class: j.Class, Pending: s.Tasks, Elasticity: s.Elasticity.String(),
		CPUMillicores: int64(s.Ideal[resource.CPU]), IdealBytes: int64(s.Ideal[resource.Memory]),
		DurationSeconds: s.Duration.Seconds(), TimeoutSeconds: s.Timeout.Seconds()}
}

func grantOf(g resource.Vector) api.Grant {
	return api.Grant{CPUMillicores: int64(g[resource.CPU]), MemoryBytes: int64(g[resource.Memory]),
		Disk: int64(g[resource.Disk]), Network: int64(g[resource.Network])}
}

// nodeOf returns the view of a node whose containers have not been measured.
func nodeOf(n *book.NodeState) api.Node {
	free := n.Spare().Max(resource.Vector{})
	known := func(k resource.Kind) *int64 {
		if n.Unknown.Has(k) {
			return nil
		}
		return new(int64(free[k]))
	}
	return api.Node{Name: n.Name, CPU: int64(n.Capacity[resource.CPU]), Memory: int64(n.Capacity[resource.Memory]),
		FreeCPU: int64(free[resource.CPU]), OverdrawnCPU: int64(n.Overdrawn()[resource.CPU]),
		FreeMemory: int64(free[resource.Memory]), HeldMemory: int64(n.Held),
		LeftoverMemory: int64(n.Leftover), OverdrawnMemory: max(0, -int64(n.Spare()[resource.Memory])),
		FreeDisk: known(resource.Disk), FreeNetwork: known(resource.Network), Disk: int64(n.Capacity[resource.Disk]),
		DiskGives: int64(n.Pressed[resource.Disk]), Network: int64(n.Capacity[resource.Network]),
		Unknown: n.Unknown.Fields(), Leveling: levelingOf(n)}
}
