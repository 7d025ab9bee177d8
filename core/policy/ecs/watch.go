package ecs

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
)

// watch says at which nodes a policy must look: those that have changed, and those at which it must look at a certain
// time. It has the next step requested that is needed for that. A policy that looks at a node without need must
// decide nothing there.
type watch struct {
	nodes []*book.NodeState // to look at in this decision
	turn  uint64            // counts decisions
	known bool              // due is up to date for all nodes
	due   []dueNode         // ascending
	at    []timeline.Time   // of each node in due, by NodeID; Never if it is not in due
	seen  []seenNode        // by NodeID
}

type dueNode struct {
	at   timeline.Time
	node cluster.NodeID
}

// seenNode is the turn in which a node was last among nodes, and in which it was last changed.
type seenNode struct{ listed, changed uint64 }

func (a dueNode) compare(b dueNode) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node))
}

// collect begins a decision.
func (w *watch) collect(now timeline.Time, p *book.Plan) {
	w.turn++
	w.nodes = w.nodes[:0]
	for len(w.seen) < len(p.Nodes) {
		w.seen, w.at = append(w.seen, seenNode{}), append(w.at, timeline.Never)
	}
	for _, changed := range [...][]cluster.NodeID{p.Changes.Nodes, p.Changes.Progress, p.Changes.Answered} {
		for _, id := range changed {
			w.change(p.Nodes[id])
		}
	}
	for _, id := range p.Changes.Holds {
		w.list(p.Nodes[id])
	}
	if !w.known {
		w.known = true
		for _, n := range p.Nodes {
			w.list(n)
		}
	}
	for i := 0; i < len(w.due) && w.due[i].at <= now; i++ {
		w.list(p.Nodes[w.due[i].node])
	}
	w.sort()
}

// sort puts the nodes into the order of NodeID, whatever the reasons to look at them are.
func (w *watch) sort() {
	slices.SortFunc(w.nodes, func(a, b *book.NodeState) int { return cmp.Compare(a.ID, b.ID) })
}

// list adds a node to those to look at.
func (w *watch) list(n *book.NodeState) {
	if w.seen[n.ID].listed != w.turn {
		w.seen[n.ID].listed = w.turn
		w.nodes = append(w.nodes, n)
	}
}

// change notes that a node has changed.
func (w *watch) change(n *book.NodeState) {
	w.list(n)
	w.seen[n.ID].changed = w.turn
}

func (w *watch) changed(n *book.NodeState) bool { return w.seen[n.ID].changed == w.turn }

// plan has the policy look at a node at the given time, and no longer at the time that was planned before.
func (w *watch) plan(n *book.NodeState, at timeline.Time) {
	if n.Gone {
		at = timeline.Never
	}
	before := w.at[n.ID]
	if at == before {
		return
	}
	if before != timeline.Never {
		i, _ := slices.BinarySearchFunc(w.due, dueNode{before, n.ID}, dueNode.compare)
		w.due = slices.Delete(w.due, i, i+1)
	}
	if w.at[n.ID] = at; at != timeline.Never {
		d := dueNode{at, n.ID}
		i, _ := slices.BinarySearchFunc(w.due, d, dueNode.compare)
		w.due = slices.Insert(w.due, i, d)
	}
}

// wake requests a step when the policy must look at a node.
func (w *watch) wake(now timeline.Time, p *book.Plan) {
	if len(w.due) > 0 && w.due[0].at > now {
		p.WakeBy(w.due[0].at, cluster.Because(cluster.PhaseDue))
	}
}
