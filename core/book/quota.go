package book

import (
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// Envelope returns the envelope of a container of a stage of j that is granted the given bytes on n. Of the quota of
// memory of its owner it has the part that belongs to n: as large a part as that of n of the memory of all nodes. So
// the parts add up to the quota, whatever containers grow to on each of the nodes.
func (s *Snapshot) Envelope(j *cluster.Job, stage int, granted resource.Amount, n *cluster.Node) cluster.Envelope {
	e := j.Envelope(stage, granted, n.Capacity[resource.Memory])
	if e.Need > 0 && n.Swap > 0 { // it may have been granted what it soon needs
		e.Need = max(e.Need, min(e.Max, j.Stages[stage].Ideal[resource.Memory]))
	}
	quota := s.gate.quotas.Of(cluster.Party{Name: j.Owner}, cluster.QuotaMemory).Most
	if quota == cluster.Unlimited || j.Owner == "" {
		return e
	}
	part := 1.0
	if all, here := s.Capacity[resource.Memory], n.Capacity[resource.Memory]; all > here {
		part = float64(here) / float64(all)
	}
	return e.Within(j.Owner, resource.Amount(part*float64(quota)))
}

// Shares reports whether a FLEX task of an owner may start on n although the memory, bytes, is not available: other
// owners have FLEX tasks there, and with it the owner would hold no more than an equal part of what REGULAR tasks
// leave. The memory manager takes it from those who hold more: see core/memory/share.go.
func (n *NodeState) Shares(owner string, memory resource.Amount) bool {
	rest, others := n.Capacity[resource.Memory]-n.Leftover, 0
	for i, t := range n.Tasks {
		switch grant := t.Holds()[resource.Memory]; {
		case !t.Job.Resizable(int(t.ID.Stage)):
			rest -= grant
		case t.Job.Owner == owner:
			memory += max(grant, t.Held)
		case !slices.ContainsFunc(n.Tasks[:i], func(o *TaskState) bool {
			return o.Job.Owner == t.Job.Owner && o.Job.Resizable(int(o.ID.Stage))
		}):
			others++
		}
	}
	return others > 0 && memory <= rest/resource.Amount(others+1)
}
