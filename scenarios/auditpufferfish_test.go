package scenarios

import (
	"strconv"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// available is the memory of a node that is neither granted nor used by FLEX containers that have grown.
func (a *auditor) available(n cluster.Node) resource.Amount {
	left := n.Capacity[resource.Memory] - a.holds[n.ID]
	for _, j := range a.jobs {
		for _, t := range j.tasks {
			if t.node == n.ID && t.state == booked {
				left -= t.grant[resource.Memory]
			}
		}
	}
	return max(0, min(left, a.free(n)[resource.Memory]))
}

// leaves reports whether a FLEX container may start on a node where the grants leave room for it.
func (a *auditor) leaves(n cluster.Node, need resource.Vector) bool {
	room, stop := 1.0, 1.0 // of a policy without these settings
	if a.c.name == "pufferfish" {
		room, _ = strconv.ParseFloat(a.flag("room"), 64)
		stop, _ = strconv.ParseFloat(a.flag("stop"), 64)
	}
	memory := float64(n.Capacity[resource.Memory])
	return float64(a.available(n)) >= room*float64(need[resource.Memory])+(1-stop)*memory
}

// knowsWhatIsLeft checks that a container starts on the node with the most memory available and, if it is FLEX, only
// where enough is available. Where nodes have heartbeats, the policy chooses among fewer nodes unless its reason says
// otherwise; with count-quantile, by another order.
func (a *auditor) knowsWhatIsLeft(d *cluster.Decision, class cluster.Class) {
	chosen := a.nodes[d.Node]
	if class == cluster.Flex && !a.leaves(chosen, d.Grant) {
		a.fail("FLEX task %s is started on node %s, which has %d bytes available", d.Task, chosen.Name, a.available(chosen))
	}
	if int64(a.available(chosen)) != d.Reason.B {
		a.fail("task %s is started where %d bytes are available, but the reason says %d", d.Task, a.available(chosen),
			d.Reason.B)
	}
	most := d.Reason.Code == cluster.FitsMostAvailable || d.Reason.Code == cluster.FitsNearData
	if a.s.heartbeat > 0 && !most || a.flag("count-quantile") != "off" {
		return
	}
	for _, n := range a.nodes {
		if d.Grant.FitsIn(a.free(n)) && a.available(n) > a.available(chosen) {
			a.fail("task %s is started on node %s, but node %s has more available", d.Task, chosen.Name, n.Name)
		}
	}
}
