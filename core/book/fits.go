package book

import (
	"fmt"
	"slices"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// These functions decide whether a task's need fits, and why not: on one node now (Fits), on any node now (NoRoom), on
// one node ever (Holds), and on any node ever (CheckFits).

// Fits reports whether the need of a task is free on n now; if not, why says so. Plan.Wait works out which resource is
// short.
func (n *NodeState) Fits(need resource.Vector) (why cluster.Reason, ok bool) {
	if need.FitsIn(n.Free) {
		return cluster.Reason{}, true
	}
	return cluster.BecauseNoRoom(need), false
}

// Holds reports whether n has need when nothing runs there; no node that left has.
func (n *NodeState) Holds(need resource.Vector) bool { return !n.Gone && need.FitsIn(n.Room()) }

// Times returns how many tasks with a need could start on n at once, at most the given number.
func (n *NodeState) Times(need resource.Vector, most int) int {
	if n.Paused {
		return 0
	}
	return n.times(need, n.Free, len(n.Tasks), most)
}

// HoldsTimes is Times when nothing runs on n.
func (n *NodeState) HoldsTimes(need resource.Vector, most int) int {
	if n.Gone {
		return 0
	}
	return n.times(need, n.Room(), 0, most)
}

func (n *NodeState) times(need, free resource.Vector, tasks, most int) int {
	if n.most > 0 {
		most = min(most, n.most-tasks)
	}
	for k := range need {
		if need[k] > 0 {
			most = int(min(resource.Amount(most), free[k]/need[k]))
		}
	}
	return most
}

// NoRoom says why need fits on no node that is not reserved; ok is false if it fits on one.
func (s *Snapshot) NoRoom(need resource.Vector) (why cluster.Reason, ok bool) {
	if _, room := s.FirstOpen(need, 0); room {
		return cluster.Reason{}, false
	}
	if n, room := s.FirstReserved(need, 0); room {
		return cluster.BecauseNodeReserved(n.ReservedFor.ID), true
	}
	if n, room := s.FirstOpen(resource.Of(need[resource.CPU], need[resource.Memory]), 0); room {
		for k := range resource.NumKinds {
			if need[k] > n.Free[k] { // neither CPU nor memory, of which n has enough
				return cluster.BecauseNoBandwidth(k, need[k]), true
			}
		}
	}
	return cluster.BecauseNoRoom(need), true
}

// fullNode returns a node that rejects a task only because it already has as many tasks as it may.
func (s *Snapshot) fullNode(j *JobState, stage int, code cluster.ReasonCode) (*NodeState, bool) {
	if s.ContainersPerCore == 0 || code != cluster.NoRoom && code != cluster.NotAvailable {
		return nil, false
	}
	for _, n := range s.Nodes {
		if n.Full() && !n.Gone && j.Stages[stage].Ideal.FitsIn(n.Unused()) {
			return n, true
		}
	}
	return nil, false
}

// CheckFits returns an error that names the first stage of j that does not fit on any node, even an empty one. Elastic
// says whether the policy under-sizes tasks whose run time is known: such tasks need only their minimum memory.
func (s *Snapshot) CheckFits(j *cluster.Job, elastic bool) error {
	largest := s.Largest()
	for i := range j.Stages {
		need, name := j.Stages[i].Ideal, "memory"
		if elastic && j.Stages[i].Elastic() && j.Stages[i].Duration > 0 {
			need, name = j.Stages[i].LeastNeed(), "minimum memory"
		}
		if slices.ContainsFunc(s.Nodes, func(n *NodeState) bool { return n.Holds(need) }) {
			continue
		}
		for k := range resource.NumKinds {
			if need[k] <= largest[k] {
				continue
			}
			if k != resource.Memory {
				name = k.String()
			}
			return j.WrongIn(i, name, k.Format(need[k]), "must be at most what a node has, %s", k.Format(largest[k]))
		}
		return fmt.Errorf("job %q stage %q needs %v: must be at most what one node has", j.Name, j.StageName(i), need)
	}
	return nil
}

// Largest returns, per resource, the most that fits on any empty node.
func (s *Snapshot) Largest() resource.Vector { return s.rooms.largest }

// count adds the resources of a node to those of the cluster.
func (s *Snapshot) count(n *cluster.Node) {
	s.Unknown |= n.Unknown
	s.Capacity = s.Unknown.In(s.Capacity.Add(n.Capacity), 0)
	s.rooms.largest = s.rooms.largest.Max(n.Room())
	s.Present++
}

// recount counts all nodes. It is needed only after a node has left.
func (s *Snapshot) recount() {
	s.Capacity, s.Unknown, s.rooms.largest, s.Present = resource.Vector{}, 0, resource.Vector{}, 0
	for _, n := range s.Nodes {
		if !n.Gone {
			s.count(&n.Node)
		}
	}
}
