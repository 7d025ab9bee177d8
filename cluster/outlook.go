package cluster

import (
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/timeline"
)

// Outlook is what a node will have free if nothing more is started there. It reuses its memory.
type Outlook struct {
	free timeline.Timeline
	ends []timeline.Step
}

// Look makes o the outlook of n. ends returns when a task should end; the grant of a task with an unknown end is never
// freed.
func (o *Outlook) Look(n *NodeState, ends func(*TaskState) (at timeline.Time, known bool)) {
	o.ends = o.ends[:0]
	for _, t := range n.Tasks {
		if at, known := ends(t); known {
			o.ends = append(o.ends, timeline.Step{At: at, Value: n.Unknown.In(t.Grant, 0)})
		}
	}
	o.free.Sum(n.Unused(), o.ends)
}

// Room returns the earliest time, from now on, at which the free resources are usable. ok is false if that time is
// unknown.
func (o *Outlook) Room(now timeline.Time, usable func(free resource.Vector) bool) (at timeline.Time, ok bool) {
	return o.free.First(now, usable)
}

// RoomAfterEnd is Room starting at the first end of a task.
func (o *Outlook) RoomAfterEnd(usable func(free resource.Vector) bool) (at timeline.Time, ok bool) {
	return o.free.First(o.free.FirstStep(), usable)
}
