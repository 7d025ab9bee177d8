package book

import (
	"cmp"
	"slices"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
)

// Outlook is what a node will have free if nothing more is started there. It reuses its memory.
type Outlook struct {
	node *NodeState
	free timeline.Timeline
	ends []timeline.Step
}

// Look makes o the outlook of n. ends returns when a task should end; what a task with an unknown end holds is
// never freed.
func (o *Outlook) Look(n *NodeState, ends func(*TaskState) (at timeline.Time, known bool)) {
	o.node, o.ends = n, o.ends[:0]
	for _, t := range n.Tasks {
		if at, known := ends(t); known {
			o.ends = append(o.ends, timeline.Step{At: at, Value: n.Unknown.In(t.Holds(), 0)})
		}
	}
	o.free.Sum(n.Spare(), o.ends)
}

// RoomFor returns the earliest time, from now on, at which count tasks of one need have room at once, and the node may
// have count more containers. ok is false if that time is unknown. count > 0.
func (o *Outlook) RoomFor(count int, need resource.Vector, now timeline.Time) (at timeline.Time, ok bool) {
	if n := o.node; n.most > 0 && len(n.Tasks)+count > n.most {
		over := len(n.Tasks) + count - n.most
		if over > len(o.ends) {
			return timeline.Never, false
		}
		slices.SortFunc(o.ends, func(a, b timeline.Step) int { return cmp.Compare(a.At, b.At) })
		now = max(now, o.ends[over-1].At)
	}
	return o.free.First(now, func(free resource.Vector) bool { return o.node.times(need, free, 0, count) == count })
}

// RoomAfterEnd returns the earliest time, from the first end of a task on, at which the free resources are usable. ok
// is false if that time is unknown.
func (o *Outlook) RoomAfterEnd(usable func(free resource.Vector) bool) (at timeline.Time, ok bool) {
	return o.free.First(o.free.FirstStep(), usable)
}
